//! The catalog of Umbra as its document tables it: 30 events of six contexts, four subscribers, 55 routes.

use std::collections::BTreeMap;

use postrider_catalog::{CatalogFile, EventEntry, FORMAT, HandlerEntry, PayloadSchema, SubscriberEntry};
use serde_json::{Map, Value, json};

/// A context of the system, which is a stream, an aggregate's type by default and a publisher.
pub(crate) struct Context {
    pub(crate) name: &'static str,
    pub(crate) events: &'static [Event],
}

/// An event: its name, its aggregate, what it means, its fields.
pub(crate) type Event = (&'static str, &'static str, &'static str, &'static [&'static str]);

#[rustfmt::skip]
pub(crate) const CONTEXTS: &[Context] = &[
    Context { name: "guild", events: &[
        ("BotInstalled", "guild", "The bot was added to a guild.", &["guild_id", "installer_user_id"]),
        ("BotKicked", "guild", "The bot was thrown out of a guild.", &["guild_id"]),
        ("GuildOwnerChanged", "guild", "A guild has a new owner.", &["guild_id", "old_owner_id", "new_owner_id"]),
        ("GuildDeleted", "guild", "A guild no longer exists.", &["guild_id"]),
    ] },
    Context { name: "billing", events: &[
        ("BillingKeyIssued", "billing_key", "The payment provider issued a key to charge a user.", &["user_id", "billing_key_id"]),
        ("BillingKeyDeleted", "billing_key", "A key to charge a user is gone.", &["user_id", "billing_key_id"]),
        ("SubscriptionStarted", "subscription", "A subscription was created and its first charge succeeded.", &["subscription_id", "guild_id", "plan_code"]),
        ("PaymentSucceeded", "subscription", "A recurring charge succeeded.", &["subscription_id", "attempt_id", "new_period_end"]),
        ("PaymentFailed", "subscription", "A charge failed and is tried again later.", &["subscription_id", "attempt_id", "retry_count"]),
        ("PaymentFailedFinal", "subscription", "The fourth charge failed, which ends the subscription.", &["subscription_id"]),
        ("SubscriptionCanceled", "subscription", "The user ended a subscription.", &["subscription_id", "cancel_at_period_end"]),
        ("SubscriptionSuspended", "subscription", "A subscription rests, for example because the bot was kicked.", &["subscription_id", "reason"]),
        ("PlanUpgraded", "subscription", "A subscription has a bigger plan.", &["subscription_id", "old_plan", "new_plan"]),
        ("PlanDowngraded", "subscription", "A subscription gets a smaller plan from a certain time on.", &["subscription_id", "old_plan", "new_plan", "effective_at"]),
    ] },
    Context { name: "licensing", events: &[
        ("LicenseGranted", "license", "A guild has a new license.", &["license_id", "guild_id", "plan_code"]),
        ("LicenseExtended", "license", "A license is valid for longer.", &["license_id", "new_expires_at"]),
        ("LicenseDowngraded", "license", "A license has a smaller plan.", &["license_id", "old_plan", "new_plan"]),
        ("LicenseSuspended", "license", "A license rests.", &["license_id", "reason"]),
        ("LicenseCanceled", "license", "A license has ended for good.", &["license_id"]),
    ] },
    Context { name: "recovery", events: &[
        ("SnapshotCreated", "snapshot", "A snapshot of a guild is complete.", &["snapshot_id", "guild_id", "trigger"]),
        ("SnapshotDeleted", "snapshot", "An old snapshot was cleaned up.", &["snapshot_id", "guild_id"]),
        ("RestoreStarted", "restore_job", "The recovery of a guild has begun.", &["restore_job_id", "snapshot_id", "guild_id"]),
        ("RestoreCompleted", "restore_job", "A guild has been recovered.", &["restore_job_id", "result_summary"]),
        ("RestoreFailed", "restore_job", "A guild could not be recovered.", &["restore_job_id", "error_summary"]),
        ("AntiNukeTriggered", "guild", "Something destructive was noticed in a guild.", &["guild_id", "detected_pattern", "suspects"]),
        ("AntiNukeActioned", "guild", "The automatic defence has acted.", &["guild_id", "actions_taken"]),
    ] },
    Context { name: "member", events: &[
        ("MemberJoinedViaWebJoin", "member", "Someone joined a guild through its web page.", &["member_id", "guild_id", "slug"]),
        ("MemberRestored", "member", "An administrator gave a member their roles back.", &["member_id", "guild_id", "restored_roles"]),
    ] },
    Context { name: "identity", events: &[
        ("UserRegistered", "user", "There is a new user.", &["user_id", "discord_user_id"]),
        ("UserSessionCreated", "user", "A user signed in.", &["user_id", "session_id"]),
    ] },
];

/// A subscriber: its name, and what its handlers take and record.
pub(crate) type Subscriber = (&'static str, &'static [(&'static str, &'static [&'static str])]);

#[rustfmt::skip]
pub(crate) const SUBSCRIBERS: &[Subscriber] = &[
    ("licensing", &[
        ("BotInstalled", &["LicenseGranted"]),
        ("BotKicked", &["LicenseSuspended"]),
        ("GuildDeleted", &["LicenseCanceled"]),
        ("BillingKeyDeleted", &["LicenseSuspended"]),
        ("SubscriptionStarted", &["LicenseGranted"]),
        ("PaymentSucceeded", &["LicenseExtended"]),
        ("PaymentFailedFinal", &["LicenseDowngraded"]),
        ("SubscriptionSuspended", &["LicenseSuspended"]),
        ("PlanUpgraded", &[]),
    ]),
    ("billing", &[
        ("BotKicked", &["SubscriptionSuspended"]),
        ("GuildDeleted", &["SubscriptionCanceled"]),
        ("BillingKeyDeleted", &["SubscriptionSuspended"]),
    ]),
    ("notification", &[
        ("SubscriptionStarted", &[]), ("PaymentFailed", &[]), ("PaymentFailedFinal", &[]), ("SubscriptionCanceled", &[]),
        ("PlanUpgraded", &[]), ("PlanDowngraded", &[]), ("LicenseDowngraded", &[]), ("LicenseSuspended", &[]),
        ("RestoreStarted", &[]), ("RestoreCompleted", &[]), ("RestoreFailed", &[]), ("AntiNukeTriggered", &[]),
        ("AntiNukeActioned", &[]),
    ]),
    ("audit", &[("*", &[])]),
];

/// The catalog.
pub(crate) fn umbra() -> CatalogFile {
    let events =
        CONTEXTS.iter().flat_map(|context| context.events.iter().map(|event| entry(context, *event)));
    let mut events: Vec<EventEntry> = events.collect();
    events.sort_by(|one, other| one.name.cmp(&other.name));
    let subscribers = SUBSCRIBERS.iter().map(|(name, handlers)| SubscriberEntry {
        name: (*name).to_owned(),
        streams: Vec::new(),
        types: Vec::new(),
        handlers: handlers.iter().map(|(event, recorded)| ((*event).to_owned(), handler(recorded))).collect(),
        destination: None,
        topics: Vec::new(),
        topics_by_type: BTreeMap::new(),
    });
    CatalogFile { format: FORMAT, system: "Umbra".to_owned(), events, subscribers: subscribers.collect() }
}

fn handler(recorded: &[&str]) -> HandlerEntry {
    HandlerEntry { version: None, follow_ups: recorded.iter().map(|name| (*name).to_owned()).collect() }
}

fn entry(context: &Context, (name, aggregate, summary, fields): Event) -> EventEntry {
    let properties: Map<String, Value> =
        fields.iter().map(|field| ((*field).to_owned(), field_schema(field))).collect();
    EventEntry {
        name: name.to_owned(),
        version: 1,
        stream: context.name.to_owned(),
        aggregate: aggregate.to_owned(),
        ordering_key: "aggregate".to_owned(),
        sequenced: false,
        summary: Some(summary.to_owned()),
        publishers: vec![context.name.to_owned()],
        upcast_from: Vec::new(),
        payload: Some(PayloadSchema {
            writes: json!({
                "$schema": "https://json-schema.org/draft/2020-12/schema",
                "title": name,
                "type": "object",
                "properties": properties,
                "required": fields,
            }),
            reads: None,
        }),
    }
}

/// The schema of a field, by its name; what it means where the name does not say it.
fn field_schema(name: &str) -> Value {
    let meanings = BTreeMap::from([
        ("cancel_at_period_end", "Whether the subscription goes on until what was paid for is over."),
        ("retry_count", "How often the charge has failed."),
        ("slug", "The address of the web page."),
        ("suspects", "The users who may have done it."),
        ("trigger", "What asked for the snapshot."),
    ]);
    let mut schema = match name {
        "cancel_at_period_end" => json!({"type": "boolean"}),
        "retry_count" => json!({"type": "integer", "format": "uint32", "minimum": 0}),
        "suspects" | "actions_taken" | "restored_roles" => {
            json!({"type": "array", "items": {"type": "string"}})
        }
        "guild_id" | "discord_user_id" => json!({"type": "string"}),
        _ if name.ends_with("_at") || name.ends_with("_end") => {
            json!({"type": "string", "format": "date-time"})
        }
        _ if name.ends_with("_id") => json!({"type": "string", "format": "uuid"}),
        _ => json!({"type": "string"}),
    };
    if let Some(meaning) = meanings.get(name) {
        schema["description"] = json!(meaning);
    }
    schema
}
