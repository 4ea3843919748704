//! What the binary says of its settings, good and bad.

use std::path::Path;
use std::process::{Command, Output};

use postrider_testkit::Folder;

fn check(file: &Path, flags: &[&str], variables: &[(&str, &str)]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_postrider"));
    command.args(["config", "check", "--config"]).arg(file).args(flags).env_clear();
    command.envs(variables.iter().copied()).output().expect("it runs")
}

/// What it says of this file: one line on standard error, and the exit code for it.
fn complaint(text: &str) -> String {
    let folder = Folder::new();
    let output = check(&folder.file("p.toml", text), &[], &[]);
    said(&output, text)
}

fn said(output: &Output, of: &str) -> String {
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{of}\n{error}");
    assert!(output.stdout.is_empty(), "{of}");
    assert_eq!(error.trim_end().lines().count(), 1, "one sentence: {error}");
    assert!(!error.contains("panicked"), "{error}");
    error
}

const SINKS: &str = "[sink.out]\ntype = \"stdout\"\n";

fn subscription(lines: &str) -> String {
    format!("{SINKS}[[subscription]]\nname = \"s\"\nsink = \"out\"\n{lines}\n")
}

/// Each file, and what is said of it.
#[test]
fn what_is_wrong_is_named_with_what_would_be_right() {
    let s = subscription;
    let cases: Vec<(String, &[&str])> = vec![
        ("[store\n".into(), &["line 1"]),
        ("a = 1\n".into(), &["a: there is no such setting"]),
        ("[stroe]\nurl = \"x\"\n".into(), &["stroe: there is no such setting", "\"store\""]),
        ("[store]\nurll = \"sqlite:x\"\n".into(), &["store.urll", "\"url\""]),
        ("[store]\nurl = \"oracle://x\"\n".into(), &["store.url", "postgres://"]),
        ("[store]\nurl = [1]\n".into(), &["store.url: it must be text, not a list"]),
        ("[store]\nurl = \"env:NOT_THERE\"\n".into(), &["store.url", "NOT_THERE is not set"]),
        ("[store]\nurl = \"file:/nowhere/at/all\"\n".into(), &["store.url", "/nowhere/at/all", "does not exist"]),
        (
            "[store]\nurl = \"postgres://ada:ge@heim@db/shop\"\n".into(),
            &["store.url: the user or password contains an unescaped @; write it as %40"],
        ),
        (
            "[store]\nurl = \"postgres://ada:ge#heim@db/shop\"\n".into(),
            &["store.url: the user or password contains an unescaped #; write it as %23"],
        ),
        (
            "[store]\nurl = \"postgres://ada@db/shop?sslmod=require\"\n".into(),
            &["store.url: unknown parameter \"sslmod\"; did you mean \"sslmode\"?"],
        ),
        (
            "[store]\nurl = \"postgres://ada@db/shop?channel_binding=require\"\n".into(),
            &["store.url: its channel_binding=require can't be met", "write channel_binding=prefer"],
        ),
        (
            "[store]\nurl = \"postgres://db/shop\"\nlisten_url = \"postgres://db/shop?pgbouncer=true\"\n".into(),
            &["store.listen_url: its pgbouncer=true names a pooler", "name the database itself"],
        ),
        ("[store]\nconnections = 1\n".into(), &["store.connections", "2 or more"]),
        ("[store]\nbell = \"maybe\"\n".into(), &["store.bell", "true or false"]),
        ("store = 3\n".into(), &["store: it must be a table", "a number"]),
        ("[relay]\nlease = 30\n".into(), &["relay.lease", "\"30\" is not a duration", "\"5m\""]),
        ("[relay]\nleese = \"30s\"\n".into(), &["relay.leese", "\"lease\""]),
        ("[relay]\nlease = \"1ms\"\n".into(), &["relay.lease", "it must be between 100ms and 1d"]),
        ("[http]\nlisten = \"everywhere\"\n".into(), &["http.listen", "127.0.0.1:7678"]),
        ("[log]\nformat = \"xml\"\n".into(), &["log.format", "\"human\", \"json\""]),
        ("[log]\nlevel = \"postrider=loud\"\n".into(), &["log.level: \"postrider=loud\" is not a log level", "info"]),
        ("[log]\nlevel = \"inof\"\n".into(), &["log.level: \"inof\" is not a log level", "info"]),
        ("[store]\nurl = \"postgres://h:port/db\"\n".into(), &["store.url", "is not a valid database URL"]),
        ("[store]\nurl = \"postgres://h/db\"\nschema = \"\"\n".into(), &["store.schema"]),
        ("[relay]\nname = \"\"\n".into(), &["relay.name: it must not be empty"]),
        ("[sink.x]\n".into(), &["sink.x.type: it is required", "\"kafka\""]),
        ("[sink.x]\ntype = \"kafak\"\n".into(), &["sink.x.type", "not \"kafak\""]),
        ("[sink.x]\ntype = \"kafka\"\n".into(), &["sink.x.brokers: it is required", "127.0.0.1:9092"]),
        ("[sink.x]\ntype = \"kafka\"\nbrokers = \"b:1\"\ntopik = \"t\"\n".into(), &["sink.x.topik", "\"topic\""]),
        ("[sink.x]\ntype = \"kafka\"\nbrokers = \"b:1\"\ntopic = \"{strem}\"\n".into(), &["sink.x", "{strem}"]),
        ("[sink.x]\ntype = \"kafka\"\nbrokers = \"b:1\"\nproperties = { acks = \"1\" }\n".into(), &["sink.x", "break a promise"]),
        (
            "[sink.x]\ntype = \"kafka\"\nbrokers = \"b:1\"\nproperties = { \"linger.mss\" = \"1\" }\n".into(),
            &["sink.x", "linger.mss", "not a property"],
        ),
        (
            "[sink.x]\ntype = \"kafka\"\nbrokers = \"b:1\"\nproperties = { \"transactional.id\" = \"shop\" }\n".into(),
            &["sink.x", "transactional.id is not possible: it would break a promise"],
        ),
        (
            "[sink.x]\ntype = \"kafka\"\nbrokers = \"b:1\"\nproperties = { \"bootstrap.servers\" = \"c:1\" }\n".into(),
            &["sink.x", "bootstrap.servers", "leave it out"],
        ),
        (
            "[sink.x]\ntype = \"kafka\"\nbrokers = \"b:1\"\nsend_timeout = \"30s\"\n".into(),
            &["sink.x.send_timeout: 30s is too long for relay.lease = 30s", "set send_timeout to 12s or less", "1m15s or more"],
        ),
        (
            "[relay]\nlease = \"5s\"\n[sink.x]\ntype = \"kafka\"\nbrokers = \"b:1\"\nsend_timeout = \"10s\"\n".into(),
            &["sink.x.send_timeout: 10s is too long for relay.lease = 5s", "set send_timeout to 2s or less", "25s or more"],
        ),
        ("[sink.x]\ntype = \"http\"\nurl = \"https://h/\"\nauthority = \"/nowhere.pem\"\n".into(), &["sink.x", "can't read the certificate /nowhere.pem"]),
        (
            "[sink.x]\ntype = \"stdout\"\nattributes = [\"strem\"]\n".into(),
            &["sink.x.attributes: \"strem\" is not an optional attribute", "\"recordedtime\", \"schemaversion\", \"stream\""],
        ),
        (
            "[sink.x]\ntype = \"http\"\nurl = \"http://h/\"\nattributes = [\"stream\", \"time\"]\n".into(),
            &["sink.x.attributes: \"time\" is written without being asked for", "\"aggregatetype\""],
        ),
        (
            "[sink.x]\ntype = \"kafka\"\nbrokers = \"b:1\"\nformat = \"payload\"\nattributes = [\"stream\"]\n".into(),
            &["sink.x: the attribute \"stream\" can't be written", "use the format binary or structured"],
        ),
        ("[sink.x]\ntype = \"kafka\"\nbrokers = \"b:1\"\nuser = \"u\"\n".into(), &["sink.x.password: it is required"]),
        ("[sink.x]\ntype = \"http\"\nurl = \"ftp://x\"\n".into(), &["sink.x"]),
        ("[sink.x]\ntype = \"http\"\nurl = \"http://h/\"\nsecret = \"!\"\n".into(), &["sink.x.secret"]),
        (
            "[sink.x]\ntype = \"http\"\nurl = \"http://h/\"\nstatuses = { 204 = \"event\" }\n".into(),
            &["sink.x.statuses.204: it must be a status from 300 to 599"],
        ),
        (
            "[sink.x]\ntype = \"http\"\nurl = \"http://h/\"\nstatuses = { 404 = \"event\", 0404 = \"reject\" }\n".into(),
            &["sink.x.statuses.0404: it must be a status"],
        ),
        (
            "[sink.x]\ntype = \"http\"\nurl = \"http://h/\"\nstatuses = { 404 = \"mine\" }\n".into(),
            &["sink.x.statuses.404: it must be \"endpoint\", \"event\", \"retry\" or \"reject\", not \"mine\""],
        ),
        (
            "[sink.x]\ntype = \"http\"\nurl = \"http://h/\"\nlongest_retry_after = \"0s\"\n".into(),
            &["sink.x.longest_retry_after: it must be greater than 0"],
        ),
        ("[[subscription]]\nsink = \"out\"\n".into(), &["subscription[1].name: it is required"]),
        (format!("{SINKS}[[subscription]]\nname = \"s\"\nsink = \"otu\"\n"), &["subscription[s].sink", "\"out\""]),
        (s("order = \"keys\""), &["subscription[s].order", "\"key\", \"strict\", \"none\""]),
        (s("lanes = 0"), &["subscription[s].lanes: it must be 1 or more"]),
        (s("lanes = 1000"), &["\"s\": lanes must be between 1 and 256, not 1000"]),
        (s("types = [\"a\\u0000\"]"), &["\"s\": a pattern of its filter must not contain a NUL"]),
        (format!("{SINKS}[[subscription]]\nname = \"\"\nsink = \"out\"\n"), &["a subscription's name must have 1 to"]),
        (s("batch = -1"), &["subscription[s].batch", "1 or more"]),
        (s("streams = []"), &["subscription[s].streams", "it must not be empty"]),
        (s("streams = \"a\"\ntypes = 3"), &["subscription[s].types", "it must be a list"]),
        (s("start = \"yesterday\""), &["subscription[s].start", "\"beginning\""]),
        (s("retry = { schedule = [] }"), &["subscription[s].retry", "must have at least one pause"]),
        (s("retry = { schedule = [\"soon\"] }"), &["subscription[s].retry.schedule", "\"soon\" is not a duration"]),
        (s("retry = { every = \"1s\", schedule = [\"1s\"] }"), &["subscription[s].retry", "every and schedule can't be used together"]),
        (s("retry = { every = \"1s\", max_atempts = 3 }"), &["subscription[s].retry.max_atempts", "\"max_attempts\""]),
        (s("timeout = \"0s\""), &["subscription[s].timeout", "it must be greater than 0"]),
        (format!("{}[[subscription]]\nname = \"s\"\nsink = \"out\"\n", s("")), &["two subscriptions are named \"s\""]),
        ("[retention]\nat = \"25:00\"\n".into(), &["retention.at", "\"02:00\""]),
        ("[retention]\nmask = [\"card\"]\n".into(), &["retention.archive"]),
        ("[retention]\narchive = true\nmask = [\"card.\"]\n".into(), &["retention.mask", "\"card.\" is not a field name", "card.number"]),
        ("[retention]\nbatch = 0\n".into(), &["retention.batch: it must be between 1 and 100000"]),
        ("[retention]\nshare = 2\n".into(), &["retention.share: it must be between 0.01 and 1"]),
        ("[retention]\narchive = true\narchived = \"7d\"\n".into(), &["retention.archived", "shorter than delivered"]),
        ("[retention]\narchive = true\n[retention.target]\ntable = \"t\"\n".into(), &["retention.target.columns", "event_id"]),
        ("[retention]\nby_month = true\n".into(), &["retention.archive", "by_month", "set it to true"]),
        (
            "[retention]\narchive = true\nby_month = true\n[retention.target]\ntable = \"t\"\ncolumns = { a = \"id\" }\n".into(),
            &["retention.by_month", "leave it out"],
        ),
        (
            "[retention]\narchive = true\n[retention.target]\ntable = \"t\"\ncolumns = { id = \"evnt_id\" }\n".into(),
            &["retention.target.columns.id", "\"evnt_id\" is not a field", "event_id"],
        ),
        (
            "[retention]\narchive = true\n[retention.target]\ntable = \"t\"\ncolumns = { a = \"payload\" }\n".into(),
            &["retention.target", "one column of t must store event_id"],
        ),
        (
            "[retention]\narchive = true\narchived = \"5y\"\n[retention.target]\ntable = \"t\"\ncolumns = { a = \"id\" }\n".into(),
            &["retention.archived", "Postrider never deletes from your table"],
        ),
        ("[[alert]]\nto = [\"log\"]\n".into(), &["alert[1].when: it is required"]),
        ("[[alert]]\nwhen = \"undeliverd > 3\"\n".into(), &["alert[1].when", "undelivered"]),
        ("[[alert]]\nwhen = \"dead > many\"\n".into(), &["alert[1].when", "\"many\" is not a number"]),
        ("[[alert]]\nwhen = \"dead > 1\"\nto = [\"slak\"]\n[notify.slack]\ntype = \"slack\"\nurl = \"https://x\"\n".into(), &["alert[1].to", "\"slack\""]),
        (
            "[[alert]]\nwhen = \"undelivered > 2000000\"\n".into(),
            &["alert[1].when", "at most 1000000 undelivered events are counted", "never be reached"],
        ),
        ("[[alert]]\nwhen = \"undelivered_over(5m) > 1000000\"\n".into(), &["alert[1].when", "never be reached"]),
        ("[[alert]]\npreset = \"bank\"\n".into(), &["alert[1].preset", "ledger"]),
        ("[[alert]]\nwhen = \"dead > 1\"\nof = \"every\"\n".into(), &["alert[1].of", "\"each\", \"all\""]),
        ("[[alert]]\nwhen = \"dead > 1\"\nof = \"all\"\nsubscription = \"s\"\n".into(), &["alert[1].of", "can't be used together"]),
        ("[[alert]]\nwhen = \"dead > 1\"\nrepeat = \"0s\"\n".into(), &["alert[1].repeat", "it must be greater than 0"]),
        (
            "[[alert]]\nwhen = \"dead > 1\"\n[[alert]]\nwhen = \"dead > 1\"\nsubscription = \"s\"\n".into(),
            &["alert[2].name", "another alert for each subscription is also named \"dead > 1\""],
        ),
        ("[[alert]]\nwhen = \"undelivered_over(5) > 1\"\n".into(), &["alert[1].when", "undelivered_over(5m)"]),
        ("[relay]\nalerts_every = \"1ms\"\n".into(), &["relay.alerts_every", "it must be between 1s and 1d"]),
        ("[notify.p]\ntype = \"webhook\"\nurl = \"https://\"\n".into(), &["notify.p.url", "https://host/path"]),
        ("[notify.p]\ntype = \"webhook\"\nurl = \"https://h/\"\ntoken = \"\\u0007\"\n".into(), &["notify.p.token", "not allowed in a header"]),
        ("[notify.p]\ntype = \"pagerduty\"\n".into(), &["notify.p.key: it is required"]),
        ("[notify.p]\ntype = \"slack\"\nurl = \"hooks\"\n".into(), &["notify.p.url", "https://"]),
    ];
    for (text, words) in &cases {
        let sentence = complaint(text);
        for word in *words {
            assert!(sentence.contains(word), "{word:?} is missing for\n{text}\n{sentence}");
        }
    }
}

