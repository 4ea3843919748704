//! What the contexts share: ids, plans, and the events that each of them publishes. Nothing else crosses between contexts.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// A guild (a Discord server).
pub type GuildId = Uuid;
/// A user.
pub type UserId = Uuid;
/// A subscription of a guild to a plan.
pub type SubscriptionId = Uuid;
/// One try to charge a subscription.
pub type AttemptId = Uuid;
/// A licence of a guild.
pub type LicenseId = Uuid;
/// A point in time: seconds since 1970, UTC.
pub type Timestamp = i64;
/// A day, in seconds.
pub const DAY: Timestamp = 86_400;
/// How long a payment lasts.
pub const PERIOD: Timestamp = 30 * DAY;
/// The plans; the better one comes later.
pub const PLANS: [&str; 3] = ["free", "pro", "team"];

/// What went wrong behind a port.
pub type Fault = Box<dyn std::error::Error + Send + Sync>;
/// What a port answers.
pub type Answer<T> = Result<T, Fault>;

/// A published event, without a word on how it travels.
pub trait Fact: Serialize + DeserializeOwned + Send + Sync + 'static {
    /// Its name.
    const NAME: &'static str;
    /// The context that publishes it.
    const CONTEXT: &'static str;
    /// The kind of thing that it happened to.
    const AGGREGATE: &'static str;
    /// The names of its fields.
    const FIELDS: &'static [&'static str];
    /// The id of the thing that it happened to.
    fn aggregate_id(&self) -> Uuid;
}

/// The name, context and fields of an event.
pub type Entry = (&'static str, &'static str, &'static [&'static str]);

macro_rules! facts {
    ($($context:literal: $($name:ident of $aggregate:literal by $id:ident { $($field:ident: $kind:ty),+ })+;)+) => {
        $($(
            #[doc = concat!("`", stringify!($name), "` of the context ", $context, ".")]
            #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
            pub struct $name {
                $(#[doc = concat!("The field `", stringify!($field), "`.")] pub $field: $kind,)+
            }

            impl Fact for $name {
                const NAME: &'static str = stringify!($name);
                const CONTEXT: &'static str = $context;
                const AGGREGATE: &'static str = $aggregate;
                const FIELDS: &'static [&'static str] = &[$(stringify!($field)),+];

                fn aggregate_id(&self) -> Uuid {
                    self.$id
                }
            }
        )+)+

        /// All of them.
        pub const CATALOG: &[Entry] = &[$($((stringify!($name), $context, &[$(stringify!($field)),+]),)+)+];
    };
}

facts! {
    "guild":
        BotInstalled of "guild" by guild_id { guild_id: GuildId, installer_user_id: UserId }
        BotKicked of "guild" by guild_id { guild_id: GuildId }
        GuildOwnerChanged of "guild" by guild_id { guild_id: GuildId, old_owner_id: UserId, new_owner_id: UserId }
        GuildDeleted of "guild" by guild_id { guild_id: GuildId };
    "billing":
        BillingKeyIssued of "billing_key" by billing_key_id { user_id: UserId, billing_key_id: Uuid }
        BillingKeyDeleted of "billing_key" by billing_key_id { user_id: UserId, billing_key_id: Uuid }
        SubscriptionStarted of "subscription" by subscription_id { subscription_id: SubscriptionId, guild_id: GuildId, plan_code: String }
        PaymentSucceeded of "subscription" by subscription_id { subscription_id: SubscriptionId, attempt_id: AttemptId, new_period_end: Timestamp }
        PaymentFailed of "subscription" by subscription_id { subscription_id: SubscriptionId, attempt_id: AttemptId, retry_count: i32 }
        PaymentFailedFinal of "subscription" by subscription_id { subscription_id: SubscriptionId }
        SubscriptionCanceled of "subscription" by subscription_id { subscription_id: SubscriptionId, cancel_at_period_end: bool }
        SubscriptionSuspended of "subscription" by subscription_id { subscription_id: SubscriptionId, reason: String }
        PlanUpgraded of "subscription" by subscription_id { subscription_id: SubscriptionId, old_plan: String, new_plan: String }
        PlanDowngraded of "subscription" by subscription_id { subscription_id: SubscriptionId, old_plan: String, new_plan: String, effective_at: Timestamp };
    "licensing":
        LicenseGranted of "license" by license_id { license_id: LicenseId, guild_id: GuildId, plan_code: String }
        LicenseExtended of "license" by license_id { license_id: LicenseId, new_expires_at: Timestamp }
        LicenseDowngraded of "license" by license_id { license_id: LicenseId, old_plan: String, new_plan: String }
        LicenseSuspended of "license" by license_id { license_id: LicenseId, reason: String }
        LicenseCanceled of "license" by license_id { license_id: LicenseId };
    "recovery":
        SnapshotCreated of "snapshot" by snapshot_id { snapshot_id: Uuid, guild_id: GuildId, trigger: String }
        SnapshotDeleted of "snapshot" by snapshot_id { snapshot_id: Uuid, guild_id: GuildId }
        RestoreStarted of "restore_job" by restore_job_id { restore_job_id: Uuid, snapshot_id: Uuid, guild_id: GuildId }
        RestoreCompleted of "restore_job" by restore_job_id { restore_job_id: Uuid, result_summary: String }
        RestoreFailed of "restore_job" by restore_job_id { restore_job_id: Uuid, error_summary: String }
        AntiNukeTriggered of "guild" by guild_id { guild_id: GuildId, detected_pattern: String, suspects: Vec<UserId> }
        AntiNukeActioned of "guild" by guild_id { guild_id: GuildId, actions_taken: Vec<String> };
    "member":
        MemberJoinedViaWebJoin of "member" by member_id { member_id: Uuid, guild_id: GuildId, slug: String }
        MemberRestored of "member" by member_id { member_id: Uuid, guild_id: GuildId, restored_roles: Vec<String> };
    "identity":
        UserRegistered of "user" by user_id { user_id: UserId, discord_user_id: String }
        UserSessionCreated of "user" by user_id { user_id: UserId, session_id: String };
}
