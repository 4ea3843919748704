//! What is counted at the end.

use std::collections::BTreeSet;

use story::Story;
use tokio::task::block_in_place;

use super::scene::Scene;
use super::topic::records;
use crate::adapters::figures::Figures;

/// Counts everything, and holds it against what was promised.
pub async fn count(story: &mut Story, scene: &Scene) {
    let stage = &scene.stage;
    let legs = stage.number("select count(*) from journal_entries where account_id > 0").await;
    let feed = async || stage.read_number("select count(*) from audit_feed").await;
    story.comes_to("the audit feed has each leg", feed, legs).await;
    story.comes_to("the position system was told of each", async || scene.triggered().await, legs).await;
    story.figure("transactions", stage.number("select count(*) from transactions").await);
    story.figure("legs", legs);
    let side = async |side: &str| -> i64 {
        let sql = "select cast(sum(amount) as signed) from journal_entries where side = ?";
        sqlx::query_scalar(sql).bind(side).fetch_one(stage.ledger.pool()).await.expect("a sum")
    };
    story.equal("debits = credits", side("DEBIT").await, side("CREDIT").await);
    let uneven = "select count(*) from (select transaction_id from journal_entries group by transaction_id
        having sum(if(side = 'DEBIT', amount, -amount)) <> 0) as uneven";
    story.equal("in each transaction", stage.number(uneven).await, 0);
    let wrong = "select count(*) from balances b where b.amount <> (select sum(if(side = 'CREDIT', j.amount, -j.amount))
        from journal_entries j where j.account_id = b.account_id)";
    story.equal("balances that are not the sum of their entries", stage.number(wrong).await, 0);
    let balances = stage.balances().await;
    story.comes_to("read model = balances", async || stage.read_model().await, balances).await;
    let sent = "select count(*) from outbox_event where status = 'PROCESSED'";
    story.comes_to("one event per leg was delivered", async || stage.number(sent).await, legs).await;
    let found = block_in_place(|| records(&scene.broker.bootstrap(), &stage.topics()[0]));
    let distinct: BTreeSet<&str> = found.iter().map(|record| record.event_id.as_str()).collect();
    story.equal("the topic has each", distinct.len() as i64, legs);
    story.figure("records that are there once more", found.len() - distinct.len());
    let conflicts = scene.bank.conflicts();
    story.holds("writers had to begin again (optimistic lock)", conflicts > 0, format!("{conflicts} times"));
    let figures = Figures::count(stage.ledger.pool()).await.expect("figures");
    story.equal("undelivered and failed", (figures.pending, figures.failed), (0, 0));
    let mean = figures.mean_seconds.unwrap_or_default();
    story.figure(
        "mean time from recording to delivery, with the outage and those of six minutes ago",
        format!("{mean:.2} s"),
    );
}
