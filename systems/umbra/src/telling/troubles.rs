//! What is killed, and what is down.

use serde_json::json;
use story::Story;
use story::testkit::until;
use uuid::Uuid;

use super::acts::{LATE, subscribe};
use super::stage::Stage;
use crate::billing::charging::GRACE;

pub(super) async fn api_dies_between_charge_and_commit(story: &mut Story, stage: &mut Stage) {
    story.part("The API dies between charge and commit");
    let (subscription, guild) = (Uuid::new_v4(), Uuid::new_v4());
    let before = stage.charges().await;
    stage.control(&stage.toss, json!({ "hold": true })).await;
    let body = json!({ "subscription_id": subscription, "guild_id": guild, "user_id": Uuid::new_v4(), "plan_code": "pro" });
    let url = format!("{}/subscriptions", stage.api);
    let client = story::process::client();
    let asked = tokio::spawn(client.post(url).json(&body).send());
    until("the gateway has charged", async || stage.charges().await.charges == before.charges + 1).await;
    stage.api_process.process.kill();
    let unanswered = asked.await.is_ok_and(|answer| answer.is_err());
    stage.control(&stage.toss, json!({ "hold": false })).await;
    story.tell("The gateway has taken the money, and the API was killed before it could write that down.");
    story.holds("The user has no answer", unanswered, "the connection broke");
    stage.start_api().await;
    let again = stage.post(&format!("{}/subscriptions", stage.api), body).await;
    story.equal("Asked again, another API answers", again, 200);
    let after = stage.charges().await;
    story.equal("Charges of two requests", after.charges - before.charges, 1);
    stage.quiet().await;
    let started = format!(
        "select count(*) from events.event where event_type = 'SubscriptionStarted' and aggregate_id = '{subscription}'"
    );
    story.equal("The subscription has started, once", stage.eye.number(&started).await, 1);
}

pub(super) async fn gateway_is_away(story: &mut Story, stage: &Stage) {
    story.part("The gateway takes the money and gives no answer, and the user cancels");
    let (subscription, before) = (Uuid::new_v4(), stage.charges().await);
    stage.control(&stage.toss, json!({ "lose": true })).await;
    let status = subscribe(stage, subscription, Uuid::new_v4()).await;
    story.equal("Nobody knows whether the charge was made", status, 500);
    let url = format!("{}/subscriptions/{subscription}/cancel", stage.api);
    let canceled = stage.post(&url, json!({ "cancel_at_period_end": false })).await;
    story.equal("The user cancels", canceled, 200);
    stage.control(&stage.toss, json!({ "lose": false })).await;
    // A minute later the worker takes the attempt over.
    stage.turn(LATE + GRACE + 10).await;
    let open = "select count(*) from billing.payment_attempts where result is null";
    stage.comes_to(story, "Attempts that are not settled", open, 0).await;
    let after = stage.charges().await;
    story.equal("Charges that were given back", after.refunds - before.refunds, 1);
    story.equal("Won that the user has paid", after.won - before.won, 0);
}

pub(super) async fn worker_dies_between_handler_and_mark(story: &mut Story, stage: &mut Stage) {
    story.part("The worker dies between handler and mark");
    let before = stage.messages().await;
    stage.control(&stage.discord, json!({ "hold": true })).await;
    let attack = json!({ "guild_id": Uuid::new_v4(), "detected_pattern": "roles deleted", "suspects": [] });
    stage.post(&format!("{}/recovery/AntiNukeTriggered", stage.api), attack).await;
    until("the message is sent", async || stage.messages().await.requests == before.requests + 1).await;
    if let Some(worker) = &mut stage.worker_process {
        worker.process.kill();
    }
    stage.control(&stage.discord, json!({ "hold": false })).await;
    story.tell("Discord has the message, and the worker was killed before it could mark it.");
    stage.start_worker().await;
    stage.quiet().await;
    let after = stage.messages().await;
    story.equal("Another worker delivers again: requests", after.requests - before.requests, 2);
    story.equal("Messages", after.messages.len() - before.messages.len(), 1);
}

pub(super) async fn discord_is_down(story: &mut Story, stage: &Stage) {
    story.part("Discord is down");
    stage.control(&stage.discord, json!({ "down": true })).await;
    let before = stage.messages().await;
    subscribe(stage, Uuid::new_v4(), Uuid::new_v4()).await;
    let waiting = "select count(*) from events.event_state where state not in ('done', 'dead', 'discarded')";
    stage.comes_to(story, "Deliveries that wait", waiting, 1).await;
    until("it was tried", async || stage.messages().await.requests > before.requests).await;
    let others = "select count(*) from events.event_state where state not in ('done', 'dead', 'discarded') and subscription <> 'notification'";
    story.equal("Deliveries of others that wait", stage.eye.number(others).await, 0);
    let attempts = "select coalesce(max(attempts), 0) from events.event_state where subscription = 'notification' and state <> 'done'";
    let attempts = format!("select cast(({attempts}) as bigint)");
    story.equal("Attempts that the outage costs", stage.eye.number(&attempts).await, 0);
    stage.control(&stage.discord, json!({ "down": false })).await;
    stage.quiet().await;
    let told = stage.messages().await.messages.len() - before.messages.len();
    story.equal("Messages, when it is back", told, 1);
}
