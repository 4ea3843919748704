//! Whoever closes the pipe has seen enough: no command minds.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Stdio};

use postrider::store::AuditEntry;
use postrider::{NewEvent, Payload};

use crate::support::log::{Log, Mess};
use crate::support::postrider;

crate::on_both!(
    a_reader_that_goes_away_after_a_line_ends_a_long_answer_quietly,
    a_reader_that_is_gone_from_the_start_disturbs_no_command,
    a_command_whose_remarks_nobody_hears_ends_as_it_would,
);

fn started(log: &Log, arguments: &[&str]) -> Child {
    let mut command = postrider(&log.url, arguments);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts")
}

/// Waits for its end: with 0, and without a word of complaint.
fn ends_quietly(mut child: Child, of: &[&str]) {
    let mut err = String::new();
    child.stderr.take().expect("its errors").read_to_string(&mut err).expect("text");
    let status = child.wait().expect("it ends");
    assert_eq!(status.code(), Some(0), "{of:?}: {err}");
    assert!(!err.contains("panicked") && !err.contains("postrider:"), "{of:?}: {err}");
}

async fn a_reader_that_goes_away_after_a_line_ends_a_long_answer_quietly(log: Log) {
    let mess = Mess::new(log).await;
    mess.log.fill(5_000).await;
    let long = Payload::Json(format!("[{}1]", "1,\n".repeat(300_000)));
    let large = mess.log.record_event(&NewEvent::new("s", "T", "A", "1", long)).await.to_string();
    for _ in 0..300 {
        let why = Some("because ".repeat(60));
        let entry = AuditEntry { who: "ada".into(), what: "look".into(), why, ..AuditEntry::default() };
        mess.log.log.audit(&entry).await.expect("audited");
    }
    for arguments in [
        &["events", "--limit", "10000"][..],
        &["events", "--limit", "10000", "--json"],
        &["events", "show", &large, "--payload"],
        &["events", "show", &large, "--payload", "--json"],
        &["audit", "--limit", "1000"],
        &["audit", "--limit", "1000", "--json"],
        &["status", "--watch=100ms"],
        &["status", "--watch=100ms", "--json"],
    ] {
        let mut child = started(&mess.log, arguments);
        let mut reader = BufReader::with_capacity(64, child.stdout.take().expect("its output"));
        let mut line = vec![0; 16];
        match arguments.contains(&"--json") {
            true => reader.read_exact(&mut line).expect("some of it"),
            false => drop(reader.read_until(b'\n', &mut line).expect("a line")),
        }
        drop(reader);
        ends_quietly(child, arguments);
    }
}

async fn a_reader_that_is_gone_from_the_start_disturbs_no_command(log: Log) {
    let mess = Mess::new(log).await;
    let dead = mess.dead.to_string();
    let settings = "[[alert]]\nwhen = \"dead > 1000\"\n";
    let settings = mess.log.folder.file("alerts.toml", settings).display().to_string();
    for arguments in [
        &["status"][..],
        &["status", "--json"],
        &["events"],
        &["events", "show", &dead],
        &["dead", "list"],
        &["dead", "list", "--json"],
        &["dead", "show", &dead],
        &["subscriptions", "list"],
        &["subscriptions", "list", "--json"],
        &["audit"],
        &["replay", "mail", "--event", &dead, "--dry-run"],
        &["dead", "requeue", &dead, "--dry-run"],
        &["config", "check"],
        &["completions", "bash"],
        &["man"],
        &["reference", "cli"],
        &["reference", "configuration"],
        &["help"],
        &["alerts", "check", "--config", &settings],
        &["migrate"],
        &["archive", "--older-than", "30d", "--dry-run"],
        &["prune", "--older-than", "30d", "--dry-run", "--json"],
        // What changes something does it all the same.
        &["archive", "--older-than", "30d", "--yes"],
        &["prune", "--inbox", "30d", "--yes"],
        &["record", "--stream", "s", "--type", "T", "--aggregate", "A", "unread", "{}"],
        &["dead", "requeue", &dead, "--yes"],
    ] {
        let mut child = started(&mess.log, arguments);
        drop(child.stdout.take());
        ends_quietly(child, arguments);
    }
    let audit = mess.log.run(&["audit", "--json"]).json();
    assert_eq!(audit[0]["event_id"], dead, "it was done, and written down");
    let recorded = mess.log.run(&["events", "--type", "T", "--json"]).json();
    assert_eq!(recorded["events"][0]["aggregate_id"], "unread", "{recorded}");
}

async fn a_command_whose_remarks_nobody_hears_ends_as_it_would(log: Log) {
    let mess = Mess::new(log).await;
    let nobody = postrider::Uuid::nil().to_string();
    let (dead, done) = (mess.dead.to_string(), mess.done.to_string());
    for (arguments, code) in [
        (&["events", "--limit", "1"][..], 0),
        (&["replay", "mail", "--event", &done, "--as", "again", "--no-wait", "--yes"], 0),
        (&["archive", "--older-than", "30d", "--yes"], 0),
        (&["dead", "requeue", &dead, "--yes"], 0),
        (&["events", "show", &nobody], 1),
        (&["dead", "requeue"], 2),
        (&["relay"], 2),
        (&["relai"], 2),
    ] {
        let mut child = started(&mess.log, arguments);
        drop(child.stderr.take());
        let output = child.wait_with_output().expect("it ends");
        assert_eq!(output.status.code(), Some(code), "{arguments:?}");
    }
}
