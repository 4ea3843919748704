//! The demo, as its users run it: real processes, real signals, and what it says when it is piped.

mod playing;
mod servers;

use std::path::Path;
use std::process::{Child, Command, Stdio};

use playing::{Playing, content, demo, postrider, row, text};
use postrider_testkit::Folder;
use sqlx::sqlite::SqlitePool;
use tokio::sync::RwLock;

/// How long a demo takes is measured while no other plays.
static MACHINE: RwLock<()> = RwLock::const_new(());

async fn count(shop: &SqlitePool, sql: &'static str) -> u64 {
    let (count,): (i64,) = sqlx::query_as(sql).fetch_one(shop).await.expect("counted");
    u64::try_from(count).expect("a count")
}

#[tokio::test(flavor = "multi_thread")]
async fn two_demos_at_once_keep_their_promises_and_count_them() {
    let _here = MACHINE.read().await;
    let folder = Folder::new();
    let start =
        || demo(folder.path(), &[]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it runs");
    let (first, second) = (start(), start());
    for playing in [first, second] {
        let output = playing.wait_with_output().expect("it ends");
        let said = text(&output.stdout);
        assert!(output.status.success(), "{said}{}", text(&output.stderr));
        assert!(output.stderr.is_empty(), "{}", text(&output.stderr));
        let [recorded, ..] = row(&said, "recorded");
        assert!(recorded > 100, "{said}");
        assert_eq!(row(&said, "delivered  "), [recorded, recorded - 1, recorded], "{said}");
        assert_eq!(row(&said, "dead"), [0, 1, 0], "one address does not exist");
        assert!(row(&said, "retried")[2] > 0, "the warehouse was closed: {said}");
        assert_eq!(row(&said, "delivered again")[0], 0, "the books have an inbox");
        for promise in ["lost", "out of order", "rolled back, delivered"] {
            assert_eq!(row(&said, promise), [0, 0, 0], "{said}");
        }
        for happening in ["is killed", "relay B takes over after", "an event is dead after 4 attempts"] {
            assert!(said.contains(happening), "no {happening:?} in\n{said}");
        }
        assert!(said.contains("Every promise held") && !said.contains("BROKEN"), "{said}");
    }
    for shop in content(&folder) {
        the_kept_shop_says_the_same(&shop).await;
    }
    assert_eq!(content(&folder).len(), 2, "each shop is kept, to look around");
}

async fn the_kept_shop_says_the_same(folder: &Path) {
    let url = format!("sqlite:{}", folder.join("shop.db").display());
    let shop = SqlitePool::connect(&url).await.expect("the kept file");
    let recorded =
        count(&shop, "select count(*) from postrider_event where stream in ('orders', 'payments')").await;
    assert_eq!(count(&shop, "select count(*) from changed").await, recorded);
    let booked = "select count(*) from effect where subscription = 'books'";
    assert_eq!(count(&shop, booked).await, recorded, "each once");
    let by_a = "select count(*) from effect where relay = 'relay A'";
    assert!(count(&shop, by_a).await > 0, "the relay that was killed had worked");
    let open = "select count(*) from postrider_event_state where state not in ('done', 'dead')";
    assert_eq!(count(&shop, open).await, 0);
    let dead = "select count(*) from postrider_event_state where state = 'dead' and subscription = 'mail'";
    assert_eq!(count(&shop, dead).await, 1);
    shop.close().await;
}

#[test]
fn piped_it_is_plain_text_that_fits_eighty_columns_and_ends_within_twenty_seconds() {
    let _here = MACHINE.blocking_write();
    let folder = Folder::new();
    let output = demo(folder.path(), &["--keep"]).arg(folder.path().join("kept")).output().expect("it runs");
    let said = text(&output.stdout);
    assert!(output.status.success(), "{said}{}", text(&output.stderr));
    assert!(!said.contains('\x1b') && !said.contains('\r'), "{said:?}");
    let took = said.split(", in ").nth(1).and_then(|rest| rest.split(" s.").next());
    let took: f64 = took.and_then(|took| took.parse().ok()).expect("how long it took");
    assert!(took < 20.0, "it took {took} s");
    // How to look around has a path in it, and is as long as that.
    let shown = said.split("Look around").next().expect("the rest");
    for line in shown.lines() {
        assert!(line.chars().count() < 80, "{line:?} is too long");
    }
    let shop = folder.path().join("kept/shop.db");
    assert!(said.contains(&format!("POSTRIDER_STORE_URL=sqlite:{}", shop.display())), "{said}");
    assert!(said.contains(" status\n") && said.contains(" dead list\n"), "{said}");
    assert!(shop.is_file());
    // What it says to type is typed.
    let commands = said.split("Look around:").nth(1).expect("how to look around");
    let output = Command::new("sh").args(["-ec", commands]).output().expect("a shell");
    let looked = text(&output.stdout);
    assert!(output.status.success(), "{commands}{}", text(&output.stderr));
    assert!(looked.contains("warehouse") && looked.contains("there is no such address"), "{looked}");
}

/// Runs the demo on a terminal of its own: everything that it sent there.
fn on_a_terminal(folder: &Folder, colours: bool) -> Child {
    let script = "import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))";
    let mut command = Command::new(xtask::python::ready().expect("a Python"));
    command.args(["-c", script, env!("CARGO_BIN_EXE_postrider"), "demo"]).env("TMPDIR", folder.path());
    command.env("TERM", "xterm").env("NO_COLOR", if colours { "" } else { "1" });
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it runs")
}

#[test]
fn on_a_terminal_it_draws_and_gives_the_cursor_back() {
    let _here = MACHINE.blocking_read();
    let folder = Folder::new();
    for (colours, playing) in [true, false].map(|colours| (colours, on_a_terminal(&folder, colours))) {
        let output = playing.wait_with_output().expect("it ends");
        let said = text(&output.stdout);
        assert!(output.status.success(), "{said}{}", text(&output.stderr));
        let (hidden, shown) = (said.rfind("\x1b[?25l"), said.rfind("\x1b[?25h"));
        assert!(hidden.is_some() && hidden < shown, "the cursor was taken and given back: {said:?}");
        assert!(said.contains("\x1b[J") && said.contains('█'), "it was drawn again and again: {said:?}");
        assert_eq!(said.contains("\x1b[32m"), colours, "{said:?}");
        assert_eq!(said.matches("the shop opens").count(), 1, "what happened is written once");
        assert!(said.contains("Every promise held") && said.contains("relay A: "), "{said:?}");
    }
}

#[test]
fn a_broken_promise_is_named_and_ends_with_1() {
    let _here = MACHINE.blocking_read();
    let folder = Folder::new();
    let start = |fault: &'static str| {
        let mut command = demo(folder.path(), &["--break", fault]);
        (fault, command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it runs"))
    };
    let playing = ["loss", "order", "effects"].map(start);
    for (fault, process) in playing {
        let output = process.wait_with_output().expect("it ends");
        let said = text(&output.stdout);
        assert_eq!(output.status.code(), Some(1), "{fault}: {said}{}", text(&output.stderr));
        let broken: Vec<&str> = said.lines().filter(|line| line.trim_start().starts_with("BROKEN")).collect();
        let named = match fault {
            "loss" => "lost: 1",
            "order" => "out of order within a customer: 1",
            _ => "1 twice",
        };
        assert!(broken.len() == 1 && broken[0].contains(named), "{fault}: {said}");
        assert!(said.contains("A promise was BROKEN") && !said.contains("Every promise held"), "{said}");
    }
}

#[test]
fn an_interrupted_demo_leaves_nothing_behind() {
    let _here = MACHINE.blocking_read();
    let folder = Folder::new();
    let mut playing = Playing::start(&folder);
    playing.signal("INT");
    let (code, said) = playing.ended();
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("interrupted") && !said.contains("panicked"), "{said}");
    playing.no_relay_is_left();
    assert!(content(&folder).is_empty(), "half a shop is removed");
}