#[test]
fn the_environment_wins_over_the_file_and_a_flag_over_both() {
    let folder = Folder::new();
    let file = folder.file("p.toml", "[relay]\nlease = \"11s\"\n[store]\nurl = \"sqlite:a.db\"\n");
    let shown = |flags: &[&str], variables: &[(&str, &str)]| {
        let output = check(&file, flags, variables);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("text")
    };
    assert!(shown(&[], &[]).contains("lease 11s"));
    let variables =
        [("POSTRIDER_RELAY_LEASE", "12s"), ("POSTRIDER_STORE_URL", "sqlite:b.db"), ("OTHER", "1")];
    let text = shown(&[], &variables);
    assert!(text.contains("lease 12s") && text.contains("sqlite:b.db"), "{text}");
    let text = shown(&["--set", "relay.lease=13s", "--store", "sqlite:c.db"], &variables);
    assert!(text.contains("lease 13s") && text.contains("sqlite:c.db"), "{text}");

    let sentence = said(&check(&file, &[], &[("POSTRIDER_RELAY_LEESE", "1s")]), "a variable");
    assert!(
        sentence.contains("POSTRIDER_RELAY_LEESE is not a setting; did you mean POSTRIDER_RELAY_LEASE?"),
        "{sentence}"
    );
    let sentence = said(&check(&file, &["--set", "relay.leese=1s"], &[]), "a flag");
    assert!(sentence.contains("--set relay.leese: there is no such setting"), "{sentence}");
    let sentence = said(&check(Path::new("/nowhere.toml"), &[], &[]), "no file");
    assert!(sentence.contains("can't read the file /nowhere.toml: it does not exist"), "{sentence}");
}

