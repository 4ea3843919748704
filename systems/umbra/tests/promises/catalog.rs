//! The catalog of the document, the names of its events, and the isolation of the contexts.

use std::path::Path;

use postrider::catalog::Convention;
use story::imports::{OUTSIDE, lines_naming, naming};
use umbra::adapters::{delivery::Delivery, discord::Discord, postgres::relay::relay};
use umbra::contracts::CATALOG;

use crate::world::World;

/// Each event with its context, its fields, and who reads it beside Audit, which reads everything.
const TABLE: &str = "\
BotInstalled guild guild_id,installer_user_id licensing
BotKicked guild guild_id licensing,billing
GuildOwnerChanged guild guild_id,old_owner_id,new_owner_id
GuildDeleted guild guild_id licensing,billing
BillingKeyIssued billing user_id,billing_key_id
BillingKeyDeleted billing user_id,billing_key_id licensing,billing
SubscriptionStarted billing subscription_id,guild_id,plan_code licensing,notification
PaymentSucceeded billing subscription_id,attempt_id,new_period_end licensing
PaymentFailed billing subscription_id,attempt_id,retry_count notification
PaymentFailedFinal billing subscription_id licensing,notification
SubscriptionCanceled billing subscription_id,cancel_at_period_end notification
SubscriptionSuspended billing subscription_id,reason licensing
PlanUpgraded billing subscription_id,old_plan,new_plan licensing,notification
PlanDowngraded billing subscription_id,old_plan,new_plan,effective_at notification
LicenseGranted licensing license_id,guild_id,plan_code
LicenseExtended licensing license_id,new_expires_at
LicenseDowngraded licensing license_id,old_plan,new_plan notification
LicenseSuspended licensing license_id,reason notification
LicenseCanceled licensing license_id
SnapshotCreated recovery snapshot_id,guild_id,trigger
SnapshotDeleted recovery snapshot_id,guild_id
RestoreStarted recovery restore_job_id,snapshot_id,guild_id notification
RestoreCompleted recovery restore_job_id,result_summary notification
RestoreFailed recovery restore_job_id,error_summary notification
AntiNukeTriggered recovery guild_id,detected_pattern,suspects notification
AntiNukeActioned recovery guild_id,actions_taken notification
MemberJoinedViaWebJoin member member_id,guild_id,slug
MemberRestored member member_id,guild_id,restored_roles
UserRegistered identity user_id,discord_user_id
UserSessionCreated identity user_id,session_id";

/// U8: the 30 events with their fields and subscribers, and 9 + 3 + 13 + 30 routes.
#[tokio::test]
async fn the_events_and_their_subscribers_are_those_of_the_document() {
    let world = World::asleep().await;
    let delivery = Delivery::read(None).expect("the settings that are built in");
    let relay = relay(&world.outbox, Discord::new("http://127.0.0.1:9"), &delivery).expect("settings");
    let infos = relay.subscriber_infos();
    let mut found = Vec::new();
    for (name, context, fields) in CATALOG {
        let reads = |types: &[String]| types.iter().any(|each| each == name);
        let readers: Vec<&str> =
            infos.iter().filter(|info| reads(&info.types)).map(|info| info.name.as_str()).collect();
        let line = format!("{name} {context} {} {}", fields.join(","), readers.join(","));
        found.push(line.trim_end().to_owned());
    }
    assert_eq!(found, TABLE.lines().collect::<Vec<_>>());
    let routes: Vec<(&str, usize)> =
        infos.iter().map(|info| (info.name.as_str(), info.types.len())).collect();
    // No types: all 30.
    assert_eq!(routes, [("licensing", 9), ("billing", 3), ("notification", 13), ("audit", 0)]);
    assert_eq!(CATALOG.len(), 30);
}

