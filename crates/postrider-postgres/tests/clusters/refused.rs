//! What is refused at start: a sequence, a hash, a login.

use std::time::Duration;

use postrider_conformance::relay::{commit_one, drain, ids, subscribe};
use postrider_core::{Clock, ErrorKind};
use postrider_postgres::Outbox;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};

use super::{cluster, options};
use crate::support::{Pg, PgLog};

/// Start refuses a sequence that is behind the log, or that has a cache: events would never be read.
#[tokio::test]
async fn a_sequence_behind_the_log_or_with_a_cache_is_refused_at_start() {
    let cluster = cluster();
    let log: PgLog = Pg::default().log_on(options(&cluster), Clock::Database).await;
    for _ in 0..5 {
        commit_one(&log, "a").await;
    }
    log.run("select setval('{schema}.event_id', 2)").await;
    let error = log.outbox.store().await.err().expect("refused");
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    assert!(error.to_string().contains("behind the log (2 < 5)"), "{error}");
    log.run("select setval('{schema}.event_id', 5); alter sequence {schema}.event_id cache 20").await;
    let error = log.outbox.store().await.err().expect("refused");
    assert!(error.to_string().contains("cache"), "{error}");
    log.run("alter sequence {schema}.event_id cache 1").await;
    log.outbox.store().await.expect("all is well again");
}

/// A server of another platform may hash keys otherwise: several lanes would each miss events of the keys they get. With one
/// lane nothing depends on it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_log_from_a_server_that_hashes_otherwise_is_refused_unless_it_has_one_lane() {
    let cluster = cluster();
    let log = Pg::default().log_on(options(&cluster), Clock::Database).await;
    subscribe(&log.store, "s").await;
    let id = commit_one(&log, "a").await;
    log.run("update {schema}.cluster set system = 1, identifier = 1, hash = hash # 1").await;
    log.run("update {schema}.subscription set lanes = 2").await;
    let outbox = Outbox::builder().schema(&log.schema).connect(&log.pool).await.expect("outbox");
    let message = outbox.store().await.err().expect("refused").to_string();
    assert!(message.contains("hashes keys otherwise") && message.contains("one lane"), "{message}");

    log.run("update {schema}.subscription set lanes = 1").await;
    let store = outbox.store().await.expect("one lane needs no hash");
    assert_eq!(ids(&drain(&store, "s").await), [id]);
    outbox.store().await.expect("and it is known from now on");
}

/// A wrong password, an unknown user, a missing database, a replica: one sentence each, and no password in it.
#[tokio::test]
async fn a_login_that_fails_is_said_so_without_the_password() {
    let mut cluster = cluster();
    let log = Pg::default().log_on(options(&cluster), Clock::Database).await;
    log.run("create role app login password 'right'").await;
    let hba = cluster.data_dir().join("pg_hba.conf");
    std::fs::write(&hba, "host all app 127.0.0.1/32 scram-sha-256\nhost all all 127.0.0.1/32 trust\n")
        .expect("write");
    cluster.stop().expect("stop");
    cluster.start().expect("start");
    let attempt = async |options: PgConnectOptions| {
        let pool = PgPoolOptions::new().acquire_timeout(Duration::from_secs(1)).connect_lazy_with(options);
        let error = Outbox::builder().schema(&log.schema).connect(&pool).await.expect_err("refused");
        let text = format!("{error} {error:?}");
        assert!(!text.contains("hunter2"), "{text}");
        (error.kind(), text)
    };
    let (kind, text) = attempt(options(&cluster).username("app").password("hunter2")).await;
    assert!(kind == ErrorKind::Denied && text.contains("password"), "{text}");
    let (kind, text) = attempt(options(&cluster).username("nobody")).await;
    assert!(kind == ErrorKind::Denied && text.contains("nobody"), "{text}");
    let (kind, text) = attempt(options(&cluster).database("nowhere")).await;
    assert!(kind == ErrorKind::Denied && text.contains("nowhere"), "{text}");
}
