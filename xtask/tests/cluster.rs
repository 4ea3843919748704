//! The promises of `xtask::postgres::Cluster`.

use std::time::Duration;

use xtask::TaskError;
use xtask::postgres::Cluster;
use xtask::process;

const SOON: Duration = Duration::from_secs(20);

fn psql(cluster: &Cluster, sql: &str) -> Result<String, TaskError> {
    let mut psql = cluster.bin("psql");
    psql.args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-c", sql]);
    process::output(&mut psql, sql).map(|answer| answer.trim().to_owned())
}

fn children(parent: u32) -> Vec<u32> {
    process::list().iter().filter(|process| process.parent == parent).map(|process| process.pid).collect()
}

#[test]
fn a_cluster_starts_and_answers_its_own_psql() -> Result<(), TaskError> {
    let cluster = Cluster::create(&[])?;
    assert_eq!(psql(&cluster, "SELECT 1")?, "1");
    assert_eq!(psql(&cluster, "SHOW listen_addresses")?, "127.0.0.1");
    assert_eq!(psql(&cluster, "SHOW port")?, cluster.port().to_string());
    assert_eq!(psql(&cluster, "SHOW server_encoding")?, "UTF8");
    assert_eq!(psql(&cluster, "SHOW timezone")?, "UTC");
    assert_eq!(psql(&cluster, "SHOW max_connections")?, "1300");
    assert_eq!(psql(&cluster, "SHOW fsync")?, "off");

    let mut by_url = cluster.bin("psql");
    by_url.args(["-X", "-A", "-t", "-c", "SELECT current_database()", &cluster.url("template1")]);
    assert_eq!(process::output(&mut by_url, "ask by the address")?.trim(), "template1");
    Ok(())
}

#[test]
fn a_setting_of_the_caller_wins() -> Result<(), TaskError> {
    let cluster = Cluster::create(&[("fsync", "on"), ("log_line_prefix", "it's ")])?;
    assert_eq!(psql(&cluster, "SHOW fsync")?, "on");
    assert_eq!(psql(&cluster, "SELECT current_setting('log_line_prefix') = 'it''s '")?, "t");
    Ok(())
}

#[test]
fn a_killed_cluster_restarts_with_its_committed_data() -> Result<(), TaskError> {
    let mut cluster = Cluster::create(&[])?;
    let address = cluster.url("postgres");
    psql(&cluster, "CREATE TABLE kept (n int); INSERT INTO kept SELECT generate_series(1, 1000)")?;
    let postmaster = cluster.pid().expect("a server that runs");
    let mut processes = children(postmaster);
    processes.push(postmaster);
    assert!(processes.len() > 3, "the server has processes of its own: {processes:?}");

    cluster.kill()?;
    assert_eq!(cluster.pid(), None);
    assert!(!process::list().iter().any(|process| processes.contains(&process.pid)));
    assert!(psql(&cluster, "SELECT 1").is_err());

    cluster.start()?;
    assert_eq!(cluster.url("postgres"), address);
    assert_eq!(psql(&cluster, "SELECT count(*) FROM kept")?, "1000");
    let log = std::fs::read_to_string(cluster.log()).expect("a log");
    assert!(log.contains("was not properly shut down"), "it was a crash, not a stop:\n{log}");
    Ok(())
}

#[test]
fn a_dropped_cluster_leaves_no_process_and_no_folder() -> Result<(), TaskError> {
    let cluster = Cluster::create(&[])?;
    let folder = cluster.folder().to_owned();
    let postmaster = cluster.pid().expect("a server that runs");
    let mut processes = children(postmaster);
    processes.push(postmaster);
    assert!(folder.join("data").exists());

    drop(cluster);
    assert!(!folder.exists());
    let gone = || {
        !process::list()
            .iter()
            .any(|it| processes.contains(&it.pid) || it.command.contains(&*folder.to_string_lossy()))
    };
    assert!(process::wait_until(SOON, gone), "still running: {processes:?}");
    Ok(())
}

#[test]
fn data_put_back_brings_back_its_past() -> Result<(), TaskError> {
    let mut cluster = Cluster::create(&[])?;
    let past = cluster.folder().join("past");
    psql(&cluster, "CREATE TABLE t (n int); INSERT INTO t VALUES (1)")?;
    assert!(cluster.copy_data_to(&past).is_err(), "the data of a running server is torn");
    assert!(!past.exists());

    cluster.stop()?;
    cluster.copy_data_to(&past)?;
    assert!(cluster.copy_data_to(&past).is_err(), "a second copy would be mixed into the first");
    cluster.start()?;
    psql(&cluster, "INSERT INTO t VALUES (2)")?;
    assert!(cluster.replace_data_from(&past).is_err(), "the server still runs on what would be replaced");
    assert_eq!(psql(&cluster, "SELECT sum(n) FROM t")?, "3");

    cluster.stop()?;
    cluster.replace_data_from(&past)?;
    cluster.start()?;
    assert_eq!(psql(&cluster, "SELECT sum(n) FROM t")?, "1");
    Ok(())
}

#[test]
fn data_of_another_cluster_that_was_killed_is_taken_over() -> Result<(), TaskError> {
    let mut old = Cluster::create(&[])?;
    let mut new = Cluster::create(&[])?;
    psql(&old, "CREATE TABLE t (n int); INSERT INTO t VALUES (7)")?;
    old.kill()?;
    new.stop()?;
    new.replace_data_from(old.data_dir())?;
    new.start()?;
    old.start()?;
    assert_eq!(psql(&new, "SELECT n FROM t")?, "7");
    assert_eq!(psql(&old, "SELECT n FROM t")?, "7");
    Ok(())
}

#[test]
fn a_server_that_does_not_start_shows_the_end_of_its_log() {
    let failure = Cluster::create(&[("shared_buffers", "plenty")]).expect_err("no such size");
    assert!(failure.to_string().starts_with("PostgreSQL did not start"), "{failure}");
    assert!(failure.mentions(r#"invalid value for parameter "shared_buffers""#), "{failure}");
}
