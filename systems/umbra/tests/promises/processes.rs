//! The processes, and what is left when one of them is killed.

use postrider::Uuid;
use postrider_testkit::until;
use serde_json::json;
use umbra::contracts::DAY;

use crate::running::System;

pub(crate) fn order(subscription: Uuid) -> serde_json::Value {
    json!({ "subscription_id": subscription, "guild_id": Uuid::new_v4(), "user_id": Uuid::new_v4(), "plan_code": "pro" })
}

/// U13, U19: the API answers after its commit, the bot records, and neither delivers; the worker does, and its metrics say how many
/// attempts events took.
#[tokio::test]
async fn only_the_worker_delivers() {
    let system = System::new().await;
    let (_api, api) = system.start("api").await;
    let (_bot, bot) = system.start("bot").await;
    assert_eq!(system.post(format!("{api}/subscriptions"), order(Uuid::new_v4())).await, Some(200));
    assert_eq!(system.one::<String>("select status from billing.subscriptions").await, "active");
    let installed = json!({ "t": "GUILD_CREATE", "d": { "guild_id": Uuid::new_v4(), "installer_user_id": Uuid::new_v4() } });
    assert_eq!(system.post(format!("{bot}/gateway"), installed).await, Some(200));
    let other = json!({ "t": "MESSAGE_CREATE", "d": {} });
    assert_eq!(system.post(format!("{bot}/gateway"), other).await, Some(200));
    assert_eq!(
        system.post(format!("{api}/guild/BotKicked"), json!({})).await,
        Some(404),
        "that is the bot's"
    );
    let free = json!({ "subscription_id": Uuid::new_v4(), "guild_id": Uuid::new_v4(), "user_id": Uuid::new_v4(), "plan_code": "free" });
    assert_eq!(system.post(format!("{api}/subscriptions"), free).await, Some(422));

    assert_eq!(system.one::<i64>("select count(*) from events.event").await, 2);
    let relays = "select count(*) from events.relay";
    assert_eq!(system.one::<i64>(relays).await, 0, "nobody delivers");
    assert_eq!(system.one::<i64>("select count(*) from events.subscription").await, 0);
    assert_eq!(system.messages().await.requests, 0);

    let (worker, address) = system.start("worker").await;
    system.quiet().await;
    assert_eq!(system.one::<i64>(relays).await, 1);
    assert_eq!(system.one::<i64>("select count(*) from licensing.licenses").await, 2);
    assert_eq!(system.messages().await.texts(), ["pro activated"]);
    let metrics = system.get(format!("{address}/metrics")).await;
    assert!(metrics.contains("postrider_attempts_bucket{") && metrics.contains("le=\"10\""), "{metrics}");
    assert_eq!(worker.stop().await, Some(0));
}

/// U19: the API dies between charge and commit. Whoever goes on, the caller or the worker, charges nobody twice.
#[tokio::test]
async fn a_charge_is_made_once_although_the_api_dies() {
    let system = System::new().await;
    for (number, asks_again) in [(1, true), (2, false)] {
        let (mut api, address) = system.start("api").await;
        let subscription = Uuid::new_v4();
        let body = order(subscription);
        system.hold(&system.toss, true).await;
        let request = system.post(format!("{address}/subscriptions"), body.clone());
        let charged = async {
            until("the gateway has charged", async || system.charges().await.charges == number).await;
            api.process.kill();
        };
        let (answer, ()) = tokio::join!(request, charged);
        assert_eq!(answer, None, "the caller has no answer");
        system.hold(&system.toss, false).await;
        let pending = "select count(*) from billing.subscriptions where status = 'pending'";
        assert_eq!(system.one::<i64>(pending).await, 1, "charged, and not written down");
        if asks_again {
            let (_api, address) = system.start("api").await;
            assert_eq!(system.post(format!("{address}/subscriptions"), body).await, Some(200));
        } else {
            let (_worker, _) = system.start("worker").await;
            system.turn(61).await;
            until("the worker has taken over", async || system.one::<i64>(pending).await == 0).await;
            system.quiet().await;
        }
        let started = "select count(*) from events.event where event_type = 'SubscriptionStarted'";
        assert_eq!(system.one::<i64>(started).await, i64::try_from(number).expect("a number"));
    }
    let charges = system.charges().await;
    assert_eq!((charges.charges, charges.requests, charges.won), (2, 4, 2 * 9_900));
}

/// U4: the worker is killed after its handlers and before they are marked: all is delivered again, and every effect is there once.
#[tokio::test]
async fn a_worker_killed_between_handler_and_mark_has_effects_once() {
    for _ in 0..rounds() {
        kill_a_worker_between_handler_and_mark().await;
    }
}

