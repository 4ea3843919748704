//! The promises of `xtask::postgres::Standby` and of a point-in-time restore.

use xtask::TaskError;
use xtask::postgres::restore::ARCHIVING;
use xtask::postgres::{Cluster, Standby};
use xtask::process;

const SMALL: [(&str, &str); 2] = [("shared_buffers", "16MB"), ("max_connections", "20")];

fn psql(cluster: &Cluster, sql: &str) -> Result<String, TaskError> {
    let mut psql = cluster.bin("psql");
    psql.args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-c", sql]);
    process::output(&mut psql, sql).map(|answer| answer.trim().to_owned())
}

#[test]
fn a_promoted_standby_has_what_it_caught_up_with_and_nothing_that_came_after_its_cut() -> Result<(), TaskError>
{
    let mut primary = Cluster::create(&SMALL)?;
    psql(&primary, "create table kept (n integer)")?;
    let standby = Standby::of(&primary)?;
    psql(&primary, "insert into kept select generate_series(1, 10)")?;
    standby.catch_up(&primary)?;
    assert_eq!(psql(standby.cluster(), "select count(*), pg_is_in_recovery() from kept")?, "10|t");
    standby.cut_off()?;
    psql(&primary, "insert into kept select generate_series(11, 20)")?;
    primary.kill()?;
    let promoted = standby.promote()?;
    assert_eq!(psql(&promoted, "select count(*), pg_is_in_recovery() from kept")?, "10|f");
    psql(&promoted, "insert into kept values (11)")?;
    Ok(())
}

#[test]
fn a_standby_takes_the_address_of_a_dead_primary_only() -> Result<(), TaskError> {
    let mut primary = Cluster::create(&SMALL)?;
    let mut standby = Standby::of(&primary)?;
    assert!(standby.take_address_of(&primary).is_err());
    primary.kill()?;
    standby.take_address_of(&primary)?;
    let promoted = standby.promote()?;
    assert_eq!(promoted.port(), primary.port());
    assert_eq!(psql(&promoted, "select pg_is_in_recovery()")?, "f");
    Ok(())
}

#[test]
fn a_restored_cluster_ends_at_its_point_and_keeps_its_address() -> Result<(), TaskError> {
    let settings: Vec<_> = SMALL.iter().chain(ARCHIVING).copied().collect();
    let mut cluster = Cluster::create(&settings)?;
    psql(&cluster, "create table kept (n integer)")?;
    let backup = cluster.folder().join("backup");
    cluster.back_up_to(&backup)?;
    psql(&cluster, "insert into kept select generate_series(1, 10)")?;
    cluster.restore_point("here")?;
    psql(&cluster, "insert into kept select generate_series(11, 20)")?;
    let port = cluster.port();
    cluster.restore_to(&backup, "here")?;
    assert_eq!(psql(&cluster, "select count(*), pg_is_in_recovery() from kept")?, "10|f");
    assert_eq!(cluster.port(), port);
    psql(&cluster, "insert into kept values (11)")?;
    Ok(())
}
