//! `replay` brings events again, where it may.

use std::process::Stdio;

use crate::support::log::{Log, Mess};
use crate::support::{RelayProcess, postrider, until_true};

crate::on_both!(
    a_replay_brings_everything_from_an_event_on_again,
    a_replay_as_a_new_subscription_leaves_the_old_one_alone,
    a_replay_that_nobody_delivers_ends_and_says_what_is_missing,
    a_replay_is_refused_where_it_must_be,
    a_replay_that_was_killed_is_found_by_who_looks,
    a_replay_that_is_given_up_leaves_nothing_behind,
    a_replay_beyond_what_the_inbox_remembers_takes_a_word,
);

const RELAY: &str = "[relay]\nlease = \"2s\"\n[http]\nlisten = \"off\"\n[[subscription]]\nname = \"out\"\nsink = \"out\"\n[sink.out]\ntype = \"stdout\"\n";

async fn a_replay_brings_everything_from_an_event_on_again(log: Log) {
    let relay_process = RelayProcess::with(log.folder.path(), &log.url, "relay_process", RELAY);
    let mut events = Vec::new();
    for number in 0..10 {
        events.push(log.record(&(number % 2).to_string(), number).await.to_string());
    }
    until_true("all are delivered", || relay_process.lines().len() == 10).await;
    until_true("all are settled", || {
        log.run(&["status", "--json"]).json()["subscriptions"][0]["processing"] == 0
    })
    .await;
    let dry = log.run(&["replay", "out", "--event", &events[4], "--dry-run", "--json"]).json();
    assert_eq!((&dry["events"], &dry["counted"], &dry["dry_run"]), (&6.into(), &true.into(), &true.into()));
    for begin in [&["--since", "1h"][..], &["--since", "-5m"], &["--since=-5m"]] {
        let text = log.run(&[&["replay", "out", "--dry-run"], begin].concat()).good();
        assert!(text.contains("10 events (from ") && text.contains("nothing was changed"), "{text}");
    }
    let sentence = log.run(&["replay", "out", "--event", &events[4]]).sentence(2);
    assert!(sentence.contains("6 events") && sentence.contains("pass --yes"), "{sentence}");

    let said = log.run(&["replay", "out", "--event", &events[4], "--yes", "--why", "the shop lost them"]);
    assert!(said.err.contains("out has caught up"), "{}{}", said.out, said.err);
    assert!(said.good().contains("6 events"));
    let numbers: Vec<u64> = relay_process.lines().into_iter().map(|(_, number)| number).collect();
    let again: Vec<u64> = numbers[10..].to_vec();
    assert_eq!(numbers.len(), 16, "each from there on once more: {numbers:?}");
    for parity in [0, 1] {
        let of_key: Vec<u64> = again.iter().copied().filter(|number| number % 2 == parity).collect();
        assert!(of_key.is_sorted(), "in order: {again:?}");
    }
    let status = log.run(&["status", "--json"]).json();
    assert_eq!(status["subscriptions"][0]["paused"], false, "it goes on");
    let audit = log.run(&["audit", "--json"]).json();
    assert!(
        audit[0]["what"]
            .as_str()
            .is_some_and(|what| what.starts_with(&format!("replay from event {}", events[4]))),
        "{audit}"
    );
    assert_eq!(audit[0]["why"], "the shop lost them");
}

async fn a_replay_as_a_new_subscription_leaves_the_old_one_alone(log: Log) {
    let mess = Mess::new(log).await;
    let before = mess.log.run(&["status", "mail", "--json"]).json();
    let event = mess.retrying.to_string();
    let arguments = ["replay", "mail", "--event", &event, "--as", "mail-again", "--yes", "--no-wait"];
    let said = mess.log.run(&arguments);
    assert!(said.err.contains("[[subscription]] named mail-again"), "{}", said.err);
    said.good();
    let after = mess.log.run(&["status", "mail", "--json"]).json();
    assert_eq!(
        before["subscriptions"][0]["lanes"][0]["reached"],
        after["subscriptions"][0]["lanes"][0]["reached"]
    );
    let list = mess.log.run(&["subscriptions", "list", "--json"]).json();
    let new = list
        .as_array()
        .expect("an array")
        .iter()
        .find(|each| each["name"] == "mail-again")
        .expect("it is there");
    assert_eq!((&new["on_dead"], &new["lanes"]), (&"hold".into(), &1.into()), "like the old one");
    let settings = RELAY.replace("name = \"out\"", "name = \"mail-again\"\non_dead = \"hold\"");
    let relay_process = RelayProcess::with(mess.log.folder.path(), &mess.log.url, "relay_process", &settings);
    until_true("all from there on are delivered", || {
        relay_process.lines().iter().any(|(_, number)| *number == 7)
    })
    .await;
    let numbers: Vec<u64> = relay_process.lines().into_iter().map(|(_, number)| number).collect();
    assert!((2..=7).all(|number| numbers.contains(&number)) && !numbers.contains(&0), "{numbers:?}");
    let sentence = mess.log.run(&["replay", "mail", "--since", "1h", "--as", "resting", "--yes"]).sentence(1);
    assert!(sentence.contains("choose another name"), "{sentence}");
}

