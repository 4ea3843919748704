//! What happens on a good day: money moves, and a week goes by.

use serde_json::{Value, json};
use story::Story;
use story::testkit::until;

use super::scene::Scene;
use crate::adapters::outbox::event_id;

/// How many accounts there are. All writers use the first.
pub const ACCOUNTS: i64 = 12;
const WRITERS: i64 = 8;

/// Eight writers at once: deposits into one account, and transfers in all directions.
pub async fn write(scene: &Scene, each: i64) {
    let bank = &scene.bank;
    let write = async |writer: i64| {
        for number in 0..each {
            let to = (writer * 5 + number) % (ACCOUNTS - 1) + 2;
            if number % 2 == 0 {
                bank.deposit(1, 10).await;
            } else {
                bank.transfer(1, to, 3).await;
            }
        }
    };
    let [a, b, c, d, e, f, g, h] = std::array::from_fn(|writer| write(writer as i64 % WRITERS));
    tokio::join!(a, b, c, d, e, f, g, h);
}

/// Deposits, withdrawals, transfers and reversals; what is refused; how long it takes until others see it.
pub async fn money_moves(story: &mut Story, scene: &Scene) {
    let (bank, stage) = (&scene.bank, &scene.stage);
    let each = if story.options().long { 200 } else { 12 };
    for account in 1..=ACCOUNTS {
        bank.deposit(account, 500).await;
    }
    write(scene, each).await;
    let conflicts = bank.conflicts();
    story.tell(format!(
        "{WRITERS} writers posted to one account at once; {conflicts} times one of them had to begin again"
    ));
    let (status, answer) = bank
        .ask("/withdrawals", &json!({ "transactionId": bank.id(), "accountId": 2, "amount": 1_000_000 }))
        .await;
    story.equal("a withdrawal below zero is refused", status, 422);
    story.tell(format!("it was told: {}", answer["error"].as_str().unwrap_or_default()));
    bank.post("/withdrawals", json!({ "accountId": 2, "amount": 50 })).await;
    let moved = bank.transfer(3, 4, 100).await;
    let path = format!("/transactions/{moved}/reversal");
    let reversal = bank.post(&path, json!({})).await;
    let (status, _) = bank.ask(&path, &json!({ "transactionId": bank.id() })).await;
    story.equal("a second reversal is refused", status, 422);
    let path = format!("/transactions/{reversal}/reversal");
    let (status, _) = bank.ask(&path, &json!({ "transactionId": bank.id() })).await;
    story.equal("the reversal of a reversal is refused", status, 422);
    let body = json!({ "transactionId": moved, "fromAccountId": 3, "toAccountId": 4, "amount": 100 });
    let (_, answer) = bank.ask("/transfers", &body).await;
    story.equal("a request that is repeated posts nothing", &answer["repeated"], &json!(true));
    let balances = stage.balances().await;
    story.comes_to("read model = balances", async || stage.read_model().await, balances).await;
    let longest = stage.read_number(
        "select coalesce(max(timestampdiff(microsecond, recorded_at, received_at)), 0) from audit_feed where transaction_id > 1",
    );
    let longest = longest.await as f64 / 1e6;
    story.holds("others see a posting within 3 s", longest <= 3.0, format!("{longest:.2} s at most"));
}

/// After 7 days everything that was delivered is in the archive, where it can be found.
pub async fn a_week_goes_by(story: &mut Story, scene: &Scene) {
    let stage = &scene.stage;
    let delivered = "select count(*) from outbox_event where status = 'PROCESSED'";
    let before = stage.number(delivered).await;
    stage.turn_back(8 * 86_400).await;
    let settings = stage.settings("operator", &[]);
    // A relay may be at its own retention.
    until("the operator's retention has run", async || {
        let output = stage.postrider(&settings, &["archive", "--yes", "--why", "a week is over"]).output();
        output.is_ok_and(|output| output.status.success())
    })
    .await;
    let left = stage.number(delivered).await;
    let archived = stage.number("select count(*) from postrider_archive").await;
    story.equal("events that were delivered 7 days ago are in the archive", (left, archived), (0, before));
    let id = event_id(1, 1).to_string();
    let found: Value =
        serde_json::from_str(&stage.operate(&["events", "--id", &id, "--json"])).expect("JSON");
    let found = found["events"].as_array().map_or(0, Vec::len);
    story.equal("`postrider events --id` finds the first of them", found, 1);
}
