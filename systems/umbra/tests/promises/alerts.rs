//! The four limits of the document, by the binary and the settings file: quiet at the limit, and firing above it.

use postrider::Uuid;
use postrider_testkit::until;
use umbra::contracts::*;
use umbra::stubs;

use crate::world::{World, serve};

impl World {
    /// The conditions that fire now, with their subscriptions.
    fn firing(&self) -> Vec<String> {
        let readings = self.postrider_json(&["alerts", "check"]);
        let readings = readings.as_array().expect("an array");
        assert_eq!(readings.len(), 16, "four conditions for each of four subscriptions");
        let firing = readings.iter().filter(|reading| reading["firing"] == true);
        let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
        firing
            .map(|reading| format!("{}: {}", text(&reading["subscription"]), text(&reading["condition"])))
            .collect()
    }
}

/// U13: more than 1,000 undelivered events.
#[tokio::test]
async fn a_thousand_undelivered_events_are_quiet_and_one_more_is_not() {
    let mut world = World::new().await;
    world.sleep().await;
    let record = "select events.record('guild', 'GuildOwnerChanged', 'guild', gen_random_uuid()::text, '{}')";
    world.run(&format!("{record} from generate_series(1, 1000)")).await;
    assert_eq!(world.firing(), [""; 0]);
    world.run(record).await;
    assert_eq!(world.firing(), ["audit: undelivered > 1000"]);
    assert_eq!(world.postrider(&["alerts", "check"]).0, Some(1), "it exits with 1");
}

/// U13: the oldest undelivered event is older than a minute.
#[tokio::test]
async fn an_event_may_wait_for_a_minute() {
    let mut world = World::new().await;
    world.sleep().await;
    world.publish(GuildDeleted { guild_id: Uuid::new_v4() }).await;
    for (seconds, firing) in [(55, 0), (61, 3)] {
        world
            .run(&format!(
                "alter table events.event disable trigger refuse;
                 update events.event set recorded_at = clock_timestamp() - interval '{seconds} seconds';
                 alter table events.event enable trigger refuse"
            ))
            .await;
        let found = world.firing();
        assert_eq!(found.len(), firing, "{seconds} s: {found:?}");
        assert!(found.iter().all(|each| each.ends_with(": oldest_seconds > 60")), "{found:?}");
    }
}

/// U13: more than 10 dead events.
#[tokio::test]
async fn ten_dead_events_are_quiet_and_one_more_is_not() {
    let world = World::new().await;
    for (more, firing) in [(10, &[][..]), (1, &["licensing: dead > 10"][..])] {
        // Licensing can't read it; Notification and Audit need not.
        let record =
            "select events.record('billing', 'PlanUpgraded', 'subscription', gen_random_uuid()::text, '{}')";
        world.run(&format!("{record} from generate_series(1, {more})")).await;
        world.quiet().await;
        assert_eq!(world.firing(), firing);
    }
}

/// U13: on average more than one attempt of what is undelivered.
#[tokio::test]
async fn one_attempt_on_average_is_quiet_and_more_are_not() {
    let world = World::new().await;
    world.plant("licensing.licenses", "true").await;
    world.publish(BotInstalled { guild_id: Uuid::new_v4(), installer_user_id: Uuid::new_v4() }).await;
    let attempts = "select coalesce(max(attempts), 0) from events.delivery where subscription = 'licensing'";
    for (attempt, firing) in [(1, &[][..]), (2, &["licensing: mean_attempts > 1"][..])] {
        until("it has failed", async || world.one::<i32>(attempts).await == attempt).await;
        assert_eq!(world.firing(), firing, "{attempt} attempts");
        world.make_due().await;
    }
}

/// U13: the Compose file tells the operators by a process that takes what alerts say.
#[tokio::test(flavor = "multi_thread")]
async fn whom_the_compose_file_names_takes_alerts() {
    const COMPOSE: &str = include_str!("../../compose.yaml");
    let world = World::asleep().await;
    let discord = stubs::discord::Discord::default();
    let address = serve(discord.clone().router()).await;
    let mut lines = COMPOSE.lines().filter_map(|line| line.trim().strip_prefix("ALERT_URL: "));
    let url = lines.next().expect("a line").replace("http://discord:8080", &address);
    assert!(url.starts_with(&address), "{url}");
    assert!(
        COMPOSE.contains(r#"discord: { <<: *umbra, command: ["umbra", "stub-discord"]"#),
        "it is started"
    );
    assert!(COMPOSE.contains(r#"command: ["postrider", "alerts", "run", "#), "somebody tells it");
    let mut test = world.postrider_command(&["alerts", "test"]);
    let output = tokio::task::spawn_blocking(move || test.env("ALERT_URL", url).output().expect("it runs"));
    let output = output.await.expect("no panic");
    let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(output.status.success(), "{text}");
    let told = discord.figures();
    assert!(!told.alerts.is_empty() && told.messages.is_empty(), "{told:?}");
}