/// The file is not to blame for what a flag or a variable says.
#[test]
fn what_is_wrong_is_said_of_the_flag_or_the_variable_that_set_it() {
    let folder = Folder::new();
    let text = subscription("") + "[sink.k]\ntype = \"kafka\"\nbrokers = \"b:1\"\n";
    let file = folder.file("p.toml", &text);
    let name = file.display().to_string();
    let flagged: [(&[&str], &str); 9] = [
        (&["--set", "relay.lease=soon"], "--set relay.lease: \"soon\" is not a duration"),
        (&["--set", "store.connections=1"], "--set store.connections: it must be 2 or more"),
        (&["--set", "relay=soon"], "--set relay: it must be a table"),
        (
            &["--set", "subscription.name=x"],
            "--set subscription.name: subscription is not a table in the file",
        ),
        (&["--set", "sink.k.topic={strem}"], "--set sink.k.topic: sink.k: "),
        (&["--set", "log.level=loud"], "--set log.level: \"loud\" is not a log level"),
        (&["--set", "store.url=oracle://x"], "--store: it must begin with postgres://"),
        (
            &["--store", "postgres://ada:ge@heim@db/shop"],
            "--store: the user or password contains an unescaped @",
        ),
        (&["--store", "postgres://db/shop", "--schema", "A B"], "--schema: a schema's name must have"),
    ];
    for (flags, words) in flagged {
        let sentence = said(&check(&file, flags, &[]), &format!("{flags:?}"));
        assert!(sentence.contains(words) && !sentence.contains(&name), "{flags:?}: {sentence}");
    }
    let sentence = said(&check(&file, &[], &[("POSTRIDER_RELAY_LEASE", "soon")]), "a variable");
    assert!(
        sentence.contains("POSTRIDER_RELAY_LEASE: relay.lease: \"soon\" is not a duration"),
        "{sentence}"
    );
    // The flag is not to blame for what the file says.
    let file = folder.file("q.toml", "[relay]\nlease = \"soon\"\n");
    let sentence = said(&check(&file, &["--set", "relay.name=x"], &[]), "the file");
    assert!(sentence.contains("q.toml: relay.lease: \"soon\" is not a duration"), "{sentence}");
}

