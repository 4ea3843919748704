//! What operators do: dead events, alerts, retention.

use std::process::Command;

use story::Story;
use story::testkit::{Process, until};
use uuid::Uuid;

use super::stage::Stage;
use crate::contracts::DAY;

/// How many dead events nobody is told of.
const QUIET: i64 = 10;

/// Runs a command; its exit code.
fn run(command: &mut Command) -> Option<i32> {
    command.output().expect("postrider runs").status.code()
}

/// Records an event that Licensing can't read.
fn record_broken(stage: &Stage) {
    let id = Uuid::new_v4().to_string();
    let (stream, event_type) = (["--stream", "billing"], ["--type", "PlanUpgraded"]);
    let aggregate = ["--aggregate", "subscription", &id, "{}"];
    let record = [&["record"][..], &stream, &event_type, &aggregate].concat();
    assert_eq!(run(&mut stage.postrider(&record)), Some(0), "it is recorded");
}

/// What the operators were told of dead events, the last of it.
fn told(stage: &Stage) -> Option<String> {
    let requests = stage.operators.requests();
    let mut texts = requests.iter().rev().filter_map(|request| request.body["text"].as_str());
    texts.find(|text| text.starts_with("dead > 10 for licensing")).map(str::to_owned)
}

/// Waits until the alerts were looked at, from the beginning to the end.
async fn a_round_of_alerts(stage: &Stage) {
    let lease = "select coalesce(max(extract(epoch from lease_until) * 1000000)::bigint, 0)
        from events.duty where name = 'alerts'";
    let mut last = stage.eye.number(lease).await;
    // Each round renews its lease first. The one that runs may have looked already.
    for _ in 0..2 {
        until("somebody looks after the alerts", async || {
            let before = std::mem::replace(&mut last, stage.eye.number(lease).await);
            last != before
        })
        .await;
    }
}

pub(super) async fn dead_events(story: &mut Story, stage: &Stage) {
    story.part("Events that Licensing can't read");
    let watching = ["alerts", "run", "--set", "relay.alerts_every=1s"];
    let _watch = stage.is_postgres().then(|| {
        let quiet = std::process::Stdio::null;
        Process::start(stage.postrider(&watching).stdout(quiet()).stderr(quiet()))
    });
    (0..QUIET).for_each(|_| record_broken(stage));
    let dead = "select count(*) from events.event_state where state = 'dead' and subscription = 'licensing'";
    stage.comes_to(story, "Dead events of Licensing", dead, QUIET).await;
    if stage.is_postgres() {
        a_round_of_alerts(stage).await;
        story.equal("What the operators are told of ten", told(stage), None);
    }
    record_broken(stage);
    stage.comes_to(story, "Dead events of Licensing", dead, QUIET + 1).await;
    stage.quiet().await;
    let others =
        "select count(*) from events.event_state where state = 'dead' and subscription <> 'licensing'";
    story.equal("Dead events of others", stage.eye.number(others).await, 0);
    if stage.is_postgres() {
        let is_told = async || told(stage).is_some_and(|text| text.contains("it is 11"));
        story.eventually("The operators are told at the eleventh that it is 11", is_told).await;
        story.tell(told(stage).unwrap_or_default());
    }
    let discard = ["dead", "discard", "--all", "--yes", "--why", "the plan is gone"];
    story.equal("An operator discards them", run(&mut stage.postrider(&discard)), Some(0));
    story.equal("Dead events", stage.eye.number(dead).await, 0);
}

pub(super) async fn a_month_later(story: &mut Story, stage: &Stage) {
    story.part("A month later, at 04:00 in Seoul");
    let kept = stage.eye.number("select count(*) from audit.events").await;
    let first = stage.eye.texts("select event_id::text from events.event order by id limit 1").await;
    // What was delivered can't be changed, so the clock of these rows is turned with their guard aside.
    for sql in [
        "update events.settled_batch set settled_at = settled_at - interval '31 days'",
        "alter table events.delivery disable trigger delivery_step",
        "update events.delivery set delivered_at = delivered_at - interval '31 days',
            last_attempt_at = last_attempt_at - interval '31 days'",
        "alter table events.delivery enable trigger delivery_step",
    ] {
        stage.eye.execute(sql).await.expect("turned");
    }
    stage.turn(101 * DAY).await;
    let left = "select count(*) from events.event";
    stage
        .comes_to(story, "Events in the log, when the worker has archived what is 30 days old", left, 0)
        .await;
    let trail = stage.eye.number("select count(*) from audit.events").await;
    story.equal("Rows of the audit trail, as before", trail, kept);
    let again = ["replay", "audit", "--event", first[0].as_str(), "--yes", "--no-wait"];
    story.equal("A replay of what is archived is refused", run(&mut stage.postrider(&again)), Some(1));
    story.equal("All four limits are kept", run(&mut stage.postrider(&["alerts", "check"])), Some(0));
}
