//! What the contexts share: ids, plans, and the events that each of them publishes. Nothing else crosses between contexts.

use schemars::JsonSchema;
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
    /// What it means, in a sentence.
    const SUMMARY: &'static str;
    /// The names of its fields.
    const FIELDS: &'static [&'static str];
    /// The id of the thing that it happened to.
    fn aggregate_id(&self) -> Uuid;
}

/// The name, context and fields of an event.
pub type Entry = (&'static str, &'static str, &'static [&'static str]);

macro_rules! facts {
    ($($context:literal: $($(#[doc = $summary:literal])+ $name:ident of $aggregate:literal by $id:ident { $($field:ident: $kind:ty = $meaning:literal),+ $(,)? })+;)+) => {
        $($(
            $(#[doc = $summary])+
            #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
            pub struct $name {
                $(#[doc = $meaning] pub $field: $kind,)+
            }

            impl Fact for $name {
                const NAME: &'static str = stringify!($name);
                const CONTEXT: &'static str = $context;
                const AGGREGATE: &'static str = $aggregate;
                const SUMMARY: &'static str = concat!($($summary),+).trim_ascii();
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
        /// The bot was added to a guild.
        BotInstalled of "guild" by guild_id {
            guild_id: GuildId = "The guild.",
            installer_user_id: UserId = "Who added it.",
        }
        /// The bot was thrown out of a guild.
        BotKicked of "guild" by guild_id {
            guild_id: GuildId = "The guild.",
        }
        /// A guild has a new owner.
        GuildOwnerChanged of "guild" by guild_id {
            guild_id: GuildId = "The guild.",
            old_owner_id: UserId = "Who owned it.",
            new_owner_id: UserId = "Who owns it now.",
        }
        /// A guild no longer exists.
        GuildDeleted of "guild" by guild_id {
            guild_id: GuildId = "The guild.",
        };
    "billing":
        /// A user has a key that can be charged.
        BillingKeyIssued of "billing_key" by billing_key_id {
            user_id: UserId = "Whose it is.",
            billing_key_id: Uuid = "The key.",
        }
        /// A key was deleted, and what it paid for rests.
        BillingKeyDeleted of "billing_key" by billing_key_id {
            user_id: UserId = "Whose it was.",
            billing_key_id: Uuid = "The key.",
        }
        /// The first charge of a subscription succeeded.
        SubscriptionStarted of "subscription" by subscription_id {
            subscription_id: SubscriptionId = "The subscription.",
            guild_id: GuildId = "The guild that it is for.",
            plan_code: String = "Its plan.",
        }
        /// A further charge of a subscription succeeded.
        PaymentSucceeded of "subscription" by subscription_id {
            subscription_id: SubscriptionId = "The subscription.",
            attempt_id: AttemptId = "The charge.",
            new_period_end: Timestamp = "Until when it is paid: seconds since 1970, UTC.",
        }
        /// A charge failed, and is tried again a day later.
        PaymentFailed of "subscription" by subscription_id {
            subscription_id: SubscriptionId = "The subscription.",
            attempt_id: AttemptId = "The charge.",
            retry_count: i32 = "How many charges in a row have failed: 1 to 3.",
        }
        /// The fourth charge in a row failed, and the subscription has ended.
        PaymentFailedFinal of "subscription" by subscription_id {
            subscription_id: SubscriptionId = "The subscription.",
        }
        /// A subscription has ended, or will end with its period.
        SubscriptionCanceled of "subscription" by subscription_id {
            subscription_id: SubscriptionId = "The subscription.",
            cancel_at_period_end: bool = "Whether it goes on until its period ends.",
        }
        /// A subscription rests: it is not charged any more.
        SubscriptionSuspended of "subscription" by subscription_id {
            subscription_id: SubscriptionId = "The subscription.",
            reason: String = "Why, for people.",
        }
        /// A subscription has a higher plan, at once.
        PlanUpgraded of "subscription" by subscription_id {
            subscription_id: SubscriptionId = "The subscription.",
            old_plan: String = "The plan before.",
            new_plan: String = "The plan from now on.",
        }
        /// A subscription gets a lower plan with its next payment.
        PlanDowngraded of "subscription" by subscription_id {
            subscription_id: SubscriptionId = "The subscription.",
            old_plan: String = "The plan until then.",
            new_plan: String = "The plan after that.",
            effective_at: Timestamp = "When the next payment is due: seconds since 1970, UTC.",
        };
    "licensing":
        /// A guild may use a plan.
        LicenseGranted of "license" by license_id {
            license_id: LicenseId = "The licence.",
            guild_id: GuildId = "Whose it is.",
            plan_code: String = "The plan.",
        }
        /// A licence lasts longer.
        LicenseExtended of "license" by license_id {
            license_id: LicenseId = "The licence.",
            new_expires_at: Timestamp = "Until when: seconds since 1970, UTC.",
        }
        /// A licence is for a lower plan.
        LicenseDowngraded of "license" by license_id {
            license_id: LicenseId = "The licence.",
            old_plan: String = "The plan before.",
            new_plan: String = "The plan from now on.",
        }
        /// A licence rests: the guild can't use its plan.
        LicenseSuspended of "license" by license_id {
            license_id: LicenseId = "The licence.",
            reason: String = "Why, for people.",
        }
        /// A licence has ended for good.
        LicenseCanceled of "license" by license_id {
            license_id: LicenseId = "The licence.",
        };
    "recovery":
        /// A guild was backed up.
        SnapshotCreated of "snapshot" by snapshot_id {
            snapshot_id: Uuid = "The backup.",
            guild_id: GuildId = "The guild.",
            trigger: String = "What it was made for.",
        }
        /// An old backup was cleaned up.
        SnapshotDeleted of "snapshot" by snapshot_id {
            snapshot_id: Uuid = "The backup.",
            guild_id: GuildId = "The guild.",
        }
        /// A guild is being restored from a backup.
        RestoreStarted of "restore_job" by restore_job_id {
            restore_job_id: Uuid = "The restore.",
            snapshot_id: Uuid = "The backup.",
            guild_id: GuildId = "The guild.",
        }
        /// A guild was restored.
        RestoreCompleted of "restore_job" by restore_job_id {
            restore_job_id: Uuid = "The restore.",
            result_summary: String = "What was restored, for people.",
        }
        /// A guild could not be restored.
        RestoreFailed of "restore_job" by restore_job_id {
            restore_job_id: Uuid = "The restore.",
            error_summary: String = "Why, for people.",
        }
        /// Something destructive was seen in a guild.
        AntiNukeTriggered of "guild" by guild_id {
            guild_id: GuildId = "The guild.",
            detected_pattern: String = "What was seen.",
            suspects: Vec<UserId> = "Who may have done it.",
        }
        /// The bot acted against an attack.
        AntiNukeActioned of "guild" by guild_id {
            guild_id: GuildId = "The guild.",
            actions_taken: Vec<String> = "What it did.",
        };
    "member":
        /// Somebody joined a guild by its web page.
        MemberJoinedViaWebJoin of "member" by member_id {
            member_id: Uuid = "The member.",
            guild_id: GuildId = "The guild.",
            slug: String = "The name of the page.",
        }
        /// A member has their roles back.
        MemberRestored of "member" by member_id {
            member_id: Uuid = "The member.",
            guild_id: GuildId = "The guild.",
            restored_roles: Vec<String> = "The roles.",
        };
    "identity":
        /// There is a new user.
        UserRegistered of "user" by user_id {
            user_id: UserId = "The user.",
            discord_user_id: String = "Who that is at Discord; masked in the trail.",
        }
        /// A user signed in.
        UserSessionCreated of "user" by user_id {
            user_id: UserId = "The user.",
            session_id: String = "The session; masked in the trail.",
        };
}
