//! `dead` shows what was given up, and does what operators say, in order and written down.

use std::io::Write;
use std::process::{Command, Stdio};

use postrider::Uuid;
use postrider::store::{DeliveryChange, DeliveryFailure, Subscription};

use crate::support::log::{Log, Mess};
use crate::support::{RelayProcess, postrider, until_true};

crate::on_both!(
    the_dead_are_listed_and_shown_with_their_errors,
    the_dead_fit_into_80_columns_with_what_went_wrong,
    a_requeue_keeps_the_order_of_its_aggregate,
    a_discard_lets_the_key_go_on_and_is_written_down,
    nothing_happens_unless_it_is_said_which_and_confirmed,
    a_question_on_a_terminal_is_answered_by_its_answer,
    many_that_are_named_are_written_down_as_named,
);

const RELAY: &str = "[relay]\nlease = \"2s\"\n[http]\nlisten = \"127.0.0.1:0\"\n\
     [[subscription]]\nname = \"mail\"\nsink = \"out\"\non_dead = \"hold\"\n[sink.out]\ntype = \"stdout\"\n";

async fn the_dead_are_listed_and_shown_with_their_errors(log: Log) {
    let mess = Mess::new(log).await;
    let list = mess.log.run(&["dead", "list", "--json"]).json();
    let one = &list.as_array().expect("an array")[0];
    assert_eq!(one["event"]["event_id"], mess.dead.to_string());
    assert_eq!((&one["subscription"], &one["attempts"]), (&"mail".into(), &3.into()));
    assert_eq!(one["error_code"], "rejected");
    assert!(one["last_attempt_at"].is_string() && one["first_failed_at"].is_string(), "{one}");
    assert!(!list.to_string().contains("planted-payload"), "{list}");
    let text = mess.log.run(&["dead", "list"]).good();
    assert!(text.contains("there is no such address") && text.contains("Order:gone"), "{text}");
    for (flags, many) in [
        (&["--subscription", "mail"][..], 1),
        (&["--subscription", "resting"], 0),
        (&["--type", "Order*"], 1),
        (&["--type", "Invoice*"], 0),
        (&["--code", "rejected"], 1),
        (&["--code", "timeout"], 0),
        (&["--since", "1h"], 1),
        (&["--until", "2001-01-01"], 0),
    ] {
        let list = mess.log.run(&[&["dead", "list", "--json"], flags].concat()).json();
        assert_eq!(list.as_array().expect("an array").len(), many, "{flags:?}");
    }
    let text = mess.log.run(&["dead", "show", &mess.dead.to_string()]).good();
    assert!(text.contains("rejected: there is no such address"), "{text}");
    assert!(text.contains(&format!("postrider dead requeue {}", mess.dead)), "{text}");
    let sentence = mess.log.run(&["dead", "show", &mess.done.to_string()]).sentence(1);
    assert!(sentence.contains("is not dead for any subscription"), "{sentence}");
}