/// How often a process is killed; more often with `POSTRIDER_SOAK`.
fn rounds() -> u32 {
    if std::env::var_os("POSTRIDER_SOAK").is_some() { 10 } else { 1 }
}

async fn kill_a_worker_between_handler_and_mark() {
    let system = System::new().await;
    let (_api, api) = system.start("api").await;
    let (mut worker, _) = system.start("worker").await;
    until("its subscriptions are there", async || {
        system.one::<i64>("select count(*) from events.subscription").await == 4
    })
    .await;
    // Discord takes the message and does not answer, so nobody writes down that it was sent.
    system.hold(&system.discord, true).await;
    // While this is open, nothing can be marked as delivered. Handlers don't need it.
    let mut lock = system.db.begin().await.expect("a transaction");
    let sql = "lock table events.settled_batch in share row exclusive mode";
    sqlx::query(sql).execute(&mut *lock).await.expect("locked");
    assert_eq!(system.post(format!("{api}/subscriptions"), order(Uuid::new_v4())).await, Some(200));
    let handled = "select (select count(*) from licensing.licenses) + (select count(*) from audit.events)";
    until("two handlers have run", async || system.one::<i64>(handled).await >= 2).await;
    until("the third has sent its message", async || system.messages().await.requests == 1).await;
    let done =
        "select count(*) from events.event_state where state = 'done' and event_type = 'SubscriptionStarted'";
    assert_eq!(system.one::<i64>(done).await, 0, "none of them is marked");
    worker.process.kill();
    // What the killed worker asked for last must not be done after its death.
    let end = "select count(pg_terminate_backend(pid)) from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock'";
    system.one::<i64>(end).await;
    lock.rollback().await.expect("unlocked");
    system.hold(&system.discord, false).await;
    assert_eq!(system.messages().await.requests, 1);

    let (_worker, address) = system.start("worker").await;
    system.quiet().await;
    let metrics = system.get(format!("{address}/metrics")).await;
    let again = |subscription: &str| {
        let start = format!("postrider_duplicates_total{{subscription=\"{subscription}\"");
        metrics.lines().any(|line| line.starts_with(&start) && !line.ends_with(" 0"))
    };
    assert!(again("licensing") && again("audit"), "delivered again: {metrics}");
    let messages = system.messages().await;
    assert_eq!(
        (messages.requests, messages.texts()),
        (2, vec!["pro activated"]),
        "sent again, and dropped there"
    );
    assert_eq!(system.one::<i64>("select count(*) from licensing.licenses").await, 1);
    let types = "select string_agg(event_type, ' ' order by event_type) from audit.events";
    assert_eq!(system.one::<String>(types).await, "LicenseGranted SubscriptionStarted");
}

/// U9, U19: what Discord sends reaches the bot, which records it: an installation, a kick, a deleted guild; what is nobody's here is left.
#[tokio::test]
async fn the_bot_records_what_discord_sends() {
    let system = System::new().await;
    let (_bot, bot) = system.start("bot").await;
    let (_discord, discord) = system.discord_of(&bot).await;
    let guild = json!({ "guild_id": Uuid::new_v4(), "installer_user_id": Uuid::new_v4() });
    let mut deleted = guild.clone();
    deleted["deleted"] = json!(true);
    for (t, d) in [
        ("GUILD_CREATE", guild.clone()),
        ("MESSAGE_CREATE", json!({})),
        ("GUILD_DELETE", guild),
        ("GUILD_DELETE", deleted),
    ] {
        assert_eq!(
            system.post(format!("{discord}/dispatch"), json!({ "t": t, "d": d })).await,
            Some(200),
            "{t}"
        );
    }
    let types = "select string_agg(event_type, ' ' order by id) from events.event";
    assert_eq!(system.one::<String>(types).await, "BotInstalled BotKicked GuildDeleted");
}

/// U9: turned past four failures, the cron of the worker ends a subscription.
#[tokio::test]
async fn the_cron_of_the_worker_ends_a_subscription_after_four_failures() {
    let system = System::new().await;
    let (_api, api) = system.start("api").await;
    let (_worker, _) = system.start("worker").await;
    assert_eq!(system.post(format!("{api}/subscriptions"), order(Uuid::new_v4())).await, Some(200));
    assert_eq!(system.post(format!("{}/control", system.toss), json!({ "refuse": true })).await, Some(200));
    for day in [30, 31, 32, 33] {
        system.turn(day * DAY + 10).await;
        let failures = "select sum(retry_count)::bigint from billing.subscriptions";
        until("the charge has failed", async || system.one::<i64>(failures).await == day - 29).await;
    }
    system.quiet().await;
    assert_eq!(system.one::<String>("select status from billing.subscriptions").await, "canceled");
    assert_eq!(system.messages().await.texts().len(), 6);
}
