//! What the tests share.

use std::path::Path;

use postrider_testkit::{address, until};
use transfers::acts::stage::Stage;

/// The program of this system.
pub(crate) fn program() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_transfers"))
}

/// A stage on the servers of the tests.
pub(crate) async fn stage() -> Stage {
    let port = address::kafka().rsplit_once(':').and_then(|(_, port)| port.parse().ok());
    Stage::new(program(), port.expect("POSTRIDER_TEST_KAFKA must be host:port")).await
}

/// Records events of transfers that nobody made, of so many senders, in one statement: where only their way counts.
pub(crate) async fn record(stage: &Stage, count: i32, senders: i32) {
    let sql = "with made as (select n, gen_random_uuid() as id from generate_series(1, $1) as n)
        select count(postrider.record('transfers', 'TransferCompleted', 'Transfer', id::text,
            json_build_object('transactionId', id, 'fromAccount', 'sender-' || n % $2, 'toAccount', 'receiver', 'amount', 1, 'memo', '',
                              'completedAt', 0),
            ordering_key => 'sender-' || n % $2))
        from made";
    let recorded: i64 =
        sqlx::query_scalar(sql).bind(count).bind(senders).fetch_one(&stage.db).await.expect("recorded");
    assert_eq!(recorded, i64::from(count));
}

/// How many events the relays have settled.
pub(crate) async fn settled(stage: &Stage) -> i64 {
    stage.number("select coalesce(sum(count), 0)::bigint from postrider.settled_batch").await
}

/// Pauses the subscription: from now on relays only watch and clean up.
pub(crate) async fn pause(stage: &Stage) {
    let (code, said) =
        stage.postrider(&["subscriptions", "pause", "transfers-to-kafka", "--yes", "--why", "a test"]).await;
    assert_eq!(code, Some(0), "{said}");
}

/// When a relay looked last, in milliseconds.
const LAST_LOOK: &str =
    "select coalesce(max((extract(epoch from query_start) * 1000)::bigint), 0) from pg_stat_activity
    where datname = current_database() and query like '%late as mat' || 'erialized%'";

/// Waits until two pauses in a row were a second, and the relay has just looked into all of its lanes. Its pauses grow with the quiet up to the interval: by
/// doubling, no two in a row are alike.
pub(crate) async fn until_looks_are_a_second_apart(stage: &Stage) {
    let mut looks = Vec::new();
    until("three looks are a second apart", async || {
        let look = stage.number(LAST_LOOK).await;
        // It looks into each of its lanes, and perhaps twice.
        if looks.last().is_none_or(|last| *last + 100 < look) {
            looks.push(look);
        }
        let now = stage.number("select (extract(epoch from clock_timestamp()) * 1000)::bigint").await;
        let is_over = (100..400).contains(&(now - look));
        let mut pauses = looks.windows(2).rev().map(|pair| pair[1] - pair[0]).take(2);
        is_over && looks.len() > 2 && pauses.all(|pause| (900..1500).contains(&pause))
    })
    .await;
}
