//! The story itself, on both databases.

use std::net::TcpStream;
use std::process::Command;

use sqlx::{Connection, PgConnection};
use story::Kept;

fn story(arguments: &[&str]) {
    let output = Command::new(env!("CARGO_BIN_EXE_everbit")).arg("story").args(arguments).output();
    let output = output.expect("the story runs");
    let (told, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{told}{errors}");
    assert!(told.contains("Every promise held"), "{told}");
    println!("{told}");
}

/// E5, E11, E12, E18: the whole of it on PostgreSQL: seven answers, kills, one order per intent. With `--keep` it stays up, with the commands that
/// it printed, for whoever wants to look at it; asked to end, it leaves nothing behind.
#[tokio::test]
async fn the_story_holds_on_postgres() {
    let kept =
        Kept::tell(env!("CARGO_BIN_EXE_everbit"), "postrider replay backtest-worker --since 1h --dry-run");
    let told = kept.text();
    assert!(told.contains("Every promise held"), "{told}");
    println!("{told}");
    let status = kept.run("postrider status");
    for (worker, _) in everbit::domain::streams::WORKERS {
        assert!(status.contains(worker), "{worker}: {status}");
    }
    kept.run("postrider dead list");
    let (api, database) = (kept.address("API").to_owned(), kept.address("database").to_owned());
    let api = api.trim_start_matches("http://");
    assert!(TcpStream::connect(api).is_ok() && PgConnection::connect(&database).await.is_ok());
    assert_eq!(kept.end(), Some(0));
    assert!(TcpStream::connect(api).is_err(), "its processes ended with it");
    let gone = PgConnection::connect(&database).await.map(drop).expect_err("and so did its database");
    assert!(gone.to_string().contains("does not exist"), "{gone}");
}

/// E11: the same with nothing installed.
#[test]
fn the_story_holds_on_sqlite() {
    story(&["--store", "sqlite"]);
}

/// A position that lacks a fill is told in a line and counted, and the exit code is 1.
#[test]
fn a_planted_loss_is_told() {
    let told = Command::new(env!("CARGO_BIN_EXE_everbit"))
        .args(["story", "--store", "sqlite", "--break", "loss"])
        .output();
    let told = told.expect("the story runs");
    let text = String::from_utf8_lossy(&told.stdout);
    assert_eq!(told.status.code(), Some(1), "{text}");
    assert!(
        text.contains("    BROKEN   position in units of 1e-8: ") && text.contains(", but it must be "),
        "{text}"
    );
    assert!(text.contains("1 of ") && text.contains(" promises broke, in "), "{text}");
}
