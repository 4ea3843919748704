//! Workers that are killed: no order is lost, and none is placed twice.

use std::path::Path;

use everbit::story::cast::Cast;
use everbit::story::kills::{Moment, broken, round};
use everbit::stubs::exchange::Conduct;
use postrider_testkit::until;

fn program() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_everbit"))
}

/// E11, E5: the seven answers of the exchange, with the worker killed at each step. Orders at the exchange: one per intent. The long form
/// kills a worker for each answer alone, twice over.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn seven_answers_and_a_kill_at_each_step_leave_one_order_per_intent() {
    let cast = Cast::raise(program(), false).await;
    let mut intents = Vec::new();
    for moment in Moment::ALL {
        intents.extend(round(&cast, moment, &Conduct::ALL).await);
    }
    if std::env::var_os("POSTRIDER_SOAK").is_some() {
        for moment in Moment::ALL.iter().cycle().take(2 * Moment::ALL.len()) {
            for conduct in Conduct::ALL {
                intents.extend(round(&cast, *moment, &[conduct]).await);
            }
        }
    }
    assert!(intents.len() >= 42);
    assert_eq!(broken(&cast, &intents).await, [].into(), "orders, and requests");
    let (intents, acked) = (i64::try_from(intents.len()).expect("a number"), "where status = 'ACKED'");
    assert_eq!(cast.database.count(&format!("select count(*) from order_attempt {acked}")).await, intents);
    let accepted = "select count(*) from outbox_event where event_type = 'OrderAccepted'";
    assert_eq!(cast.database.count(accepted).await, intents, "one event for each order");
}

/// E5: what a killed worker had in hand is processing until its lease runs out, and is taken up then.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_work_of_a_killed_worker_is_taken_up_after_its_lease() {
    let cast = Cast::raise(program(), false).await;
    let settings = [("EVERBIT_HALT_AT", "Requested"), ("EVERBIT_LEASE_MS", "2000")];
    let (mut worker, _) = cast.worker("first", &settings).await;
    let intent = cast.signal(Conduct::Place).await;
    worker.line("halted at Requested").await;
    let of_first = "select count(*) from outbox_event where status = 'PROCESSING' and locked_by = 'first'
                    and locked_until > now()";
    until("it is processing", async || cast.database.count(of_first).await == 1).await;
    worker.process.kill();
    assert_eq!(cast.database.count(of_first).await, 1, "the lease still runs");
    let milliseconds = "select (extract(epoch from max(locked_until)) * 1000)::bigint from outbox_event";
    let lease_end = cast.database.count(milliseconds).await;
    let lease = lease_end - everbit::adapters::now();
    assert!((1..=2_000).contains(&lease), "{lease} ms are left of 2 s");
    let (_heir, _) = cast.worker("second", &[]).await;
    cast.settled(&[intent]).await;
    let taken = "select (extract(epoch from max(last_attempt_at)) * 1000)::bigint from outbox_event
                 where stream = 'everbit.trade.command'";
    let taken = cast.database.count(taken).await;
    let attempts = "select attempt_count::bigint from outbox_event where stream = 'everbit.trade.command'";
    assert_eq!(cast.database.count(attempts).await, 1, "a worker's death costs no attempt");
    assert!(taken >= lease_end, "taken up {} ms before the lease ran out", lease_end - taken);
    // It may have been sent, so it was not sent again.
    assert_eq!(cast.attempts(intent).await, ["REJECTED"]);
    assert!(cast.book().await.requests.is_empty());
    let by = "select count(*) from postrider.event_state where delivered_by = 'second'
              and subscription = 'order-executor-worker' and state = 'done'";
    assert_eq!(cast.database.count(by).await, 1);
}

/// E5: a command that kills its worker each time is dead after three deaths, or four, because nobody knows who caused the first; after that
/// workers live, and the others go on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_that_kills_its_worker_each_time_is_dead() {
    let cast = Cast::raise(program(), false).await;
    let poison = cast.signal(Conduct::Place).await;
    let dead = "select count(*) from outbox_event where status = 'DEAD' and last_error_code = 'crashed'";
    let mut deaths = 0;
    loop {
        let (mut worker, _) =
            cast.worker(&format!("victim-{deaths}"), &[("EVERBIT_HALT_AT", "Received")]).await;
        let is_dead = tokio::select! {
            _ = worker.line("halted at Received") => false,
            () = until("it is dead", async || cast.database.count(dead).await == 1) => true,
        };
        if is_dead {
            break;
        }
        worker.process.kill();
        deaths += 1;
        assert!(deaths <= 4, "it kills workers for ever");
    }
    assert!((3..=4).contains(&deaths), "{deaths} workers died");
    assert_eq!(cast.attempts(poison).await, [""; 0], "it got nowhere");
    let (_worker, _) = cast.worker("survivor", &[]).await;
    let intent = cast.signal(Conduct::Place).await;
    until("another one has its order", async || cast.attempts(intent).await == ["ACKED"]).await;
    assert_eq!(cast.book().await.orders.len(), 1);
    assert_eq!(cast.database.count(dead).await, 1, "and it stays dead");
}
