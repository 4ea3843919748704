//! `subscriptions` shows them, makes them, and does to them what operators say.

use postrider::store::{DeliveryChange, DeliveryFailure, Subscription};
use postrider::{OnDead, Order};

use crate::support::log::{Log, Mess};
use crate::support::{RelayProcess, until_true};

crate::on_both!(
    subscriptions_are_listed_as_they_are_in_force,
    a_subscription_is_made_by_flags_or_from_the_settings,
    a_new_subscription_says_how_much_of_the_log_it_will_receive,
    a_pause_holds_and_a_resume_lets_go,
    on_a_terminal_what_adds_something_is_asked_first,
    lanes_are_changed_while_a_relay_runs,
    a_change_of_lanes_need_not_be_waited_for,
    a_change_of_lanes_that_does_not_end_says_what_is_missing,
    a_strict_lane_that_is_held_is_not_said_to_have_no_relay,
    a_subscription_is_removed_by_force_only_while_it_is_held,
);

async fn subscriptions_are_listed_as_they_are_in_force(log: Log) {
    let mess = Mess::new(log).await;
    let list = mess.log.run(&["subscriptions", "list", "--json"]).json();
    let names: Vec<&str> =
        list.as_array().expect("an array").iter().filter_map(|each| each["name"].as_str()).collect();
    assert_eq!(names, ["growing", "mail", "resting"]);
    assert_eq!((&list[0]["lanes"], &list[0]["lanes_next"]), (&1.into(), &3.into()));
    assert_eq!((&list[1]["on_dead"], &list[1]["order"]), (&"hold".into(), &"key".into()));
    assert_eq!((&list[2]["paused"], &list[2]["start"]), (&true.into(), &"beginning".into()));
    let states = |list: &serde_json::Value| {
        let states = list.as_array().expect("an array").iter().map(|each| each["state"].to_string());
        states.collect::<Vec<_>>().join(" ")
    };
    assert_eq!(states(&list), r#""idle" "delivering" "paused""#);
    mess.log.run(&["subscriptions", "create", "unread"]).good();
    let text = mess.log.run(&["subscriptions", "list"]).good();
    assert!(text.contains("1 to 3"), "{text}");
    let rows = [("growing", "idle"), ("mail", "delivering"), ("resting", "paused"), ("unread", "no relay")];
    for (name, state) in rows {
        let row = text.lines().find(|line| line.contains(name)).expect("its row");
        assert!(row.contains(&format!(" {state} ")), "{name} is {state}: {text}");
    }
    // The words are those of the status, whoever holds a lane just now.
    mess.log.run_by("night-1", &["unread"]).await;
    let status = mess.log.run(&["status", "--json"]).json();
    let list = mess.log.run(&["subscriptions", "list", "--json"]).json();
    assert_eq!(states(&list), states(&status["subscriptions"]));
    assert_eq!(list[3]["state"], "delivering", "a relay has it, and events wait for it");
}

async fn a_subscription_is_made_by_flags_or_from_the_settings(log: Log) {
    let flags = ["subscriptions", "create", "eu", "--stream", "orders.*", "--type", "Order*", "--lanes", "2"];
    let more = ["--order", "strict", "--on-dead", "hold", "--no-replay", "--start", "2026-01-31"];
    log.run(&[&flags[..], &more].concat()).good();
    let list = log.run(&["subscriptions", "list", "--json"]).json();
    let eu = &list[0];
    assert_eq!((&eu["streams"][0], &eu["types"][0]), (&"orders.*".into(), &"Order*".into()));
    assert_eq!((&eu["lanes"], &eu["order"], &eu["on_dead"]), (&2.into(), &"strict".into(), &"hold".into()));
    assert_eq!((&eu["replay"], &eu["start"]), (&false.into(), &"2026-01-31T00:00:00Z".into()));
    let sentence = log.run(&["subscriptions", "create", "eu"]).sentence(1);
    assert!(sentence.contains("the subscription \"eu\" already exists"), "{sentence}");

    let settings = "[[subscription]]\nname = \"hook\"\nsink = \"out\"\nlanes = 3\n[[subscription]]\nname = \"eu\"\nsink = \"out\"\n\
         [sink.out]\ntype = \"stdout\"\n";
    let file = log.folder.file("p.toml", settings).display().to_string();
    let sentence = log.run(&["subscriptions", "create", "hok", "--config", &file]).sentence(2);
    assert!(sentence.contains("did you mean \"hook\"?"), "{sentence}");
    let text = log.run(&["subscriptions", "create", "--config", &file]).good();
    assert!(text.contains("hook is created") && text.contains("eu already exists"), "{text}");
    let list = log.run(&["subscriptions", "list", "--json"]).json();
    assert_eq!((&list[1]["name"], &list[1]["lanes"]), (&"hook".into(), &3.into()));
    assert_eq!(list[0]["lanes"], 2, "what is there stays as it is");
    assert!(log.run(&["subscriptions", "create"]).sentence(2).contains("pass a name"));
    let said = log.run(&["subscriptions", "create", "x", "--lanes", "1000"]);
    assert!(said.sentence(2).contains("between 1 and 256"));
    let said = log.run(&["subscriptions", "create", "x", "--order", "keys"]);
    assert!(said.code == Some(2) && said.err.contains("key, strict, none"), "{}", said.err);
    let audit = log.run(&["audit"]).good();
    assert!(audit.contains("create (0 in the log; streams orders.*, types Order*)"), "{audit}");
}

async fn a_new_subscription_says_how_much_of_the_log_it_will_receive(log: Log) {
    let text = log.run(&["subscriptions", "create", "early"]).good();
    assert!(text.ends_with("; the log has no events for it yet\n"), "{text}");
    log.fill(4).await;
    let text = log.run(&["subscriptions", "create", "late"]).good();
    assert!(text.ends_with("; it will receive 4 events that are already in the log\n"), "{text}");
    let said = log.run(&["subscriptions", "create", "half", "--type", "Even", "--json"]).json();
    let message = said[0]["message"].as_str().unwrap_or_default();
    assert!(message.ends_with("; it will receive 2 events that are already in the log"), "{said}");
    let text = log.run(&["subscriptions", "create", "new", "--start", "now"]).good();
    assert!(text.ends_with("; the log has no events for it yet\n"), "{text}");
    let audit = log.run(&["audit"]).good();
    assert!(audit.contains("create (2 in the log; streams *, types Even)"), "{audit}");
}

async fn on_a_terminal_what_adds_something_is_asked_first(log: Log) {
    let create: &[&str] = &["subscriptions", "create", "mail"];
    let record: &[&str] =
        &["record", "--stream", "s", "--type", "Tested", "--aggregate", "A", "1", "{\"secret\":1}"];
    let names = || {
        let list = log.run(&["subscriptions", "list", "--json"]).json();
        list.as_array().expect("an array").len()
    };
    let events = || log.run(&["events", "--json"]).json()["events"].as_array().expect("an array").len();
    let said = log.on_a_terminal(create, "n\n");
    assert!(
        said.contains("Create mail, from the beginning of the log") && said.contains("nothing was changed"),
        "{said}"
    );
    let said = log.on_a_terminal(record, "\n");
    assert!(said.contains("Record Tested of A 1 into s? [y/N]") && !said.contains("secret"), "{said}");
    assert_eq!((names(), events()), (0, 0));
    log.on_a_terminal(create, "y\n");
    log.on_a_terminal(record, "yes\n");
    assert_eq!((names(), events()), (1, 1));
    log.run(&["subscriptions", "pause", "mail", "--yes"]).good();
    let said = log.on_a_terminal(&["subscriptions", "resume", "mail"], "n\n");
    assert!(said.contains("Resume mail?") && said.contains("nothing was changed"), "{said}");
    assert!(log.run(&["subscriptions", "list"]).good().contains("paused"));
    let said = log.on_a_terminal(&["subscriptions", "resume", "mail", "--yes"], "");
    assert!(said.contains("is resumed") && !said.contains("[y/N]"), "{said}");
}

async fn a_pause_holds_and_a_resume_lets_go(log: Log) {
    let settings = "[http]\nlisten = \"off\"\n[[subscription]]\nname = \"out\"\nsink = \"out\"\n[sink.out]\ntype = \"stdout\"\n";
    let relay_process = RelayProcess::with(log.folder.path(), &log.url, "relay_process", settings);
    log.record("a", 1).await;
    until_true("it is delivered", || relay_process.lines().len() == 1).await;
    assert!(log.run(&["subscriptions", "pause", "out"]).sentence(2).contains("pass --yes"));
    log.run(&["subscriptions", "pause", "out", "--yes", "--why", "the shop moves"]).good();
    assert!(log.run(&["subscriptions", "pause", "out", "--yes"]).good().contains("already paused"));
    until_true("nobody holds it", || {
        let status = log.run(&["status", "--json"]).json();
        status["subscriptions"][0]["lanes"][0]["owner"].is_null()
    })
    .await;
    log.record("a", 2).await;
    let status = log.run(&["status", "out", "--json"]).json();
    assert_eq!(
        (&status["subscriptions"][0]["state"], &status["subscriptions"][0]["pending"]),
        (&"paused".into(), &1.into())
    );
    let answer = log.run(&["subscriptions", "resume", "out", "--json"]).json();
    assert_eq!((&answer["subscription"], &answer["changed"]), (&"out".into(), &true.into()));
    until_true("it goes on", || relay_process.lines().len() == 2).await;
    let audit = log.run(&["audit", "--json"]).json();
    assert_eq!(
        (&audit[0]["what"], &audit[1]["what"], &audit[1]["why"]),
        (&"resume".into(), &"pause".into(), &"the shop moves".into())
    );
    assert!(
        log.run(&["subscriptions", "pause", "uot", "--yes"]).sentence(1).contains("did you mean \"out\"?")
    );
}

async fn lanes_are_changed_while_a_relay_runs(log: Log) {
    let settings = "[relay]\nlease = \"2s\"\n[http]\nlisten = \"off\"\n[[subscription]]\nname = \"out\"\nsink = \"out\"\n[sink.out]\ntype = \"stdout\"\n";
    let relay_process = RelayProcess::with(log.folder.path(), &log.url, "relay_process", settings);
    for number in 0..50 {
        log.record(&(number % 5).to_string(), number).await;
    }
    until_true("some are delivered", || !relay_process.lines().is_empty()).await;
    assert!(log.run(&["subscriptions", "lanes", "out", "3"]).sentence(2).contains("from 1 to 3"));
    let said = log.run(&["subscriptions", "lanes", "out", "3", "--yes"]);
    assert_eq!(said.good(), "out has 3 lanes\n");
    let list = log.run(&["subscriptions", "list", "--json"]).json();
    assert_eq!((&list[0]["lanes"], &list[0]["lanes_next"]), (&3.into(), &serde_json::Value::Null));
    until_true("all are delivered", || relay_process.lines().len() >= 50).await;
    assert_eq!(relay_process.lines().len(), 50, "none came twice");
    assert!(log.run(&["subscriptions", "lanes", "out", "3", "--yes"]).good().contains("already"));
    assert_eq!(log.run(&["subscriptions", "lanes", "out", "0"]).code, Some(2));
    assert_eq!(log.run(&["subscriptions", "lanes", "out", "300"]).code, Some(2));
}

/// A strict subscription whose first event is dead and holds the others; its relay is there, and holds no lane.
async fn held(log: &Log) {
    let strict = Subscription::new("once more").order(Order::Strict).on_dead(OnDead::Hold);
    log.store.subscribe(&strict).await.expect("subscribe");
    log.record("gone", 1).await;
    let mut lease = log.claim("once more").await;
    let failure = || DeliveryFailure::new("rejected", "there is no such address");
    log.settle(&mut lease, |_, id| Some(DeliveryChange::dead(id, 1, failure()))).await;
    log.record("behind", 2).await;
    log.store.release(lease).await.expect("released");
    log.run_by("night-1", &["once more"]).await;
}

async fn a_change_of_lanes_need_not_be_waited_for(log: Log) {
    let mess = Mess::new(log).await;
    let text = mess.log.run(&["subscriptions", "lanes", "growing", "4", "--yes", "--no-wait"]).good();
    assert!(text.contains("growing is changing to 4 lanes"), "{text}");
}

async fn a_change_of_lanes_that_does_not_end_says_what_is_missing(log: Log) {
    let mess = Mess::new(log).await;
    // Nobody reads it on.
    let said = mess.log.run(&["subscriptions", "lanes", "growing", "4", "--yes", "--wait", "300ms"]);
    assert_eq!((said.code, said.out.as_str()), (Some(1), ""), "{}", said.err);
    let sentence = said.err.lines().last().unwrap_or_default();
    assert!(sentence.contains("growing has not changed to 4 lanes after "), "{sentence}");
    // A holder that does not give its lane back.
    let said = mess.log.run(&["subscriptions", "lanes", "mail", "2", "--yes", "--wait", "300ms"]);
    let sentence = said.err.lines().last().unwrap_or_default();
    assert!(sentence.contains("its relays have not released their lanes. relay-1 holds it"), "{sentence}");
    let said = mess.log.run(&["subscriptions", "lanes", "mail", "2", "--yes", "--wait", "300ms", "--json"]);
    let answer: serde_json::Value = serde_json::from_str(&said.out).expect("JSON");
    assert_eq!((said.code, &answer["subscription"]), (Some(1), &"mail".into()));
    assert!(answer["message"].as_str().is_some_and(|what| what.contains("relay-1 holds it")), "{answer}");
    assert_eq!(
        mess.log.run(&["subscriptions", "lanes", "mail", "2", "--wait", "1s", "--no-wait"]).code,
        Some(2)
    );
}

/// A relay gives back a lane that waits for a person: it is there all the same.
async fn a_strict_lane_that_is_held_is_not_said_to_have_no_relay(log: Log) {
    held(&log).await;
    let change = ["subscriptions", "lanes", "once more", "2", "--yes", "--wait", "300ms"];
    let said = log.run(&change);
    let sentence = said.err.lines().last().unwrap_or_default();
    let missing =
        "It is held: 1 dead event holds its lane; see `postrider dead list --subscription 'once more'`";
    assert!(said.code == Some(1) && sentence.contains(missing), "{}", said.err);
    let list = log.run(&["subscriptions", "list", "--json"]).json();
    assert_eq!(list[0]["state"], "held", "{list}");
}

async fn a_subscription_is_removed_by_force_only_while_it_is_held(log: Log) {
    let mess = Mess::new(log).await;
    let question = mess.log.run(&["subscriptions", "remove", "mail"]).sentence(2);
    assert!(question.contains("1 dead event and 4 retrying events"), "{question}");
    let sentence = mess.log.run(&["subscriptions", "remove", "mail", "--yes"]).sentence(1);
    assert!(sentence.contains("\"relay-1\" holds a lane of \"mail\""), "{sentence}");
    mess.log.run(&["subscriptions", "remove", "mail", "--yes", "--force"]).good();
    let status = mess.log.run(&["status", "--json"]).json();
    assert_eq!(status["subscriptions"].as_array().map(Vec::len), Some(2));
    assert!(mess.log.run(&["audit"]).good().contains("remove (1 dead, 4 retrying)"));
}