async fn a_replay_that_nobody_delivers_ends_and_says_what_is_missing(log: Log) {
    let mess = Mess::new(log).await;
    let event = mess.done.to_string();
    let arguments = ["replay", "mail", "--event", &event, "--as", "again", "--yes", "--wait", "300ms"];
    let said = mess.log.run(&arguments);
    let sentence = said.err.lines().last().unwrap_or_default();
    assert_eq!(said.code, Some(1), "{}", said.err);
    assert!(
        sentence.contains("again has not caught up after ")
            && sentence.contains(": up to ")
            && sentence.contains(" events to go."),
        "{sentence}"
    );
    let missing = "No relay runs it; start one that has a [[subscription]] named again";
    assert!(sentence.contains(missing), "{sentence}");
    // One that has it is waited for, though it holds no lane just now.
    mess.log.run_by("night-1", &["once more"]).await;
    let arguments = ["replay", "mail", "--event", &event, "--as", "once more", "--yes", "--wait", "300ms"];
    let sentence = mess.log.run(&arguments).err;
    let going_on = "night-1 has it and continues; `postrider status 'once more'` shows the progress";
    assert!(sentence.contains(going_on) && !sentence.contains("No relay"), "{sentence}");
    assert!(said.out.contains("again replays "), "it was made: {}", said.out);
}

async fn a_replay_is_refused_where_it_must_be(log: Log) {
    log.run(&["subscriptions", "create", "ledger", "--no-replay"]).good();
    let sentence = log.run(&["replay", "ledger", "--since", "1h", "--yes"]).sentence(1);
    assert!(sentence.contains("forbids replay"), "{sentence}");
    log.run(&["subscriptions", "remove", "ledger", "--yes"]).good();
    let mess = Mess::new(log).await;
    let sentence = mess.log.run(&["replay", "growing", "--since", "1h", "--yes"]).sentence(1);
    assert!(sentence.contains("are being changed"), "{sentence}");
    let sentence =
        mess.log.run(&["replay", "mail", "--event", &mess.archived.to_string(), "--yes"]).sentence(1);
    assert!(sentence.contains("retention has removed events"), "{sentence}");
    let nobody = postrider::Uuid::new_v4().to_string();
    let sentence = mess.log.run(&["replay", "mail", "--event", &nobody, "--yes"]).sentence(1);
    assert!(sentence.contains("there is no event"), "{sentence}");
    assert!(
        mess.log.run(&["replay", "mali", "--since", "1h"]).sentence(1).contains("did you mean \"mail\"?")
    );
    assert_eq!(mess.log.run(&["replay", "mail"]).code, Some(2));
    assert_eq!(mess.log.run(&["replay", "mail", "--since", "soon"]).code, Some(2));
    assert!(mess.log.run(&["audit", "--json"]).json().to_string().matches("replay").count() == 0);
}

async fn a_replay_that_was_killed_is_found_by_who_looks(log: Log) {
    log.run(&["subscriptions", "create", "mail"]).good();
    for number in 0..3 {
        log.record("7", number).await;
    }
    // A holder that does not give its lane back: the replay waits for it, and the subscription is paused meanwhile.
    let mut lease = log.claim("mail").await;
    log.settle(&mut lease, |_, _| None).await;
    let replay = ["replay", "mail", "--since", "1h", "--yes", "--no-wait", "--who", "ada"];
    let mut child = postrider(&log.url, &replay).stderr(Stdio::null()).spawn().expect("it starts");
    let status = || log.run(&["status", "--json"]).json()["subscriptions"][0].clone();
    until_true("it is paused", || status()["paused"] == true).await;
    child.kill().expect("killed");
    child.wait().expect("gone");

    assert_eq!(status()["paused_for_replay"]["who"], "ada");
    let words = ["mail is paused for a replay that ada started at ", "postrider subscriptions resume mail"];
    let doctor = log.run(&["doctor", "--json"]).json();
    let finding =
        doctor["findings"].as_array().expect("findings").iter().find(|each| each["about"] == "replay");
    let finding = finding.expect("a finding");
    assert_eq!(finding["verdict"], "warn");
    let found = format!("{} {}", finding["what"], finding["remedy"]);
    for text in [log.run(&["status"]).good(), found, log.run(&replay).sentence(1)] {
        assert!(words.iter().all(|word| text.contains(word)), "{text}");
    }
    assert!(log.run(&["replay", "mail", "--since", "1h", "--dry-run"]).good().contains("3 events"));

    log.run(&["subscriptions", "resume", "mail"]).good();
    assert!(status()["paused_for_replay"].is_null(), "{}", status());
    log.store.release(lease).await.expect("released");
    assert!(log.run(&replay).good().contains("3 events"));
    assert_eq!((&status()["paused"], &status()["pending"]), (&false.into(), &3.into()));

    // A pause of somebody's own is no replay, and a replay leaves it at that.
    let mut lease = log.claim("mail").await;
    log.settle(&mut lease, |_, _| None).await;
    log.store.release(lease).await.expect("released");
    log.run(&["subscriptions", "pause", "mail", "--yes"]).good();
    assert!(status()["paused_for_replay"].is_null(), "{}", status());
    assert!(!log.run(&["doctor"]).good().contains("paused for a replay"));
    let said = log.run(&replay);
    assert!(
        said.err.contains("is paused; nothing is delivered until you resume it"),
        "{}{}",
        said.out,
        said.err
    );
    assert_eq!((&status()["paused"], &status()["paused_for_replay"]), (&true.into(), &().into()));
}