#[test]
fn a_secret_file_that_is_empty_is_refused() {
    let folder = Folder::new();
    for content in ["", "\n", " \r\n"] {
        let secret = folder.file("token", content).display().to_string();
        let sentence = complaint(&format!(
            "[sink.x]\ntype = \"http\"\nurl = \"http://h/\"\ntoken = \"file:{secret}\"\n"
        ));
        let words = format!("sink.x.token: the file {secret} is empty; write the value to it");
        assert!(sentence.contains(&words), "{sentence}");
    }
}

/// EventPage by itself; what is named wins over it.
#[test]
fn a_file_in_this_folder_is_found_unless_one_is_named() {
    let folder = Folder::new();
    folder.file("postrider.toml", "[relay]\nlease = \"11s\"\n");
    let other = folder.file("other.toml", "[relay]\nlease = \"12s\"\n").display().to_string();
    let shown = |flags: &[&str], variables: &[(&str, &str)]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_postrider"));
        command.args(["config", "check"]).args(flags).current_dir(folder.path()).env_clear();
        let output = command.envs(variables.iter().copied()).output().expect("it runs");
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
    };
    let text = shown(&[], &[]);
    assert!(
        text.contains("file           ./postrider.toml (found in the current folder)\n")
            && text.contains("lease 11s"),
        "{text}"
    );
    for text in [shown(&["--config", &other], &[]), shown(&[], &[("POSTRIDER_CONFIG", &other)])] {
        assert!(text.contains(&format!("file           {other}\n")) && text.contains("lease 12s"), "{text}");
    }
    folder.file("postrider.toml", "[relay]\nleese = \"11s\"\n");
    let text = shown(&[], &[]);
    assert!(text.contains("./postrider.toml: relay.leese: there is no such setting"), "{text}");
}