async fn the_dead_fit_into_80_columns_with_what_went_wrong(log: Log) {
    let subscription = "orders-to-the-warehouse-in-hamburg";
    log.store.subscribe(&Subscription::new(subscription)).await.expect("subscribe");
    let event = log.record("7", 1).await;
    let mut lease = log.claim(subscription).await;
    let why = "the endpoint answered 422: the field customer.address.postal_code must have five digits";
    log.settle(&mut lease, |_, id| Some(DeliveryChange::dead(id, 12, DeliveryFailure::new("http-422", why))))
        .await;
    let output = postrider(&log.url, &["dead", "list"]).env("COLUMNS", "80").output().expect("it runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    let all: Vec<&str> = text.split_whitespace().collect();
    for whole in [event.to_string().as_str(), "12"] {
        assert!(all.contains(&whole), "{whole}: {text}");
    }
    assert!(all.join(" ").contains(&format!("http-422: {why}")), "{text}");
    assert!(text.contains("orders-to-the-wareh"), "{text}");
    let wide = postrider(&log.url, &["dead", "list"]).env("COLUMNS", "400").output().expect("it runs");
    assert_eq!(
        String::from_utf8_lossy(&wide.stdout).lines().count(),
        2,
        "a line for each where there is room"
    );
}

/// The event that died comes first, and those that waited behind it after it, although another key went on meanwhile.
async fn a_requeue_keeps_the_order_of_its_aggregate(log: Log) {
    let mess = Mess::new(log).await;
    mess.free().await;
    let relay_process = RelayProcess::with(mess.log.folder.path(), &mess.log.url, "relay_process", RELAY);
    let of_gone = || {
        let lines = relay_process.lines().into_iter().filter(|(key, _)| key.contains("gone"));
        lines.map(|(_, number)| number).collect::<Vec<u64>>()
    };
    let fresh = |number: u64| relay_process.lines().iter().any(|(_, each)| *each == number);
    until_true("another key goes on", || fresh(7)).await;
    mess.log.record("gone", 8).await;
    mess.log.record("fine", 9).await;
    until_true("what came after is delivered", || fresh(9)).await;
    assert!(of_gone().is_empty(), "the key waits for an operator: {:?}", of_gone());

    let id = mess.dead.to_string();
    let out = mess.log.run(&["dead", "requeue", &id, "--yes", "--who", "ada", "--why", "mended"]).good();
    assert_eq!(out, "requeued 1 dead event\n");
    until_true("all of the key are delivered", || of_gone().len() >= 4).await;
    assert_eq!(of_gone(), [4, 5, 6, 8], "in the order in which they were recorded");
    let audit = mess.log.run(&["audit", "--json"]).json();
    let entry = &audit[0];
    assert_eq!(
        (&entry["who"], &entry["what"], &entry["why"]),
        (&"ada".into(), &"requeue".into(), &"mended".into())
    );
    assert_eq!((&entry["subscription"], &entry["event_id"]), (&"mail".into(), &id.into()));
    let text = mess.log.run(&["audit"]).good();
    assert!(text.contains("ada") && text.contains("requeue") && text.contains("mended"), "{text}");
}

async fn a_discard_lets_the_key_go_on_and_is_written_down(log: Log) {
    let mess = Mess::new(log).await;
    let dry = mess.log.run(&["dead", "discard", "--all", "--dry-run", "--json"]).json();
    assert_eq!((&dry["dry_run"], &dry["changed"]), (&true.into(), &0.into()));
    assert_eq!(
        (&dry["subscriptions"]["mail"], &dry["events"][0]),
        (&1.into(), &mess.dead.to_string().into())
    );
    let text = mess.log.run(&["dead", "discard", "--all", "--dry-run"]).good();
    assert!(text.contains("would discard 1 dead event (1 of mail); nothing was changed"), "{text}");
    assert_eq!(mess.log.run(&["dead", "list", "--json"]).json().as_array().map(Vec::len), Some(1));

    let arguments = ["dead", "discard", "--code", "rejected", "--yes", "--why", "the shop closed", "--json"];
    assert_eq!(mess.log.run(&arguments).json()["changed"], 1);
    let page = mess.log.run(&["events", "show", &mess.dead.to_string()]).good();
    assert!(page.contains("mail: discarded"), "{page}");
    let audit = mess.log.run(&["audit", "--json"]).json();
    assert_eq!((&audit[0]["what"], &audit[0]["why"]), (&"discard".into(), &"the shop closed".into()));
    assert!(audit[0]["who"].as_str().is_some_and(|who| who.contains('@')), "{audit}");
    let text = mess.log.run(&["dead", "requeue", "--all", "--yes"]).good();
    assert_eq!(text, "no dead events match; nothing was changed\n");
}

async fn nothing_happens_unless_it_is_said_which_and_confirmed(log: Log) {
    let mess = Mess::new(log).await;
    for (arguments, words) in [
        (&["dead", "requeue"][..], "no events are selected; pass event ids, a filter, or --all"),
        (
            &["dead", "requeue", "--all"],
            "Requeue 1 dead event (1 of mail)? This is not a terminal, so postrider can't ask for confirmation; pass --yes",
        ),
        (&["dead", "discard", "--all", "--yes"], "--why REASON"),
        (&["dead", "discard", "--all", "--why", "x"], "pass --yes"),
        (&["dead", "requeue", "--all", "--yes", "--who", ""], "the who of an audit entry"),
    ] {
        let sentence = mess.log.run(arguments).sentence(2);
        assert!(sentence.contains(words), "{arguments:?}: {sentence}");
    }
    let alive = mess.done.to_string();
    let sentence = mess.log.run(&["dead", "requeue", &alive, "--yes"]).sentence(1);
    assert!(sentence.contains(&format!("no dead event matches {alive}")), "{sentence}");
    let other = Uuid::new_v4().to_string();
    let sentence = mess.log.run(&["dead", "requeue", &alive, &other, "--yes"]).sentence(1);
    assert!(sentence.contains("2 of these events are not dead"), "{sentence}");
    let sentence = mess.log.run(&["dead", "requeue", "--subscription", "male", "--yes"]).sentence(1);
    assert!(sentence.contains("did you mean \"mail\"?"), "{sentence}");
    assert_eq!(mess.log.run(&["dead", "list", "--json"]).json().as_array().map(Vec::len), Some(1));
    assert!(mess.log.run(&["audit", "--json"]).json().as_array().is_some_and(Vec::is_empty));
}

/// Runs a command on a terminal of its own, where somebody types this.
fn typed(log: &Log, arguments: &str, answer: &str) -> (Option<i32>, String) {
    let command = format!("{} {arguments}", env!("CARGO_BIN_EXE_postrider"));
    let mut child = Command::new("script")
        .args(["--quiet", "--return", "--command", &command, "/dev/null"])
        .env("POSTRIDER_STORE_URL", &log.url)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("script, of util-linux, makes a terminal");
    child.stdin.take().expect("its input").write_all(answer.as_bytes()).expect("typed");
    let output = child.wait_with_output().expect("it ends");
    (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
}

async fn a_question_on_a_terminal_is_answered_by_its_answer(log: Log) {
    let mess = Mess::new(log).await;
    for answer in ["n\n", "\n", "yess\n"] {
        let (code, shown) = typed(&mess.log, "dead requeue --all", answer);
        assert_eq!(code, Some(1), "{answer:?}: {shown}");
        assert!(shown.contains("Requeue 1 dead event (1 of mail)? [y/N]"), "{shown}");
        assert!(shown.contains("nothing was changed"), "{shown}");
    }
    let (code, shown) = typed(&mess.log, "dead requeue --all", "Yes\n");
    assert_eq!(code, Some(0), "{shown}");
    assert!(shown.contains("requeued 1 dead event"), "{shown}");
}

/// This many events that are dead for `mail`.
async fn dead(log: &Log, many: u32) -> Vec<String> {
    log.store.subscribe(&Subscription::new("mail")).await.expect("subscribe");
    log.fill(many).await;
    let mut lease = log.claim("mail").await;
    for _ in 0..many.div_ceil(1000) {
        log.settle(&mut lease, |_, id| {
            Some(DeliveryChange::dead(id, 1, DeliveryFailure::new("rejected", "no")))
        })
        .await;
    }
    log.store.release(lease).await.expect("released");
    let limit = many.to_string();
    let list = log.run(&["dead", "list", "--limit", &limit, "--json"]).json();
    let id = |each: &serde_json::Value| each["event"]["event_id"].as_str().expect("an id").to_owned();
    list.as_array().expect("an array").iter().map(id).collect()
}

async fn many_that_are_named_are_written_down_as_named(log: Log) {
    let ids = dead(&log, 102).await;
    let named: Vec<&str> = ids[..101].iter().map(String::as_str).collect();
    log.run(&[&["dead", "requeue", "--yes"], named.as_slice()].concat()).good();
    let audit = log.run(&["audit", "--json"]).json();
    let what = audit[0]["what"].as_str().expect("a sentence");
    assert!(what.starts_with("requeue 101 dead events") && what.ends_with("(by id)"), "{what}");
    assert_eq!(audit.as_array().map(Vec::len), Some(1), "{audit}");
}

/// The first thousand are done when the second can't be.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_requeued_before_a_failure_is_written_down() {
    let log = Log::postgres().await;
    let ids = dead(&log, 1100).await;
    let refuse = format!(
        "create function refuse() returns trigger language plpgsql as $$ begin raise exception 'not this one'; end $$; \
         create trigger refuse before update or delete on postrider.delivery for each row \
         when (old.event_id = '{}') execute function refuse()",
        ids[1050]
    );
    let pool = sqlx::PgPool::connect(&log.url).await.expect("connected");
    sqlx::raw_sql(sqlx::AssertSqlSafe(refuse)).execute(&pool).await.expect("made");
    pool.close().await;
    let sentence = log.run(&["dead", "requeue", "--all", "--yes"]).sentence(1);
    assert!(
        sentence.contains("1,000 dead events of mail were requeued, then an error stopped it"),
        "{sentence}"
    );
    let audit = log.run(&["audit", "--json"]).json();
    let what = audit[0]["what"].as_str().expect("it is written down");
    assert!(what.starts_with("requeue 1000 dead events") && what.ends_with("(all)"), "{what}");
    let left = log.run(&["dead", "list", "--limit", "2000", "--json"]).json();
    assert_eq!(left.as_array().map(Vec::len), Some(100));
}
