//! What the binary says of its settings, good and bad.

mod wrong;

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
    let text = subscription("")
        + "[sink.k]\ntype = \"kafka\"\nbrokers = \"b:1\"\n[sink.h]\ntype = \"http\"\nurl = \"http://h/\"\n";
    let file = folder.file("p.toml", &text);
    let name = file.display().to_string();
    let flagged: [(&[&str], &str); 15] = [
        (&["--set", "relay.lease=soon"], "--set relay.lease: \"soon\" is not a duration"),
        (&["--set", "store.connections=1"], "--set store.connections: it must be 2 or more"),
        (&["--set", "relay=soon"], "--set relay: it must be a table"),
        (
            &["--set", "subscription.name=x"],
            "--set subscription.name: subscription is not a table in the file",
        ),
        (&["--set", "sink.k.topic={strem}"], "--set sink.k.topic: sink.k: "),
        (&["--set", "sink.k.brokers="], "--set sink.k.brokers: the brokers must be given as host:port"),
        (&["--set", "sink.k.authority=/no.pem"], "--set sink.k.authority: "),
        (&["--set", "sink.h.url=ftp://x"], "--set sink.h.url: the URL of an endpoint must be like https://"),
        (&["--set", "sink.h.token=a\u{7}"], "--set sink.h.token: the bearer token contains characters that"),
        (
            &["--set", "sink.h.authority=/no.pem"],
            "--set sink.h.authority: can't read the certificate /no.pem",
        ),
        (
            &["--store", "postgres://db/shop", "--set", "store.listen_url=postgres://h:port/db"],
            "--set store.listen_url: postgres://h:port/db is not a valid PostgreSQL URL",
        ),
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

/// It is found by itself; what is named wins over it.
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

/// The example with the settings that are commented out, if their line is chosen.
fn uncommented(text: &str, chosen: impl Fn(&str) -> bool) -> String {
    let line = |line: &str| match line.strip_prefix("# ") {
        Some(setting) if setting.split(' ').nth(1) == Some("=") && chosen(setting) => format!("{setting}\n"),
        _ => format!("{line}\n"),
    };
    text.lines().map(line).collect()
}

fn example() -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../postrider.example.toml");
    std::fs::read_to_string(path).expect("the example")
}

/// The example, as it is and with everything that is commented out: both are understood.
#[test]
fn the_example_is_understood() {
    let folder = Folder::new();
    let variables = [("HOOK_SECRET", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")];
    let text = example();
    let token = folder.file("token", "t");
    let all = uncommented(&text, |_| true).replace("/run/secrets/hook-token", &token.display().to_string());
    assert_ne!(text, all);
    for text in [text, all] {
        let output = check(&folder.file("p.toml", &text), &[], &variables);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

/// What a commented line shows is the default, unless it says that it is an example.
#[test]
fn the_commented_lines_of_the_example_are_the_defaults() {
    let folder = Folder::new();
    let shown = |text: &str| {
        let output = check(&folder.file("p.toml", text), &["--json"], &[]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice::<serde_json::Value>(&output.stdout).expect("JSON")
    };
    let text = example();
    let defaults = uncommented(&text, |setting| !setting.contains("# example: "));
    assert!(defaults.matches("\n# ").count() + 30 < text.matches("\n# ").count(), "{defaults}");
    let mut defaults = shown(&defaults);
    // The default depends on the sink: it is shown only if it is set.
    assert_eq!(defaults["subscription"][0]["batch"].take(), 5000);
    assert_eq!(shown(&text), defaults);
}
