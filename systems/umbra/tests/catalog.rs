//! The catalog of the document, the names of its events, and the isolation of the contexts.

use std::collections::BTreeMap;

use postrider::catalog::Convention;
use postrider_testkit::postgres::Database;
use umbra::adapters::{postgres::migrate, relay::relay};
use umbra::contracts::CATALOG;

/// U8: 30 events, and 9 + 3 + 13 + 30 routes.
#[tokio::test]
async fn the_events_and_their_subscribers_are_those_of_the_document() {
    let mut count: BTreeMap<&str, usize> = BTreeMap::new();
    for (_, context, _) in CATALOG {
        *count.entry(context).or_default() += 1;
    }
    let wanted =
        [("billing", 10), ("guild", 4), ("identity", 2), ("licensing", 5), ("member", 2), ("recovery", 7)];
    assert_eq!(count, BTreeMap::from(wanted));
    let fields = |name| CATALOG.iter().find(|entry| entry.0 == name).expect("it exists").2;
    assert_eq!(fields("PaymentFailed"), ["subscription_id", "attempt_id", "retry_count"]);
    assert_eq!(fields("PlanDowngraded"), ["subscription_id", "old_plan", "new_plan", "effective_at"]);

    let database = Database::new().await;
    let db = sqlx::PgPool::connect_with(database.options()).await.expect("a connection");
    let outbox = migrate(&db).await.expect("tables");
    let infos = relay(&outbox, db.clone()).expect("settings").subscriber_infos();
    let routes: Vec<(String, usize)> = infos
        .iter()
        .map(|info| {
            let known = |name: &String| CATALOG.iter().any(|entry| entry.0 == name.as_str());
            assert!(info.types.iter().all(known), "{}: {:?}", info.name, info.types);
            (info.name.clone(), if info.types.is_empty() { CATALOG.len() } else { info.types.len() })
        })
        .collect();
    let wanted = [("licensing", 9), ("billing", 3), ("notification", 13), ("audit", 30)];
    assert_eq!(routes, wanted.map(|(name, count)| (name.to_owned(), count)));
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

/// What a context must not name: other contexts, adapters, Postrider, the database.
fn crossings(context: &str, text: &str) -> Vec<String> {
    let code = text.lines().map(|line| line.split("//").next().unwrap_or_default());
    let inner = CONTEXTS.iter().filter(|other| **other != context).chain(&["adapters"]);
    let banned: Vec<String> = inner
        .flat_map(|other| [format!("crate::{other}"), format!("super::{other}")])
        .chain(["postrider", "sqlx", "reqwest", "crate::{", "super::{"].map(str::to_owned))
        .collect();
    code.filter(|line| banned.iter().any(|word| line.contains(word.as_str()))).map(str::to_owned).collect()
}

/// U18: the contexts import nothing of one another; a planted crossing is found.
#[test]
fn contexts_import_nothing_of_one_another() {
    for context in CONTEXTS {
        let path = format!("{}/src/{context}.rs", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(path).expect("a context");
        assert_eq!(crossings(context, &text), [""; 0], "{context}");
    }
    for planted in ["use crate::licensing::License;", "use sqlx::PgPool;", "use crate::{contracts, guild};"] {
        assert_eq!(crossings("billing", planted), [planted]);
    }
}
