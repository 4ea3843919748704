//! Requests that can't be served, on both databases: each is answered with a status that says whose fault it is, and a sentence.

use postrider::Uuid;
use postrider_testkit::Folder;
use serde_json::{Value, json};
use umbra::adapters::toss::Toss;
use umbra::adapters::{postgres, sqlite};
use umbra::stubs;

use crate::world::{World, serve};

/// Asks an API and a bot for what they can't do, and expects that nothing is written down.
async fn ask_for_what_cannot_be(api: &str, bot: &str) {
    let client = story::process::client();
    let (one, nobody) = (Uuid::new_v4(), Uuid::new_v4());
    let user =
        |discord_user_id: Value| json!({ "user_id": one, "discord_user_id": discord_user_id }).to_string();
    let order = |plan: Value| {
        let ids = json!({ "subscription_id": one, "guild_id": one, "user_id": one, "plan_code": plan });
        ids.to_string()
    };
    let plan = |code: &str| json!({ "plan_code": code }).to_string();
    let cancel = |field: Value| json!({ "cancel_at_period_end": field }).to_string();
    let (canceled, changed) =
        (format!("/subscriptions/{nobody}/cancel"), format!("/subscriptions/{nobody}/plan"));
    let installed =
        |guild: Value| json!({ "t": "GUILD_CREATE", "d": { "guild_id": guild, "installer_user_id": one } });
    for (base, path, body, status, sentence) in [
        (api, "/subscriptions", order("free".into()), 422, "must be a plan that is paid for"),
        (api, "/subscriptions", order("gold".into()), 422, "must be a plan that is paid for"),
        (api, "/subscriptions", order("p\0ro".into()), 422, "must be a plan that is paid for"),
        (api, "/subscriptions", order((-1).into()), 422, "plan_code"),
        (api, "/subscriptions", json!({ "plan_code": "pro" }).to_string(), 422, "subscription_id"),
        (api, "/subscriptions", "pro".to_owned(), 400, "JSON"),
        (api, "/subscriptions", order("x".repeat(2 << 20).into()), 413, "length limit"),
        (api, canceled.as_str(), cancel(true.into()), 404, "nothing to change"),
        (api, canceled.as_str(), cancel((-1).into()), 422, "cancel_at_period_end"),
        (api, "/subscriptions/one/cancel", cancel(true.into()), 400, "Invalid URL"),
        (api, changed.as_str(), plan("team"), 404, "nothing to change"),
        (api, changed.as_str(), plan("free"), 422, "must be a plan that is paid for"),
        (
            api,
            "/billing-keys",
            json!({ "billing_key_id": 1, "user_id": one }).to_string(),
            422,
            "billing_key_id",
        ),
        (api, "/identity/UserRegistered", user("a\0b".into()), 422, "must not contain a NUL character"),
        (api, "/identity/UserRegistered", user("x".repeat(3 << 19).into()), 422, "the payload"),
        (api, "/identity/UserRegistered", user("x".repeat(2 << 20).into()), 413, "length limit"),
        (api, "/identity/UserRegistered", user(7.into()), 422, "must have the fields of the event"),
        (api, "/identity/UserRegistered", json!([]).to_string(), 422, "must have the fields of the event"),
        (api, "/identity/UserForgotten", user("a".into()), 404, "nothing to change"),
        (api, "/identity/%00", user("a".into()), 404, "nothing to change"),
        (api, "/billing/PaymentSucceeded", json!({}).to_string(), 404, "nothing here"),
        (bot, "/gateway", installed("one".into()).to_string(), 422, "must have the fields of the event"),
        (bot, "/gateway", installed((-1).into()).to_string(), 422, "must have the fields of the event"),
        (bot, "/gateway", json!({ "t": 7, "d": {} }).to_string(), 422, "t"),
    ] {
        let asked = format!("{path} {}", body.chars().take(80).collect::<String>());
        let request = client.post(format!("{base}{path}")).header("content-type", "application/json");
        let answer = request.body(body).send().await.expect("an answer");
        let (found, text) = (answer.status().as_u16(), answer.text().await.expect("a text"));
        assert_eq!(found, status, "{asked}: {text}");
        assert!(text.contains(sentence), "{asked}: {text}");
        assert!(!text.contains("ask again"), "{asked}: {text}");
    }
}

/// U1: what is asked wrongly is the caller's fault, is said in a sentence, and records nothing. Nothing of it is called an outage, which
/// would be asked again for ever.
#[tokio::test]
async fn a_request_that_can_never_be_served_is_no_outage() {
    let gateway = Toss::new(&serve(stubs::toss::Toss::default().router()).await);
    let world = World::asleep().await;
    let api = serve(postgres::api::router(&world.outbox, gateway.clone())).await;
    let bot = serve(postgres::bot::router(&world.outbox)).await;
    ask_for_what_cannot_be(&api, &bot).await;
    assert_eq!(world.one::<i64>("select count(*) from events.event").await, 0);
    assert_eq!(world.one::<i64>("select count(*) from billing.subscriptions").await, 0);

    let folder = Folder::new();
    let url = format!("sqlite:{}", folder.path().join("umbra.db").display());
    let pool = sqlite::connect(&url).await.expect("a file");
    let outbox = sqlite::migrate(&pool).await.expect("tables");
    let api = serve(sqlite::api::router(&outbox, gateway)).await;
    let bot = serve(sqlite::bot::router(&outbox)).await;
    ask_for_what_cannot_be(&api, &bot).await;
    let events = "select count(*) from postrider_event";
    assert_eq!(sqlx::query_scalar::<_, i64>(events).fetch_one(&pool).await.expect("a number"), 0);
}
