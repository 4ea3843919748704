//! `postrider catalog`: the built binary, with files as an application writes them, on SQLite.

use std::process::{Command, Output};

use postrider_testkit::Folder;
use serde_json::{Value, json};

const STORE: [&str; 2] = ["--store", "sqlite:shop.db"];

fn postrider(folder: &Folder, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_postrider"));
    command.args(arguments).current_dir(folder.path()).env_clear().output().expect("it runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A catalog with one event, whose payload has these fields, all of them required.
fn catalog(version: u32, upcast_from: &[u32], fields: &[&str]) -> String {
    let properties: serde_json::Map<String, Value> = fields
        .iter()
        .map(|name| ((*name).to_owned(), json!({ "type": "integer", "format": "int64" })))
        .collect();
    let schema = json!({ "type": "object", "properties": properties, "required": fields });
    let event = json!({
        "name": "OrderPaid", "version": version, "stream": "orders", "aggregate": "Order", "ordering_key": "aggregate",
        "publishers": ["shop"], "upcast_from": upcast_from, "payload": { "writes": schema },
    });
    let subscriber = json!({ "name": "billing", "handlers": { "OrderPaid": {} } });
    json!({ "format": 1, "system": "shop", "events": [event], "subscribers": [subscriber] }).to_string()
}

#[test]
fn a_breaking_change_fails_until_the_version_is_raised_with_an_upcaster() {
    let folder = Folder::new();
    folder.file("events.json", &catalog(1, &[], &["order"]));
    let missing = postrider(&folder, &["catalog", "check"]);
    assert_eq!(missing.status.code(), Some(2));
    assert!(
        text(&missing.stderr)
            .contains("there is no lock events.lock.json; write the first one with --update")
    );
    assert!(postrider(&folder, &["catalog", "check", "--update"]).status.success());
    let lock = std::fs::read_to_string(folder.path().join("events.lock.json")).expect("the lock");

    folder.file("events.json", &catalog(1, &[], &["order", "total"]));
    let refused = postrider(&folder, &["catalog", "check", "--update"]);
    assert_eq!(refused.status.code(), Some(1));
    let report = text(&refused.stdout);
    assert!(
        report.contains(
            "field `total` is not written, but the reader needs it\n  counterexample: {\"order\":1}"
        ),
        "{report}"
    );
    assert_eq!(
        std::fs::read_to_string(folder.path().join("events.lock.json")).expect("the lock"),
        lock,
        "it stays"
    );
    let github = text(&postrider(&folder, &["catalog", "check", "--format", "github"]).stdout);
    assert!(github.starts_with("::error file=events.lock.json,title=OrderPaid version 1::"), "{github}");
    let junit = text(&postrider(&folder, &["catalog", "check", "--format", "junit"]).stdout);
    assert!(junit.contains("tests=\"1\" failures=\"1\""), "{junit}");
    let found: Value =
        serde_json::from_slice(&postrider(&folder, &["catalog", "check", "--format", "json"]).stdout)
            .expect("JSON");
    assert_eq!((&found["passed"], &found["findings"][0]["field"]), (&json!(false), &json!("total")));

    folder.file("events.json", &catalog(2, &[1], &["order", "total"]));
    assert!(postrider(&folder, &["catalog", "check", "--update"]).status.success());
    // The first version stays in the lock, and is still checked.
    folder.file("events.json", &catalog(2, &[], &["order", "total"]));
    let forgotten = postrider(&folder, &["catalog", "check"]);
    assert_eq!(forgotten.status.code(), Some(1));
    assert!(text(&forgotten.stdout).contains("no upcaster leads from version 1 to version 2"));
}

#[test]
fn a_change_that_the_lock_does_not_have_fails_until_it_is_updated() {
    let folder = Folder::new();
    folder.file("events.json", &catalog(1, &[], &["order"]));
    assert!(postrider(&folder, &["catalog", "check", "--update"]).status.success());
    let mut file: Value = serde_json::from_str(&catalog(1, &[], &["order"])).expect("JSON");
    let mut noted = |kind: &str| {
        file["events"][0]["payload"]["writes"]["properties"]["note"] = json!({ "type": kind });
        folder.file("events.json", &file.to_string());
    };
    noted("string");
    let forgotten = postrider(&folder, &["catalog", "check"]);
    assert_eq!(forgotten.status.code(), Some(1));
    let said = text(&forgotten.stdout);
    assert!(said.contains("error: OrderPaid version 1: its schema is not in the lock"), "{said}");
    assert!(said.contains("Run: postrider catalog check --update"), "{said}");
    assert!(postrider(&folder, &["catalog", "check", "--update"]).status.success());
    assert!(postrider(&folder, &["catalog", "check"]).status.success());
    noted("integer");
    let refused = postrider(&folder, &["catalog", "check", "--update"]);
    assert_eq!(refused.status.code(), Some(1), "{}", text(&refused.stdout));
    assert!(text(&refused.stdout).contains("field `note`"), "{}", text(&refused.stdout));
}

#[test]
fn a_lock_that_is_none_is_refused_in_a_sentence_that_says_what_to_do() {
    let folder = Folder::new();
    folder.file("events.json", &catalog(1, &[], &["order"]));
    assert!(postrider(&folder, &["catalog", "check", "--update"]).status.success());
    let lock = std::fs::read_to_string(folder.path().join("events.lock.json")).expect("the lock");
    for (wrong, says) in [
        ("{".to_owned(), "not a valid lock of events: it is not valid JSON (line 1, column 1)"),
        (
            format!("<<<<<<< HEAD\n{lock}"),
            "line 1 is a marker of an unresolved merge conflict; keep the entries of both sides",
        ),
        (
            lock.replace("\"format\": 1", "\"format\": 2"),
            "it has format 2, and this version reads formats up to 1",
        ),
        (
            lock.replace("\"format\": 1", "\"format\": \"1\""),
            "its `format` must be a positive integer, such as 1",
        ),
    ] {
        folder.file("events.lock.json", &wrong);
        let refused = postrider(&folder, &["catalog", "check", "--update"]);
        let said = text(&refused.stderr);
        assert_eq!(refused.status.code(), Some(2), "{said}");
        assert!(said.contains("events.lock.json: ") && said.contains(says), "{said}");
        let kept = std::fs::read_to_string(folder.path().join("events.lock.json")).expect("the lock");
        assert_eq!(kept, wrong, "it stays");
    }
    folder.file("events.lock.json", &format!("\u{feff}{}", lock.replace('\n', "\r\n")));
    assert!(postrider(&folder, &["catalog", "check"]).status.success(), "as Windows writes it");
}

#[test]
fn an_event_that_the_catalog_has_can_not_be_retired() {
    let folder = Folder::new();
    folder.file("events.json", &catalog(1, &[], &["order"]));
    assert!(postrider(&folder, &["catalog", "check", "--update"]).status.success());
    let lock = || std::fs::read_to_string(folder.path().join("events.lock.json")).expect("the lock");
    let before = lock();
    let retire = || postrider(&folder, &["catalog", "check", "--update", "--retire", "OrderPaid"]);
    let refused = retire();
    assert_eq!(refused.status.code(), Some(2));
    let said = text(&refused.stderr);
    assert!(said.contains("can't retire OrderPaid: the catalog still has it"), "{said}");
    assert_eq!(lock(), before, "it stays");

    folder.file("events.json", r#"{"format":1,"system":"shop","events":[],"subscribers":[]}"#);
    assert_eq!(postrider(&folder, &["catalog", "check"]).status.code(), Some(1));
    assert!(retire().status.success());
    assert!(lock().contains("\"retired\": true"), "{}", lock());
    assert!(postrider(&folder, &["catalog", "check"]).status.success());
    let files =
        std::fs::read_dir(folder.path()).expect("the folder").map(|entry| entry.expect("a file").file_name());
    let drafts: Vec<_> = files.filter(|name| name.to_string_lossy().contains("draft")).collect();
    assert!(drafts.is_empty(), "the lock is written as a whole: {drafts:?}");
}

#[test]
fn a_name_is_checked_by_the_convention_of_its_stream() {
    let folder = Folder::new();
    folder.file("events.json", &catalog(1, &[], &["order"]).replace("OrderPaid", "PaymentSuccess"));
    folder.file(
        "postrider.toml",
        "[catalog.names]\n\"*\" = \"SCREAMING_SNAKE\"\n\"ord*\" = \"PascalPastTense\"\n",
    );
    let refused = postrider(&folder, &["catalog", "check", "--update"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(text(&refused.stdout).contains("use `PaymentSucceeded`"), "{}", text(&refused.stdout));
    folder.file("postrider.toml", "[catalog.names]\n\"*\" = \"camel\"\n");
    let unknown = postrider(&folder, &["catalog", "check", "--update"]);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(text(&unknown.stderr).contains("catalog.names"), "{}", text(&unknown.stderr));
}

#[test]
fn a_handler_without_an_event_and_a_cycle_are_warnings_in_every_format() {
    let folder = Folder::new();
    let mut file: Value = serde_json::from_str(&catalog(1, &[], &["order"])).expect("JSON");
    file["subscribers"] = json!([
        { "name": "billing", "handlers": { "OrderPaid": { "follow_ups": ["OrderPaid"] }, "OrderLost": {} } },
    ]);
    folder.file("events.json", &file.to_string());
    let checked = postrider(&folder, &["catalog", "check", "--update"]);
    assert_eq!(checked.status.code(), Some(0));
    let unpublished = "`billing` has a handler for `OrderLost`, but nobody publishes that event.";
    let cycle = "Follow-up events form a cycle: OrderPaid → OrderPaid.";
    let report = text(&checked.stdout);
    for warning in [unpublished, cycle] {
        assert!(report.contains(&format!("warning: shop: {warning}")), "{report}");
    }
    assert!(report.contains("0 errors, 2 warnings"), "{report}");
    let checked = postrider(&folder, &["catalog", "check", "--format", "json"]);
    assert_eq!(checked.status.code(), Some(0));
    let found: Value = serde_json::from_slice(&checked.stdout).expect("JSON");
    let reasons: Vec<_> =
        found["findings"].as_array().expect("findings").iter().map(|found| &found["reason"]).collect();
    assert_eq!((&found["passed"], reasons), (&json!(true), vec![&json!(unpublished), &json!(cycle)]));
}

#[test]
fn a_name_with_another_version_than_the_events_is_a_warning() {
    let folder = Folder::new();
    for (version, warns) in [(1, false), (2, true)] {
        folder.file(
            "events.json",
            &catalog(version, &[1], &["order"]).replace("OrderPaid", "acme.order.paid.v1"),
        );
        let checked = postrider(&folder, &["catalog", "check", "--update"]);
        let report = text(&checked.stdout);
        assert_eq!(checked.status.code(), Some(0), "{report}");
        assert_eq!(report.contains("its name ends with v1, but its version is 2"), warns, "{report}");
    }
}

#[test]
fn a_sink_names_the_schema_that_the_catalog_has() {
    let folder = Folder::new();
    folder.file("events.json", &catalog(1, &[], &["order"]));
    let settings = |more: &str| {
        folder.file("postrider.toml", &format!("[sink.out]\ntype = \"stdout\"\n{more}"));
    };
    let probe = |event_type: &str| {
        let sent = postrider(&folder, &["sinks", "test", "out", "--type", event_type]);
        assert!(sent.status.success(), "{}", text(&sent.stderr));
        serde_json::from_slice::<Value>(&sent.stdout).expect("a CloudEvent")
    };
    settings("");
    assert!(probe("OrderPaid").get("dataschema").is_none());
    settings("dataschema = \"urn:sha256:{hash}\"");
    assert!(postrider(&folder, &["catalog", "check", "--update"]).status.success());
    let lock = std::fs::read_to_string(folder.path().join("events.lock.json")).expect("the lock");
    let uri = probe("OrderPaid")["dataschema"].as_str().expect("a dataschema").to_owned();
    let hash = uri.strip_prefix("urn:").expect("a URN");
    assert!(lock.contains(&format!("\"{hash}\"")), "{hash} is not in {lock}");
    assert!(probe("Unknown").get("dataschema").is_none());

    settings("dataschema = \"{id}\"");
    let refused = postrider(&folder, &["config", "check"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("it must be a URI with {hash}"), "{}", text(&refused.stderr));
    settings("dataschema = \"urn:sha256:{hash}\"\n[catalog]\nfile = \"lost.json\"");
    let missing = postrider(&folder, &["config", "check"]);
    assert_eq!(missing.status.code(), Some(2));
    assert!(text(&missing.stderr).contains("it needs the catalog lost.json"), "{}", text(&missing.stderr));
}

/// A store, the catalog of it, and three events: one that can be read, one that can't, and one of an unknown type. Gives the id
/// of the second.
fn log_with_a_bad_event(folder: &Folder) -> String {
    folder.file("events.json", &catalog(1, &[], &["order"]));
    assert!(postrider(folder, &[&["migrate"], &STORE[..]].concat()).status.success());
    let record = |kind: &str, payload: &str| {
        let event =
            ["record", "--yes", "--stream", "orders", "--type", kind, "--aggregate", "Order", "1", payload];
        let recorded = postrider(folder, &[&event[..], &STORE[..]].concat());
        assert!(recorded.status.success(), "{}", text(&recorded.stderr));
        text(&recorded.stdout).trim().to_owned()
    };
    record("OrderPaid", r#"{"order":1}"#);
    let bad = record("OrderPaid", r#"{"order":"secret"}"#);
    record("Lost", "{}");
    bad
}

/// What a check finds in the event that can't be read.
fn finding(bad: &str) -> String {
    format!("OrderPaid version 1: event {bad} of the log can't be read: field order: expected an integer")
}

#[test]
fn the_catalog_stands_beside_what_the_log_has_seen() {
    let folder = Folder::new();
    let bad = log_with_a_bad_event(&folder);
    let shown = postrider(&folder, &[&["catalog", "--json"], &STORE[..]].concat());
    let shown: Value = serde_json::from_slice(&shown.stdout).expect("JSON");
    assert_eq!(
        (&shown["log"]["seen"][1]["event"], &shown["log"]["seen"][1]["count"]),
        (&json!("OrderPaid"), &json!(2))
    );
    assert_eq!(shown["log"]["unknown"][0]["event"], "Lost");
    let people = text(&postrider(&folder, &[&["catalog"], &STORE[..]].concat()).stdout);
    assert!(people.contains("In the log, but not in the catalog: Lost version 1 (1)"), "{people}");

    let checked =
        postrider(&folder, &[&["catalog", "check", "--update", "--against-log"], &STORE[..]].concat());
    assert_eq!(checked.status.code(), Some(1));
    let said = text(&checked.stdout);
    let finding = finding(&bad);
    assert!(said.contains(&format!("error: {finding}")), "{said}");
    assert!(text(&checked.stderr).contains("2 events of the log tried, 1 can't be read"));
    assert!(!folder.path().join("events.lock.json").exists(), "a check that fails writes no lock");
}

#[test]
fn a_lock_that_was_named_must_exist() {
    let folder = Folder::new();
    log_with_a_bad_event(&folder);
    let mistyped = ["catalog", "check", "--against-log", "--against", "event.lock.json"];
    let mistyped = postrider(&folder, &[&mistyped[..], &STORE[..]].concat());
    assert_eq!(mistyped.status.code(), Some(2));
    assert!(text(&mistyped.stderr).contains("there is no lock event.lock.json"), "{mistyped:?}");
    let unlocked = postrider(&folder, &[&["catalog", "check", "--against-log"], &STORE[..]].concat());
    assert!(
        text(&unlocked.stderr).contains("there is no lock events.lock.json, so no schema was compared"),
        "{unlocked:?}"
    );
}

#[test]
fn a_check_without_a_lock_says_the_same_in_every_format() {
    let folder = Folder::new();
    let bad = log_with_a_bad_event(&folder);
    let formatted = |format: &str| {
        let arguments = ["catalog", "check", "--against-log", "--format", format];
        let checked = postrider(&folder, &[&arguments[..], &STORE[..]].concat());
        assert_eq!(checked.status.code(), Some(1));
        assert!(!format!("{checked:?}").contains("secret"), "{checked:?}");
        text(&checked.stdout)
    };
    let found: Value = serde_json::from_str(&formatted("json")).expect("JSON");
    assert_eq!((&found["passed"], &found["findings"][0]["event"]), (&json!(false), &json!("OrderPaid")));
    assert_eq!(
        (&found["findings"][1]["severity"], &found["findings"][1]["event"]),
        (&json!("warning"), &json!("Lost"))
    );
    assert!(formatted("junit").contains("failures=\"1\""));
    assert!(
        formatted("github").starts_with(&format!(
            "::error file=events.lock.json,title=OrderPaid version 1::{}",
            finding(&bad)
        ))
    );
}

#[test]
fn an_older_version_in_the_log_has_a_row_of_its_own() {
    let folder = Folder::new();
    assert!(postrider(&folder, &[&["migrate"], &STORE[..]].concat()).status.success());
    let event =
        ["record", "--yes", "--stream", "orders", "--type", "OrderPaid", "--aggregate", "Order", "1", "{}"];
    assert!(postrider(&folder, &[&event[..], &STORE[..]].concat()).status.success());
    folder.file("events.json", &catalog(2, &[1], &["order"]));
    let shown = postrider(&folder, &[&["catalog", "--json"], &STORE[..]].concat());
    let shown: Value = serde_json::from_slice(&shown.stdout).expect("JSON");
    let last = shown["log"]["seen"][0]["last"].as_str().expect("a time").to_owned();
    let people = text(&postrider(&folder, &[&["catalog"], &STORE[..]].concat()).stdout);
    let rows: Vec<Vec<&str>> = people.lines().map(|line| line.split_whitespace().collect()).collect();
    let newest = ["OrderPaid", "2", "orders", "billing", "0", "-", "-"];
    assert!(rows.iter().any(|row| row == &newest), "{people}");
    let older = rows.iter().find(|row| row.starts_with(&["OrderPaid", "1", "orders", "(converted)", "1"]));
    // One event tells no rate.
    let older = older.unwrap_or_else(|| panic!("{people}"));
    assert_eq!((older[5], older[6]), ("-", &last[..10]), "{people}");
    assert!(people.contains("In the catalog, but not in the log: OrderPaid version 2\n"), "{people}");
    assert_eq!(shown["log"]["unseen_versions"], json!([{ "event": "OrderPaid", "version": 2 }]));
    assert!(!people.contains("In the log, but not in the catalog"), "{people}");
}

#[test]
fn what_is_no_catalog_is_refused_with_a_reason() {
    let folder = Folder::new();
    let refused = |file: &str| {
        let output = postrider(&folder, &["catalog", "--file", file]);
        assert_eq!(output.status.code(), Some(2));
        text(&output.stderr)
    };
    assert!(refused("nowhere.json").contains("can't read the catalog nowhere.json"));
    folder.file("new.json", r#"{"format":9}"#);
    assert!(refused("new.json").contains("it has format 9, and this version reads formats up to 1"));
    folder.file("text.json", "events");
    assert!(refused("text.json").contains("text.json: not a valid catalog: it is not valid JSON"));
}

#[test]
fn the_catalog_is_exported_to_a_file_a_folder_or_standard_output() {
    let folder = Folder::new();
    folder.file("events.json", &catalog(1, &[], &["order"]));
    let page = text(&postrider(&folder, &["catalog", "export", "markdown"]).stdout);
    assert!(page.contains("### OrderPaid"), "{page}");
    assert!(
        postrider(&folder, &["catalog", "export", "asyncapi", "--into", "api/events.json"]).status.success()
    );
    let api: Value = serde_json::from_str(
        &std::fs::read_to_string(folder.path().join("api/events.json")).expect("a file"),
    )
    .expect("JSON");
    assert_eq!(api["asyncapi"], "3.0.0");
    assert!(postrider(&folder, &["catalog", "export", "eventcatalog", "--into", "site"]).status.success());
    assert!(folder.path().join("site").is_dir());
    assert_eq!(
        postrider(&folder, &["catalog", "export", "eventcatalog"]).status.code(),
        Some(2),
        "it needs a folder"
    );
}
