//! The catalog of Umbra, made of its types and its relay, and the pages that show it.

use std::collections::BTreeMap;
use std::path::Path;

use postrider::catalog::{CatalogFile, problems, render};
use umbra::adapters::{delivery::Delivery, discord::Discord, events, postgres::relay::relay};
use umbra::contracts;

use crate::world::World;

/// What each handler may record.
const FOLLOW_UPS: &str = "\
billing BillingKeyDeleted SubscriptionSuspended,SubscriptionCanceled
billing BotKicked SubscriptionSuspended,SubscriptionCanceled
billing GuildDeleted SubscriptionCanceled
licensing BillingKeyDeleted LicenseSuspended
licensing BotInstalled LicenseGranted,LicenseDowngraded
licensing BotKicked LicenseSuspended
licensing GuildDeleted LicenseCanceled
licensing PaymentFailedFinal LicenseDowngraded
licensing PaymentSucceeded LicenseExtended,LicenseDowngraded
licensing SubscriptionStarted LicenseGranted
licensing SubscriptionSuspended LicenseSuspended";

/// Compares a page with its file. With `UMBRA_PAGES` in the environment the file is written.
fn current(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs").join(name);
    if std::env::var_os("UMBRA_PAGES").is_some() {
        std::fs::write(&path, text).expect("the page can be written");
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(
        written, text,
        "{name} is old: run this test with UMBRA_PAGES=1, and look at what has changed"
    );
}

fn routes(catalog: &CatalogFile) -> BTreeMap<&str, usize> {
    let mut routes = BTreeMap::new();
    for subscriber in catalog.events.iter().flat_map(|event| catalog.subscribers_of(event)) {
        *routes.entry(subscriber.name.as_str()).or_default() += 1;
    }
    routes
}

/// U8: the catalog has 30 events of six contexts and 55 routes, with what follows from what, and its pages are current.
#[tokio::test]
async fn the_catalog_of_the_types_has_the_events_and_the_routes_of_the_document() {
    let world = World::asleep().await;
    let delivery = Delivery::read(None).expect("the settings that are built in");
    let relay = relay(&world.outbox, Discord::new("http://127.0.0.1:9"), &delivery).expect("settings");
    let catalog = events::catalog().relay(&relay);
    let file = catalog.file();
    assert_eq!(problems(file), [], "nothing is odd");
    let mut named: Vec<_> = contracts::CATALOG.iter().map(|(name, context, _)| (*name, *context)).collect();
    named.sort_unstable();
    let found: Vec<_> =
        file.events.iter().map(|event| (event.name.as_str(), event.stream.as_str())).collect();
    assert_eq!((found.len(), found), (30, named));
    let counts = [("audit", 30), ("billing", 3), ("licensing", 9), ("notification", 13)];
    assert_eq!(routes(file), BTreeMap::from(counts), "55 routes");
    let mut follow_ups = Vec::new();
    for subscriber in &file.subscribers {
        for (event, handler) in subscriber.handlers.iter().filter(|(_, each)| !each.follow_ups.is_empty()) {
            follow_ups.push(format!("{} {event} {}", subscriber.name, handler.follow_ups.join(",")));
        }
    }
    follow_ups.sort_unstable();
    assert_eq!(follow_ups, FOLLOW_UPS.lines().collect::<Vec<_>>());
    current("events.md", &render::markdown(file));
    current("events.mermaid", &render::mermaid(file));
}