/// U15: the 30 names pass; a noun, a command and snake_case do not.
#[test]
fn names_are_in_the_past_tense() {
    let convention = Convention::PascalPastTense;
    for (name, ..) in CATALOG {
        assert!(convention.check(name).is_ok(), "{name}");
    }
    let refusal = convention.check("PaymentSuccess").expect_err("a noun");
    assert_eq!(refusal.suggestion(), Some("PaymentSucceeded"));
    for name in ["CancelSubscription", "payment_succeeded"] {
        assert!(convention.check(name).is_err(), "{name}");
    }
}

const CONTEXTS: [&str; 8] =
    ["guild", "billing", "licensing", "recovery", "member", "identity", "notification", "audit"];

/// The modules around the contexts.
const OUTER: [&str; 3] = ["adapters", "stubs", "telling"];

/// What a context must not name: other contexts, Postrider, the database.
fn crossings(context: &str, text: &str) -> Vec<String> {
    let code = text.lines().map(|line| line.split("//").next().unwrap_or_default());
    let inner = CONTEXTS.iter().filter(|other| **other != context);
    let banned: Vec<String> = inner
        .flat_map(|other| [format!("crate::{other}"), format!("super::{other}")])
        .chain(["postrider", "sqlx", "reqwest", "crate::{", "super::{"].map(str::to_owned))
        .collect();
    code.filter(|line| banned.iter().any(|word| line.contains(word.as_str()))).map(str::to_owned).collect()
}

/// The files of a context: `billing.rs`, and those in `billing`.
fn files(context: &str) -> Vec<std::path::PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = vec![source.join(format!("{context}.rs"))];
    if let Ok(folder) = std::fs::read_dir(source.join(context)) {
        files.extend(folder.map(|entry| entry.expect("a file").path()));
    }
    files
}

/// U18: the contexts import nothing of one another, nor of what is outside; a planted crossing is found.
#[test]
fn contexts_import_nothing_of_one_another() {
    let outside = [OUTSIDE, &OUTER].concat();
    for context in CONTEXTS {
        for path in files(context) {
            let text = std::fs::read_to_string(&path).expect("a context");
            assert_eq!(crossings(context, &text), [""; 0], "{}", path.display());
            assert_eq!(lines_naming(&text, &outside), [""; 0], "{}", path.display());
        }
    }
    assert_eq!(files("billing").len(), 3, "its folder is looked at, too");
    for planted in ["use crate::licensing::License;", "use sqlx::PgPool;", "use crate::{contracts, guild};"] {
        assert_eq!(crossings("billing", planted), [planted]);
    }
    assert_eq!(lines_naming("use super::{contracts, stubs};", &outside).len(), 1);
    let adapters = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/adapters");
    assert!(!naming(&adapters, OUTSIDE).is_empty(), "what connects them does name it");
}

/// The words of the statements that a file has: lines of code which name a table of a schema.
fn tables(text: &str, schema: &str) -> Vec<String> {
    let code = text.lines().map(|line| line.split("//").next().unwrap_or_default());
    let named = |line: &&str| {
        ["from ", "join ", "into ", "update "].iter().any(|verb| line.contains(&format!("{verb}{schema}.")))
    };
    code.filter(named).map(|line| line.trim().to_owned()).collect()
}

/// U18: the tables of a context are read and written by the port of that context alone; a planted statement is found.
#[test]
fn a_schema_belongs_to_the_port_of_its_context() {
    let store = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/adapters/store");
    let owners = [
        ("billing", "subscriptions.rs"),
        ("licensing", "unit.rs"),
        ("audit", "unit.rs"),
        ("notification", "messenger.rs"),
    ];
    for (schema, owner) in owners {
        for entry in std::fs::read_dir(&store).expect("a folder") {
            let path = entry.expect("a file").path();
            let found = tables(&std::fs::read_to_string(&path).expect("a text"), schema);
            assert_eq!(!found.is_empty(), path.ends_with(owner), "{}: {found:?}", path.display());
        }
    }
    let planted = "let text = \"select id from billing.subscriptions where billing_key_id = $1\";";
    assert_eq!(tables(planted, "billing"), [planted]);
}