async fn a_replay_that_is_given_up_leaves_nothing_behind(log: Log) {
    log.run(&["subscriptions", "create", "mail"]).good();
    log.record("7", 0).await;
    let mut lease = log.claim("mail").await;
    log.settle(&mut lease, |_, _| None).await;
    let replay = ["replay", "mail", "--since", "1h", "--yes"];
    let child = postrider(&log.url, &replay).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let child = child.expect("it starts");
    let status = || log.run(&["status", "--json"]).json()["subscriptions"][0].clone();
    until_true("it is paused", || status()["paused"] == true).await;
    let asked = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(asked.expect("kill").success());
    let output = child.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(1) && said.contains("nothing was changed"), "{said}");
    assert_eq!((&status()["paused"], &status()["pending"]), (&false.into(), &0.into()));
    // Who pauses it by other means than the command is not taken for the replay.
    log.log.pause("mail", Some(&postrider::store::Pause::by("ada"))).await.expect("paused");
    assert!(status()["paused_for_replay"].is_null(), "{}", status());
}

async fn a_replay_beyond_what_the_inbox_remembers_takes_a_word(log: Log) {
    log.run(&["subscriptions", "create", "books", "--stream", "orders"]).good();
    let event = log.record("1", 1).await;
    let mut lease = log.claim("books").await;
    log.settle(&mut lease, |_, _| None).await;
    log.store.release(lease).await.expect("released");
    log.handled("books", event).await;
    let replay = ["replay", "books", "--since", "1h", "--yes", "--no-wait"];
    let dry = log.run(&[&replay[..], &["--dry-run", "--json"]].concat()).json();
    assert_eq!(dry["events"], 1, "the inbox remembers it");
    log.run(&["prune", "--inbox", "1ms", "--yes"]).good();
    let sentence = log.run(&replay).sentence(1);
    assert!(sentence.contains("forgotten") && sentence.contains("effects may repeat"), "{sentence}");
    log.run(&[&replay[..], &["--effects-may-repeat"]].concat()).good();
    let audit = log.run(&["audit", "--json"]).json();
    assert!(audit[0]["what"].as_str().is_some_and(|what| what.contains("(1 event ")), "{audit}");
}

/// What was done is written down, so that nobody takes it for cut short and does it again.
#[tokio::test(flavor = "multi_thread")]
async fn a_replay_whose_subscription_cannot_be_resumed_was_done_all_the_same() {
    let log = Log::postgres().await;
    log.run(&["subscriptions", "create", "out", "--stream", "orders"]).good();
    log.record("1", 1).await;
    let mut lease = log.claim("out").await;
    log.settle(&mut lease, |_, _| None).await;
    log.store.release(lease).await.expect("released");
    let pool = sqlx::PgPool::connect(&log.url).await.expect("connected");
    let refuse = "create function refuse() returns trigger language plpgsql as $$ begin raise exception 'not now'; end $$; \
         create trigger refuse before update on postrider.subscription for each row \
         when (old.paused and not new.paused) execute function refuse()";
    sqlx::raw_sql(refuse).execute(&pool).await.expect("made");
    let sentence = log.run(&["replay", "out", "--since", "1h", "--yes", "--no-wait"]).sentence(1);
    assert!(sentence.contains("the position was reset, but resuming failed"), "{sentence}");
    let audit = log.run(&["audit", "--json"]).json();
    assert!(audit[0]["what"].as_str().is_some_and(|what| what.starts_with("replay from ")), "{audit}");
    sqlx::raw_sql("drop trigger refuse on postrider.subscription").execute(&pool).await.expect("dropped");
    pool.close().await;
    let again = log.run(&["replay", "out", "--since", "1h", "--dry-run", "--yes"]).good();
    assert!(!again.contains("has not finished"), "{again}");
    let status = log.run(&["status", "--json"]).json();
    assert_eq!(status["subscriptions"][0]["paused"], true);
    assert!(!log.run(&["status"]).good().contains("has not finished"));
    log.run(&["subscriptions", "resume", "out", "--yes"]).good();
}
