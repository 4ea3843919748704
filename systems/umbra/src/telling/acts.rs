//! The flows of the document, and every event of its catalog.

use serde_json::json;
use story::Story;
use uuid::Uuid;

use super::stage::Stage;
use crate::contracts::DAY;

/// How far the clock is turned in the end, before the month that follows.
pub(super) const LATE: i64 = 100 * DAY;

/// Subscribes a guild to the plan "pro"; the status of the answer.
pub(super) async fn subscribe(stage: &Stage, subscription: Uuid, guild: Uuid) -> u16 {
    subscribe_with(stage, subscription, guild, Uuid::new_v4(), None).await
}

async fn subscribe_with(
    stage: &Stage,
    subscription: Uuid,
    guild: Uuid,
    user: Uuid,
    key: Option<Uuid>,
) -> u16 {
    let body = json!({ "subscription_id": subscription, "guild_id": guild, "user_id": user,
        "billing_key_id": key, "plan_code": "pro" });
    stage.post(&format!("{}/subscriptions", stage.api), body).await
}

/// Installs the bot in a guild.
pub(super) async fn install(stage: &Stage, guild: Uuid) -> u16 {
    stage.dispatch("GUILD_CREATE", json!({ "guild_id": guild, "installer_user_id": Uuid::new_v4() })).await
}

fn count(event_type: &str) -> String {
    format!("select count(*) from events.event where event_type = '{event_type}'")
}

pub(super) async fn first_subscription(story: &mut Story, stage: &mut Stage) {
    story.part("Flow 1: a first subscription");
    let guild = Uuid::new_v4();
    story.equal("The bot takes the installation", install(stage, guild).await, 200);
    story.equal("The API answers after its commit", subscribe(stage, Uuid::new_v4(), guild).await, 200);
    let licenses = "select count(*) from licensing.licenses";
    story.equal("Without a worker nothing is delivered", stage.eye.number(licenses).await, 0);
    let waiting = "select count(*) from events.outbox where published_at is null";
    story.equal("Rows of events.outbox, from the commit on", stage.eye.number(waiting).await, 2);
    stage.start_worker().await;
    stage.quiet().await;
    story.tell("The worker has started, and has delivered to all four subscribers.");
    let paid = "select count(*) from licensing.licenses where plan_code = 'pro' and status = 'active'";
    story.equal("The guild has a licence of the plan", stage.eye.number(paid).await, 1);
    let trail = "select event_type from audit.events order by event_type";
    let wanted = ["BotInstalled", "LicenseGranted", "LicenseGranted", "SubscriptionStarted"];
    story.equal("Audit has every event", stage.eye.texts(trail).await, wanted.map(str::to_owned).to_vec());
    story.equal("One direct message", stage.messages().await.texts(), vec!["pro activated"]);
}

pub(super) async fn four_failures(story: &mut Story, stage: &Stage) {
    story.part("Flow 2: four payments fail");
    stage.control(&stage.toss, json!({ "refuse": true })).await;
    let (subscriptions, before) = (2, stage.messages().await.messages.len());
    for failure in 1..=4 {
        stage.turn((29 + failure) * DAY + 10).await;
        let failures = "select coalesce(sum(retry_count), 0) from billing.subscriptions";
        let failures = format!("select cast(({failures}) as bigint)");
        stage.until("the charges have failed", &failures, subscriptions * failure).await;
        story.tell(format!("Day {}: charged, and refused, {failure} of 4.", 29 + failure));
    }
    stage.quiet().await;
    stage.control(&stage.toss, json!({ "refuse": false })).await;
    story.equal(
        "Three notices of a failure, each",
        stage.eye.number(&count("PaymentFailed")).await,
        3 * subscriptions,
    );
    let ended = stage.eye.number(&count("PaymentFailedFinal")).await;
    story.equal("The fourth failure ends a subscription", ended, subscriptions);
    let free = "select count(*) from licensing.licenses where plan_code = 'free' and status = 'active'";
    story.equal("Their licences are free ones", stage.eye.number(free).await, subscriptions);
    let told = stage.messages().await.messages.len() - before;
    story.equal("Messages: 3 failures, 1 end, 1 downgrade, each", told, 10);
}

pub(super) async fn kicked_and_back(story: &mut Story, stage: &Stage) {
    story.part("Flow 3: the bot is kicked");
    let guild = Uuid::new_v4();
    subscribe(stage, Uuid::new_v4(), guild).await;
    stage.quiet().await;
    let before = stage.messages().await.messages.len();
    for _ in 0..2 {
        let kicked = stage.dispatch("GUILD_DELETE", json!({ "guild_id": guild })).await;
        assert_eq!(kicked, 200, "the bot takes it");
        stage.quiet().await;
    }
    story.tell("Discord has sent GUILD_DELETE, twice.");
    for name in ["LicenseSuspended", "SubscriptionSuspended"] {
        story.equal(&format!("{name}, once"), stage.eye.number(&count(name)).await, 1);
    }
    let told = stage.messages().await.messages.len() - before;
    story.equal("One message: the echo changes nothing", told, 1);
    install(stage, guild).await;
    stage.quiet().await;
    let back = "select count(*) from licensing.licenses where plan_code = 'pro' and status = 'active'";
    story.equal("Installed again, its licence is back", stage.eye.number(back).await, 1);
}

