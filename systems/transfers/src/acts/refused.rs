//! An event that the broker refuses: it fails, waits 2, 4, 8 and 16 seconds, and is dead at the fifth failure.

use rdkafka::ClientConfig;
use rdkafka::admin::{AdminClient, AdminOptions, AlterConfig, ResourceSpecifier};
use rdkafka::client::DefaultClientContext;
use serde_json::json;
use story::testkit::until;
use uuid::Uuid;

use super::client::Client;
use super::stage::Stage;

/// The least that a segment of a topic can have. A record that is larger is refused, and may be taken once segments are larger.
pub const SMALL_SEGMENTS: u32 = 1_048_576;
/// As brokers have it.
pub const USUAL_SEGMENTS: u32 = 1_073_741_824;

/// Sets how large the segments of the topic are.
pub async fn set_segments(stage: &Stage, bytes: u32) {
    let admin: AdminClient<DefaultClientContext> = ClientConfig::new()
        .set("bootstrap.servers", &stage.brokers)
        .create()
        .unwrap_or_else(|error| panic!("no client for the broker: {error}"));
    let bytes = bytes.to_string();
    // What is not named goes back to its default.
    let change = AlterConfig::new(ResourceSpecifier::Topic(&stage.topic))
        .set("segment.bytes", &bytes)
        .set("max.message.bytes", "2000000");
    let changed = admin.alter_configs([&change], &AdminOptions::new()).await;
    assert!(matches!(changed.as_deref(), Ok([Ok(_)])), "the topic can't be changed: {changed:?}");
}

/// Makes a transfer whose memo makes its event larger than a small segment. The event's id.
pub async fn transfer_too_large(client: &Client, from: &str, to: &str) -> Uuid {
    let memo = "x".repeat(SMALL_SEGMENTS as usize - 300);
    let body = json!({ "from": from, "to": to, "amount": 1, "memo": memo });
    let answer = client.transfer_with(&[], &body).await;
    answer
        .as_ref()
        .and_then(super::client::Answer::event)
        .unwrap_or_else(|| panic!("no transfer: {answer:?}"))
}

/// The event's row in the document's table: status and failures.
pub async fn row(stage: &Stage, event: Uuid) -> (String, i32) {
    let sql = "select status, attempt_count from transfer_events where event_id = $1";
    let row = sqlx::query_as(sql).bind(event).fetch_one(&stage.db).await;
    row.unwrap_or_else(|error| panic!("the event has no row: {error}"))
}

/// Keeps what becomes of deliveries from now on, each failure in a row of its own: a look could miss one.
const WATCH: &str = "create table watched (event_id uuid, attempts integer, state text, pause bigint);
    create function watch() returns trigger language plpgsql as $$
    begin
        insert into watched values (new.event_id, new.attempts, new.state,
            (extract(epoch from new.next_at - new.last_attempt_at) * 1000000)::bigint);
        return null;
    end $$;
    create trigger watch after insert on postrider.delivery for each row execute function watch();
    create trigger watch_again after update on postrider.delivery for each row
        when (old.attempts <> new.attempts) execute function watch()";

/// Watches the deliveries of a stage.
pub async fn watch(stage: &Stage) {
    let watched = sqlx::raw_sql(WATCH).execute(&stage.db).await;
    watched.unwrap_or_else(|error| panic!("the deliveries can't be watched: {error}"));
}

/// Follows an event on a stage that is watched from its first failure to its death, with the clock turned after each. The pauses
/// that were set between the failures, in microseconds.
pub async fn pauses_until_dead(stage: &Stage, event: Uuid) -> Vec<i64> {
    until("the event is dead", async || {
        turn_to_the_next_attempt(stage, event).await;
        row(stage, event).await.0 == "DEAD_LETTER"
    })
    .await;
    let sql = "select pause from watched where event_id = $1 and state = 'retrying' order by attempts";
    let pauses = sqlx::query_scalar(sql).bind(event).fetch_all(&stage.db).await;
    pauses.unwrap_or_else(|error| panic!("no pauses: {error}"))
}

/// Turns the clock to the time of the event's next attempt, if it waits for one.
async fn turn_to_the_next_attempt(stage: &Stage, event: Uuid) {
    // With the triggers: they put the event where a relay looks for it.
    let sql = "with turned as (
            update postrider.delivery set next_at = clock_timestamp()
            where event_id = $1 and state = 'retrying' and next_at > clock_timestamp() returning 1)
        select postrider.ring() from turned";
    let turned = sqlx::query(sql).bind(event).execute(&stage.db).await;
    turned.unwrap_or_else(|error| panic!("the clock can't be turned: {error}"));
}

/// What operations was told of an event that died.
pub async fn told_of_death(stage: &Stage, event: Uuid) -> String {
    let id = event.to_string();
    let mut text = String::new();
    until("operations is told of the dead event", async || {
        let requests = stage.operations.requests();
        let told = requests.iter().find(|request| request.body["event_id"] == id.as_str());
        text = told.and_then(|request| request.body["text"].as_str()).unwrap_or_default().to_owned();
        told.is_some()
    })
    .await;
    text
}
