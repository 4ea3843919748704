//! What operators do with the binary `postrider` and the settings file.

use std::collections::BTreeSet;

use postrider::Uuid;
use umbra::adapters::nightly::Nights;
use umbra::contracts::*;

use crate::world::World;

impl World {
    /// Turns the clock of what is settled.
    async fn settled_ago(&self, ago: &str) {
        self.run(&format!(
            "update events.settled_batch set settled_at = clock_timestamp() - interval '{ago}'"
        ))
        .await;
    }
}

/// U12, U17: delivered events stay for 30 days and then leave the log. Audit has them already, masked; what it lacks is added, masked,
/// and nothing that has left is delivered again.
#[tokio::test]
async fn events_leave_the_log_after_thirty_days() {
    let world = World::new().await;
    let session_id = "s3cret".to_owned();
    let session = world.publish(UserSessionCreated { user_id: Uuid::new_v4(), session_id }).await;
    world.subscribed(Uuid::new_v4()).await;
    assert_eq!(world.types().await, ["LicenseGranted", "SubscriptionStarted", "UserSessionCreated"]);
    let trail = "select string_agg(t::text, ';' order by t::text) from audit.events t";
    let before = world.one::<String>(trail).await;
    // As if Audit had missed one.
    world.run("delete from audit.events where event_type = 'UserSessionCreated'").await;

    world.settled_ago("29 days 23 hours 59 minutes").await;
    assert_eq!(world.postrider(&["archive", "--yes"]).0, Some(0));
    assert_eq!(world.one::<i64>("select count(*) from events.event").await, 3, "not yet");
    world.settled_ago("30 days 1 minute").await;
    let report = world.postrider_json(&["archive", "--yes", "--why", "day 30"]);
    assert_eq!(report["taken"][0]["rows"], 3, "{report}");
    assert_eq!(world.one::<i64>("select count(*) from events.event").await, 0);
    assert_eq!(world.one::<String>(trail).await, before, "the trail has all three, masked, each once");
    assert!(before.contains("***") && !before.contains("s3cret"), "{before}");

    let again = ["replay", "audit", "--event", &session.to_string(), "--yes", "--no-wait"];
    let (code, text) = world.postrider(&again);
    assert_eq!(code, Some(1), "an archived event can't be published again: {text}");
    let (code, text) = world.postrider(&["replay", "audit", "--since", "60d", "--yes", "--no-wait"]);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("removed") || text.contains("archive"), "{text}");
}

/// U5: who was told of an event is not told again when it is replayed, whether or not Discord still knows the nonce: its messages are
/// looked at before it is asked. What is not among them is sent.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replay_tells_nobody_twice() {
    let world = World::new().await;
    world.subscribed(Uuid::new_v4()).await;
    let event =
        world.one::<Uuid>("select event_id from events.event where event_type = 'SubscriptionStarted'");
    let event = event.await.to_string();
    let replay = ["replay", "notification", "--event", event.as_str(), "--yes", "--why", "a look"];
    for (kept, requests) in [(true, 1), (false, 2)] {
        if !kept {
            world.run("delete from notification.messages").await;
        }
        let (code, text) = world.postrider(&replay);
        assert_eq!(code, Some(0), "{text}");
        world.quiet().await;
        assert_eq!(world.discord.figures().requests, requests, "kept: {kept}");
        assert_eq!(world.messages().await, ["pro activated"]);
    }
}

/// X2: retention runs at 04:00 in Seoul: `postrider` and the worker read that in the same file, and another time there is another night.
#[tokio::test]
async fn the_night_of_the_worker_is_that_of_the_settings() {
    let world = World::asleep().await;
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/umbra.toml");
    let text = std::fs::read_to_string(file).expect("the settings file");
    let written = text.parse::<toml::Table>().expect("TOML");
    let retention = |name: &str| written["retention"][name].as_str().expect("a text").to_owned();
    assert_eq!([retention("at"), retention("zone")], ["04:00", "Asia/Seoul"]);
    let settings = world.postrider_json(&["config", "check"]).to_string();
    for part in [retention("at").as_str(), retention("zone").as_str(), "audit.events", "skip", "30d"] {
        assert!(settings.contains(part), "{part}: {settings}");
    }
    let nights = Nights::parse(&text).expect("a time");
    let (day, hour) = (20_000 * DAY, 3600);
    assert_eq!(
        nights.last(day + 19 * hour) - nights.last(day + 19 * hour - 1),
        1,
        "19:00 UTC is 04:00 in Seoul"
    );
    let later = Nights::parse(&text.replace("at = \"04:00\"", "at = \"06:00\"")).expect("a time");
    assert_eq!(later.last(day + 19 * hour) - later.last(day + 19 * hour - 1), 0);
    assert_eq!(later.last(day + 21 * hour) - later.last(day + 21 * hour - 1), 1);
}

/// U13: the dashboard shows the four figures with their limits and how retry counts are distributed, by metrics that exist.
#[test]
fn the_dashboard_shows_metrics_that_exist() {
    let text = include_str!("../../dashboard.json");
    let board: serde_json::Value = serde_json::from_str(text).expect("JSON");
    let mut shown = BTreeSet::new();
    let mut limits = Vec::new();
    for panel in board["panels"].as_array().expect("panels") {
        for target in panel["targets"].as_array().into_iter().flatten() {
            let query = target["expr"].as_str().expect("a query");
            let words = query.split(|sign: char| !sign.is_ascii_alphanumeric() && sign != '_');
            shown.extend(words.filter(|word| word.starts_with("postrider_")).map(str::to_owned));
        }
        let steps = panel["fieldConfig"]["defaults"]["thresholds"]["steps"].as_array();
        limits.extend(steps.into_iter().flatten().filter_map(|step| step["value"].as_i64()));
    }
    let known: BTreeSet<&str> = postrider::metrics::METRICS.iter().map(|metric| metric.name).collect();
    for name in &shown {
        let plain = name.trim_end_matches("_bucket").trim_end_matches("_sum").trim_end_matches("_count");
        assert!(known.contains(name.as_str()) || known.contains(plain), "{name} is no metric");
    }
    for wanted in [
        "postrider_undelivered",
        "postrider_oldest_undelivered_seconds",
        "postrider_dead",
        "postrider_mean_attempts",
        "postrider_attempts_bucket",
    ] {
        assert!(shown.contains(wanted), "{wanted} is not shown");
    }
    for limit in [1000, 60, 10, 1] {
        assert!(limits.contains(&limit), "no panel has the limit {limit}");
    }
}
