//! What operators do: dead events, alerts, retention.

use std::process::Command;

use story::Story;
use story::testkit::{Process, until, until_true};
use uuid::Uuid;

use super::stage::Stage;
use crate::contracts::DAY;

/// How many broken events it takes until somebody is told.
const BROKEN: i64 = 11;

/// Runs a command; its exit code.
fn run(command: &mut Command) -> Option<i32> {
    command.output().expect("postrider runs").status.code()
}

pub(super) async fn dead_events(story: &mut Story, stage: &Stage) {
    story.part("Events that Licensing can't read");
    let watching = ["alerts", "run", "--set", "relay.alerts_every=1s"];
    let _watch = stage.is_postgres().then(|| {
        let quiet = std::process::Stdio::null;
        Process::start(stage.postrider(&watching).stdout(quiet()).stderr(quiet()))
    });
    for _ in 0..BROKEN {
        let id = Uuid::new_v4().to_string();
        let record = [
            "record",
            "--stream",
            "billing",
            "--type",
            "PlanUpgraded",
            "--aggregate",
            "subscription",
            &id,
            "{}",
        ];
        assert_eq!(run(&mut stage.postrider(&record)), Some(0), "it is recorded");
    }
    stage.quiet().await;
    let dead = "select count(*) from events.event_state where state = 'dead' and subscription = 'licensing'";
    story.equal("Dead, and only for Licensing", stage.eye.number(dead).await, BROKEN);
    if stage.is_postgres() {
        let told = |text: &str| {
            let requests = stage.operators.requests();
            requests.iter().any(|request| {
                request.body["text"].as_str().is_some_and(|sentence| sentence.starts_with(text))
            })
        };
        until_true("the operators are told", || told("dead > 10 for licensing")).await;
        story.holds("The operators are told at the eleventh", true, "dead > 10 for licensing: it is 11");
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
    until("the worker has archived", async || stage.eye.number(left).await == 0).await;
    story.tell("The worker has archived what was delivered 30 days ago.");
    let trail = stage.eye.number("select count(*) from audit.events").await;
    story.equal("Rows of the audit trail, as before", trail, kept);
    let again = ["replay", "audit", "--event", first[0].as_str(), "--yes", "--no-wait"];
    story.equal("A replay of what is archived is refused", run(&mut stage.postrider(&again)), Some(1));
    story.equal("All four limits are kept", run(&mut stage.postrider(&["alerts", "check"])), Some(0));
}