pub(super) async fn everything_else(story: &mut Story, stage: &Stage) {
    story.part("Everything else of the catalog");
    let (key, guilds, subscription) = (Uuid::new_v4(), [Uuid::new_v4(), Uuid::new_v4()], Uuid::new_v4());
    let user = Uuid::new_v4();
    let at = |path: &str| format!("{}/{path}", stage.api);
    stage.post(&at("billing-keys"), json!({ "billing_key_id": key, "user_id": user })).await;
    subscribe_with(stage, subscription, guilds[0], user, Some(key)).await;
    subscribe_with(stage, Uuid::new_v4(), guilds[1], user, Some(key)).await;
    let stranger = subscribe_with(stage, Uuid::new_v4(), guilds[1], Uuid::new_v4(), Some(key)).await;
    story.equal("Another user can't pay with the key", stranger, 422);
    for plan in ["team", "pro"] {
        stage.post(&at(&format!("subscriptions/{subscription}/plan")), json!({ "plan_code": plan })).await;
    }
    let later = json!({ "cancel_at_period_end": true });
    stage.post(&at(&format!("subscriptions/{subscription}/cancel")), later).await;
    stage.quiet().await;
    let deleted = stage.delete(&at(&format!("billing-keys/{key}?user_id={user}"))).await;
    story.equal("The key of two subscriptions is deleted", deleted, 200);
    // Both rest before the clock is turned: the one that ends with its period would be canceled otherwise.
    stage.quiet().await;
    let owner = json!({ "guild_id": guilds[0], "old_owner_id": user, "new_owner_id": Uuid::new_v4() });
    stage.dispatch("GUILD_UPDATE", owner).await;
    // A subscription that is renewed.
    let renewed = Uuid::new_v4();
    subscribe(stage, Uuid::new_v4(), renewed).await;
    stage.turn(LATE).await;
    stage.comes_to(story, "A subscription is renewed: payments", &count("PaymentSucceeded"), 1).await;
    stage.dispatch("GUILD_DELETE", json!({ "guild_id": renewed, "deleted": true })).await;
    for (fact, payload) in facts(guilds[0]) {
        let status = stage.post(&at(fact), payload).await;
        assert_eq!(status, 200, "{fact}");
    }
    stage.quiet().await;
    let suspended = "select count(*) from billing.subscriptions where status = 'suspended'";
    story.equal(
        "The two subscriptions of the key rest, and the one of before",
        stage.eye.number(suspended).await,
        3,
    );
    let types = "select count(distinct event_type) from events.event";
    story.equal("Types of events that were published", stage.eye.number(types).await, 30);
    let secret = "select count(*) from audit.events where cast(payload as text) like '%s3cret%'";
    story.equal("Secrets in the audit trail", stage.eye.number(secret).await, 0);
}

/// What the services of Recovery, Member and Identity report.
fn facts(guild: Uuid) -> Vec<(&'static str, serde_json::Value)> {
    let (snapshot, job, member, user) = (Uuid::new_v4(), Uuid::new_v4(), Uuid::new_v4(), Uuid::new_v4());
    vec![
        (
            "recovery/SnapshotCreated",
            json!({ "snapshot_id": snapshot, "guild_id": guild, "trigger": "daily" }),
        ),
        ("recovery/SnapshotDeleted", json!({ "snapshot_id": snapshot, "guild_id": guild })),
        (
            "recovery/RestoreStarted",
            json!({ "restore_job_id": job, "snapshot_id": snapshot, "guild_id": guild }),
        ),
        ("recovery/RestoreCompleted", json!({ "restore_job_id": job, "result_summary": "12 channels" })),
        ("recovery/RestoreFailed", json!({ "restore_job_id": job, "error_summary": "no permission" })),
        ("recovery/AntiNukeActioned", json!({ "guild_id": guild, "actions_taken": ["ban"] })),
        (
            "recovery/AntiNukeTriggered",
            json!({ "guild_id": guild, "detected_pattern": "channels deleted", "suspects": [user] }),
        ),
        ("member/MemberJoinedViaWebJoin", json!({ "member_id": member, "guild_id": guild, "slug": "umbra" })),
        (
            "member/MemberRestored",
            json!({ "member_id": member, "guild_id": guild, "restored_roles": ["admin"] }),
        ),
        ("identity/UserRegistered", json!({ "user_id": user, "discord_user_id": "s3cret-discord" })),
        ("identity/UserSessionCreated", json!({ "user_id": user, "session_id": "s3cret-session" })),
    ]
}
