//! A small load beside other tests. What is measured is in a test program of its own, `load`.

use postrider_testkit::{address, until};
use transfers::acts::latency::{ASKED, Latency};
use transfers::acts::load::{KILLED, Options, act};
use transfers::acts::stage::Stage;
use xtask::postgres::Cluster;

use crate::support::{program, record, stage, until_looks_are_a_second_apart};

/// One load, of which nothing may be lost: how long it took from commit to risk log.
async fn load(options: Options) -> Latency {
    let cluster = tokio::task::spawn_blocking(|| Cluster::create(&[("track_commit_timestamp", "on")]));
    let cluster = cluster.await.expect("a task").expect("a PostgreSQL that keeps when each commit was");
    let port = address::kafka().rsplit_once(':').and_then(|(_, port)| port.parse().ok()).expect("a port");
    let stage = Stage::on(program(), cluster.url("postgres"), None, port).await;
    let done = act(&stage, options).await;
    assert_eq!(done.transfers, options.rate * options.seconds);
    let made = i64::try_from(done.transfers).expect("a number") + 1;
    assert_eq!((stage.transfers().await, stage.analysed().await), (made, (made, made)));
    let shared = "select count(distinct settled_by) from postrider.settled_batch where count > 0";
    assert_eq!(stage.number(shared).await, 2, "both relays had a share");
    Latency::read(&stage, &done.killed_at, KILLED).await
}

/// T10: two relays and fraud detection on the machine, one relay killed halfway: nothing is lost, and each is analysed once. Outside of the
/// take-over the median from commit to risk log is below the documents' 500 ms.
#[tokio::test(flavor = "multi_thread")]
async fn a_load_with_a_relay_killed_halfway_loses_nothing() {
    let median = load(Options { rate: 200, seconds: 4 }).await.percentile(50);
    assert!(median < ASKED, "{median} ms");
}

/// T10: a commit wakes a relay that sleeps: after a quiet time, too, the median is below the documents' 500 ms, although the next look
/// would be a second later.
#[tokio::test(flavor = "multi_thread")]
async fn after_a_quiet_time_an_event_is_analysed_soon() {
    let stage = stage().await;
    let (_relay, _fraud) = (stage.relay("relay-0", &[]), stage.fraud("fraud"));
    for number in 1..=5 {
        record(&stage, 1, 1).await;
        until("it is analysed", async || stage.analysed().await.1 == number).await;
        until_looks_are_a_second_apart(&stage).await;
    }
    // The first one found nobody awake.
    let median = "select (percentile_cont(0.5) within group (order by extract(epoch from lag)) * 1000)::bigint from (
            select r.logged_at - e.recorded_at as lag from fds.risk_log r join postrider.event e using (event_id)
            order by e.recorded_at offset 1
        ) as lags";
    let median = stage.number(median).await;
    assert!((median as f64) < ASKED, "{median} ms");
}

/// What was asked for is read, and what nobody knows is refused.
#[test]
fn options_are_read_and_unknown_ones_refused() {
    let parse = |text: &str| Options::parse(text.split_whitespace().map(str::to_owned));
    assert_eq!(parse("--rate 50 --seconds 3"), Ok(Options { rate: 50, seconds: 3 }));
    assert_eq!(parse(""), Ok(Options { rate: 1000, seconds: 30 }));
    for wrong in ["--rate", "--rate 0", "--rate fast", "--quick"] {
        assert!(parse(wrong).is_err(), "{wrong}");
    }
}
