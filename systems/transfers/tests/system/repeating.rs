//! A transfer that is asked for again: its id is the client's, and the same id is the same transfer.

use axum::Router;
use postrider_testkit::until;
use serde_json::{Value, json};
use transfers::acts::client::{Answer, Client};
use transfers::adapters::http::{router, routes};
use transfers::application::transfer::TransferService;
use transfers::domain::Account;
use uuid::Uuid;

use crate::support::stage;
use crate::unit_of_work::{Faulty, Step, balances, bank, counts};

/// A client of a transaction service in this process.
pub(crate) async fn serve(router: Router) -> Client {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    tokio::spawn(async move { drop(axum::serve(listener, router).await) });
    Client::new(url)
}

/// The sentence of a refusal.
pub(crate) fn error(answer: &Answer) -> &str {
    answer.body["error"].as_str().unwrap_or_default()
}

/// T1: the connection breaks in COMMIT, after the database has committed. The client is told that nobody knows, asks again with the same
/// id, and has paid once.
#[tokio::test(flavor = "multi_thread")]
async fn a_transfer_whose_commit_had_no_answer_is_not_made_twice() {
    let stage = stage().await;
    let units = bank(&stage).await;
    let broken = Faulty(units.clone(), Some(Step::Answer));
    let broken = serve(routes(units.clone(), TransferService::new(broken))).await;
    let id = Uuid::now_v7();
    let lost = broken.transfer_as(id, "a", "b", 800).await.expect("an answer");
    assert_eq!(lost.status, 503);
    assert_eq!(error(&lost), "the outcome is unknown; send the same transfer id again");
    assert_eq!((balances(&units).await, counts(&stage).await), ([200, 1800], [1, 1]), "it has happened");

    // What is left would not cover it a second time.
    let service = serve(router(units.clone())).await;
    let again = service.transfer_as(id, "a", "b", 800).await.expect("an answer");
    assert_eq!(again.status, 200, "{:?}", again.body);
    assert_eq!((balances(&units).await, counts(&stage).await), ([200, 1800], [1, 1]), "and once");
    let event: Uuid = sqlx::query_scalar("select event_id from transfer_events where aggregate_id = $1")
        .bind(id.to_string())
        .fetch_one(&stage.db)
        .await
        .expect("its event");
    assert_eq!(again.body, json!({ "transactionId": id, "eventId": event }));

    // A fault before the commit leaves nothing, and the same id makes the transfer then.
    let broken = Faulty(units.clone(), Some(Step::Commit));
    let broken = serve(routes(units.clone(), TransferService::new(broken))).await;
    let id = Uuid::now_v7();
    assert_eq!(broken.transfer_as(id, "b", "a", 1).await.expect("an answer").status, 503);
    assert_eq!(counts(&stage).await, [1, 1]);
    assert_eq!(service.transfer_as(id, "b", "a", 1).await.expect("an answer").status, 201);
    assert_eq!(counts(&stage).await, [2, 2]);
}

/// T11: another transfer with an id that is taken is refused, whatever is different in it; and an id must be given.
#[tokio::test(flavor = "multi_thread")]
async fn an_id_that_another_transfer_has_is_refused() {
    let stage = stage().await;
    let units = bank(&stage).await;
    assert!(units.open_account(&Account { id: "c".into(), balance: 1000 }).await.expect("opened"));
    let service = serve(router(units.clone())).await;
    let id = Uuid::now_v7();
    assert_eq!(service.transfer_as(id, "a", "b", 300).await.expect("an answer").status, 201);
    for (from, to, amount) in [("a", "b", 301), ("a", "c", 300), ("c", "b", 300), ("b", "a", 300)] {
        let refused = service.transfer_as(id, from, to, amount).await.expect("an answer");
        assert_eq!(refused.status, 409, "{from} {to} {amount}");
        assert_eq!(error(&refused), format!("another transfer has the id {id}"));
    }
    let ask = async |body: Value| {
        let request = story::process::client().post(format!("{}/transfers", service.url)).json(&body);
        request.send().await.expect("an answer").status().as_u16()
    };
    let same = json!({ "transactionId": id, "from": "a", "to": "b", "amount": 300 });
    assert_eq!(ask(same.clone()).await, 200);
    let mut other = same;
    other["memo"] = json!("another memo");
    assert_eq!(ask(other).await, 409);
    assert_eq!(ask(json!({ "from": "a", "to": "b", "amount": 300 })).await, 422, "without an id");
    assert_eq!((balances(&units).await, counts(&stage).await), ([700, 1300], [1, 1]));
}

/// T11: of requests with one id that come at the same time, one makes the transfer: between the same accounts the others find it, and
/// between other accounts they are refused.
#[tokio::test(flavor = "multi_thread")]
async fn of_requests_with_one_id_at_the_same_time_one_moves_the_money() {
    let stage = stage().await;
    let units = bank(&stage).await;
    for id in ["c", "d"] {
        assert!(units.open_account(&Account { id: id.into(), balance: 1000 }).await.expect("opened"));
    }
    let service = serve(router(units.clone())).await;
    let id = Uuid::now_v7();
    // Nobody ends before everybody waits: the accounts are locked by somebody else.
    let mut lock = stage.db.begin().await.expect("a transaction");
    sqlx::query("select from accounts for update").execute(&mut *lock).await.expect("locked");
    let mut asking = tokio::task::JoinSet::new();
    for (from, to) in [("a", "b"), ("a", "b"), ("a", "b"), ("a", "b"), ("c", "d"), ("c", "d")] {
        let service = service.clone();
        asking.spawn(async move { service.transfer_as(id, from, to, 100).await.expect("an answer").status });
    }
    let waiting = "select count(*) from pg_stat_activity where datname = current_database()
        and wait_event_type = 'Lock' and query like '%for update%'";
    until("all of them wait", async || stage.number(waiting).await == 6).await;
    lock.rollback().await.expect("unlocked");
    let mut statuses = asking.join_all().await;
    statuses.sort_unstable();
    assert_eq!(statuses.iter().filter(|status| **status == 201).count(), 1, "{statuses:?}");
    let found = statuses.iter().filter(|status| **status == 200).count();
    let refused = statuses.iter().filter(|status| **status == 409).count();
    assert!([(3, 2), (1, 4)].contains(&(found, refused)), "{statuses:?}");
    assert_eq!(counts(&stage).await, [1, 1]);
    let total = stage.number("select sum(balance)::bigint from accounts").await;
    assert_eq!(total, 4000);
}