#[cfg(unix)]
#[test]
fn a_variable_that_is_no_text_is_refused_only_where_it_is_ours() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let bytes = OsStr::from_bytes(b"caf\xe9");
    let run = |name: &OsStr| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_postrider"));
        command.args(["config", "check"]).env_clear().env(name, bytes).output().expect("it runs")
    };
    for name in [OsStr::new("OTHER"), bytes] {
        let output = run(name);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    let sentence = said(&run(OsStr::new("POSTRIDER_RELAY_NAME")), "a variable");
    assert!(sentence.contains("POSTRIDER_RELAY_NAME must be valid UTF-8"), "{sentence}");
    let mut command = Command::new(env!("CARGO_BIN_EXE_postrider"));
    let output = command.args([OsStr::new("status"), bytes]).env_clear().output().expect("it runs");
    assert_eq!(output.status.code(), Some(2), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn a_list_may_come_from_a_variable_or_a_file() {
    let folder = Folder::new();
    let mask = folder.file("mask", "card.number, name\n").display().to_string();
    let text = subscription("streams = \"env:STREAMS\"\ntypes = \"Order*,Invoice*\"");
    let file = folder.file("p.toml", &format!("{text}[retention]\narchive = true\n"));
    let mask = format!("file:{mask}");
    let variables = [("STREAMS", "orders, money"), ("POSTRIDER_RETENTION_MASK", mask.as_str())];
    let output = check(&file, &[], &variables);
    let shown = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(shown.contains("streams orders money, types Order* Invoice*"), "{shown}");
    assert!(shown.contains("masked fields: ") && shown.contains("card.number"), "{shown}");
    let sentence = said(&check(&file, &[], &variables[1..]), "no variable");
    assert!(
        sentence.contains("subscription[s].streams: the environment variable STREAMS is not set"),
        "{sentence}"
    );
}

/// A short lease alone is no mistake: what is sent is given up sooner then.
#[test]
fn a_send_timeout_that_nobody_set_fits_the_lease() {
    let folder = Folder::new();
    let file =
        folder.file("p.toml", "[relay]\nlease = \"3s\"\n[sink.x]\ntype = \"kafka\"\nbrokers = \"b:1\"\n");
    let output = check(&file, &[], &[]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Every kind of sink has the same setting, and says what was understood.
#[test]
fn the_attributes_that_are_asked_for_are_shown() {
    let (folder, attributes) = (Folder::new(), "attributes = [\"stream\", \"recordedtime\"]");
    let text = format!(
        "[sink.k]\ntype = \"kafka\"\nbrokers = \"b:1\"\n{attributes}\n[sink.h]\ntype = \"http\"\nurl = \"http://h/\"\n{attributes}\n\
         [sink.o]\ntype = \"stdout\"\n{attributes}\n[sink.few]\ntype = \"stdout\"\n"
    );
    let output = check(&folder.file("p.toml", &text), &["--json"], &[]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let understood: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    for sink in ["k", "h", "o"] {
        let shown = &understood["sink"][sink]["attributes"];
        assert_eq!(*shown, serde_json::json!(["recordedtime", "stream"]), "{sink}");
    }
    assert_eq!(understood["sink"]["few"]["attributes"], serde_json::json!([]));
}

#[test]
fn no_secret_is_shown() {
    let folder = Folder::new();
    let token = folder.file("token", "planted-token\n");
    let text = format!(
        "[store]\nurl = \"postgres://user:planted-password@h/db?user=ada&password=planted-password\"\n\
         [sink.k]\ntype = \"kafka\"\nbrokers = \"b:1\"\nlogin = \"plain\"\nuser = \"u\"\npassword = \"env:SECRET\"\n\
         [sink.h]\ntype = \"http\"\nurl = \"http://u:planted-password@h/\"\ntoken = \"file:{}\"\n\
         [sink.w]\ntype = \"http\"\nurl = \"https://hooks.example:8443/planted-path?token=planted-token\"\n\
         [notify.s]\ntype = \"slack\"\nurl = \"https://h/planted-path\"\n",
        token.display()
    );
    let output = check(&folder.file("p.toml", &text), &[], &[("SECRET", "planted-secret")]);
    let shown =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{shown}");
    assert!(!shown.contains("planted"), "{shown}");
    assert!(shown.contains("postgres://user:***@h/db"), "{shown}");
    assert!(shown.contains("http to https://hooks.example:8443/…"), "{shown}");
    let output = check(&folder.file("p.toml", &text), &["--json"], &[("SECRET", "planted-secret")]);
    let shown = String::from_utf8_lossy(&output.stdout).into_owned();
    let understood: serde_json::Value = serde_json::from_str(&shown).expect("JSON");
    assert_eq!(understood["store"]["url"], "postgres://user:***@h/db?***");
    assert_eq!(
        (&understood["sink"]["k"]["user"], &understood["sink"]["k"]["password"]),
        (&"u".into(), &"***".into())
    );
    assert_eq!(understood["sink"]["h"]["token"], "***");
    assert_eq!(understood["relay"]["lease"], "30s", "what nobody set is shown as well");
    assert_eq!(understood["notify"]["s"]["url"], "https://h/…");
    assert!(!shown.contains("planted"), "{shown}");
}

/// The example, as it is and with everything that is commented out: both are understood.
#[test]
fn the_example_is_understood() {
    let example = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../postrider.example.toml"));
    let variables = [("HOOK_SECRET", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")];
    let output = check(example, &[], &variables);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = std::fs::read_to_string(example).expect("the example");
    let folder = Folder::new();
    let token = folder.file("token", "t");
    let all: String = text
        .lines()
        .map(|line| match line.strip_prefix("# ") {
            Some(setting) if setting.split(' ').nth(1) == Some("=") => format!("{setting}\n"),
            _ => format!("{line}\n"),
        })
        .collect();
    let all = all.replace("/run/secrets/hook-token", &token.display().to_string());
    let output = check(&folder.file("all.toml", &all), &[], &variables);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_ne!(text, all);
}