#[test]
fn the_relays_of_a_killed_demo_end_by_themselves() {
    let _here = MACHINE.blocking_read();
    let folder = Folder::new();
    let mut playing = Playing::start(&folder);
    playing.signal("KILL");
    assert_eq!(playing.ended().0, None);
    playing.no_relay_is_left();
}

#[test]
fn a_closed_pipe_ends_it_quietly() {
    let _here = MACHINE.blocking_read();
    let folder = Folder::new();
    let mut playing = Playing::start(&folder);
    drop(playing.out.take());
    assert_eq!(playing.ended(), (Some(0), String::new()));
    playing.no_relay_is_left();
    assert!(content(&folder).is_empty(), "half a shop is removed");
}

#[test]
fn what_is_not_a_command_is_said_so() {
    let folder = Folder::new();
    let output = postrider(&["dmeo"], folder.path());
    assert_eq!(output.status.code(), Some(2));
    let said = text(&output.stderr);
    assert!(said.contains("'dmeo'") && said.contains("'demo'"), "{said}");
    assert_eq!(postrider(&[], folder.path()).status.code(), Some(2));
    let extra = postrider(&["demo", "extra"], folder.path());
    assert_eq!(extra.status.code(), Some(2));
    assert!(text(&extra.stderr).contains("'extra'"));
    let nowhere = postrider(&["demo"], Path::new("/dev/null"));
    assert_eq!(nowhere.status.code(), Some(1));
    assert!(text(&nowhere.stderr).contains("set TMPDIR"));
    std::fs::write(folder.path().join("mine"), "").expect("written");
    let full = demo(folder.path(), &["--keep"]).arg(folder.path()).output().expect("it runs");
    assert_eq!(full.status.code(), Some(2));
    assert!(text(&full.stderr).contains("must be empty; choose another one"), "{}", text(&full.stderr));
    let help = postrider(&["help"], folder.path());
    assert!(help.status.success() && text(&help.stdout).contains("Run a demo"));
    let help = postrider(&["demo", "--help"], folder.path());
    assert!(help.status.success() && !text(&help.stdout).contains("--break"), "it is for developers");
}
