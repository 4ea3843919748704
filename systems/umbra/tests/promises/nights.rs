//! The job of the night: when it runs, and that nobody waits for it.

use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use postrider::Uuid;
use postrider_testkit::{Folder, Program, until};
use serde_json::json;
use umbra::contracts::DAY;

use crate::processes::order;
use crate::running::{Settings, System};

const EVENTS: &str = "select count(*) from events.event";
const NOTE: &str = "select note from events.duty where name = 'umbra-nightly'";

/// A worker that says when it has looked and nothing was due.
const LOUD: Settings<'_> = &[("LOG_LEVEL", "debug")];

/// Waits until a worker has looked at the night, from now on.
async fn a_whole_tick(worker: &Program) {
    let looks = || worker.errors().text().matches("no retention is due").count();
    let before = looks();
    // The first look may have begun before; the second one has not.
    until("the worker has looked", async || looks() >= before + 2).await;
}

/// Turns the clock of what is settled, when each subscription has passed every event.
async fn a_month_passes(system: &System) {
    let passed = "select count(distinct subscription) from events.settled_batch
        where last_id >= (select max(id) from events.event)";
    until("all four have passed it", async || system.one::<i64>(passed).await == 4).await;
    let old = "update events.settled_batch set settled_at = clock_timestamp() - interval '31 days'";
    sqlx::query(old).execute(&system.db).await.expect("turned");
}

/// U12, X2: once a night, by the settings file, one worker archives: not before the night, and not a second time in it, nor does another
/// worker.
#[tokio::test]
async fn the_worker_keeps_the_nights() {
    let system = System::new().await;
    // Noon in Seoul of some day: no night comes by itself.
    let noon = DAY - (umbra::adapters::clock::machine() + 9 * 3600).rem_euclid(DAY) + DAY / 2;
    system.turn(noon).await;
    let (worker, _) = system.start_with("worker", LOUD).await;
    let noted = "select count(*) from events.duty where name = 'umbra-nightly' and note is not null";
    until("the night before is over", async || system.one::<i64>(noted).await == 1).await;

    let installed = json!({ "guild_id": Uuid::new_v4(), "installer_user_id": Uuid::new_v4() });
    let (_bot, bot) = system.start("bot").await;
    let installed = json!({ "t": "GUILD_CREATE", "d": installed });
    assert_eq!(system.post(format!("{bot}/gateway"), installed.clone()).await, Some(200));
    system.quiet().await;
    a_month_passes(&system).await;
    a_whole_tick(&worker).await;
    let kept = system.one::<i64>("select count(*) from audit.events").await;
    assert_eq!(system.one::<i64>(EVENTS).await, kept, "not before the night");
    let note = system.one::<String>(NOTE).await;
    // A quarter to four, and a quarter past.
    system.turn(noon + DAY / 2 + 4 * 3600 - 900).await;
    a_whole_tick(&worker).await;
    assert_eq!(system.one::<i64>(EVENTS).await, kept, "not before four");
    system.turn(noon + DAY / 2 + 4 * 3600 + 900).await;
    until("the night is over", async || system.one::<i64>(EVENTS).await == 0).await;
    // The log may be empty before the job has ended.
    until("the job has ended", async || system.one::<String>(NOTE).await != note).await;
    assert_eq!(system.one::<i64>("select count(*) from audit.events").await, kept);

    assert_eq!(system.post(format!("{bot}/gateway"), installed).await, Some(200));
    system.quiet_but_for(kept).await;
    a_month_passes(&system).await;
    let left = system.one::<i64>(EVENTS).await;
    a_whole_tick(&worker).await;
    assert_eq!((left > 0, system.one::<i64>(EVENTS).await), (true, left), "only once");
    assert_eq!(worker.stop().await, Some(0));
    let (heir, _) = system.start_with("worker", LOUD).await;
    a_whole_tick(&heir).await;
    assert_eq!(system.one::<i64>(EVENTS).await, left, "nor by another worker");
    system.turn(noon + DAY + DAY / 2 + 4 * 3600 + 900).await;
    until("the next night is over", async || system.one::<i64>(EVENTS).await == 0).await;
}

/// U9, U12: the first night may take long. Meanwhile the worker charges what is due.
#[tokio::test]
async fn a_long_night_delays_no_charge() {
    let system = System::new().await;
    let folder = Folder::new();
    // An archive that does not end: it waits for somebody who writes into a pipe.
    let (pipe, began) = (folder.path().join("pipe"), folder.path().join("began"));
    assert!(Command::new("mkfifo").arg(&pipe).status().expect("mkfifo").success());
    let script = format!("#!/bin/sh\n: > {}\nexec cat {}\n", began.display(), pipe.display());
    let archive = folder.file("archive", &script);
    std::fs::set_permissions(&archive, std::fs::Permissions::from_mode(0o755)).expect("a program");
    let archive = archive.display().to_string();
    let (_api, api) = system.start("api").await;
    let (worker, _) = system.start_with("worker", &[("POSTRIDER", archive.as_str())]).await;
    until("the night has begun", async || began.is_file()).await;

    assert_eq!(system.post(format!("{api}/subscriptions"), order(Uuid::new_v4())).await, Some(200));
    system.turn(30 * DAY + 10).await;
    let paid = "select count(*) from events.event where event_type = 'PaymentSucceeded'";
    until("it is charged", async || system.one::<i64>(paid).await == 1).await;
    let noted = "select count(*) from events.duty where name = 'umbra-nightly' and note is not null";
    assert_eq!(system.one::<i64>(noted).await, 0, "the night is not over");
    assert_eq!(worker.stop().await, Some(0));
}
