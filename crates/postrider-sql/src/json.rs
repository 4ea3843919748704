//! Lists as statements take them: JSON arrays.

use serde_json::{Value, json};
use uuid::Uuid;

/// Ids of events.
pub fn ids(events: &[Uuid]) -> String {
    Value::from_iter(events.iter().map(|event| event.simple().to_string())).to_string()
}

/// Events by their numbers and ids.
pub fn refs(events: impl IntoIterator<Item = (i64, Uuid)>) -> String {
    let one = |(id, event_id): (i64, Uuid)| json!({ "id": id, "event_id": event_id.simple().to_string() });
    Value::from_iter(events.into_iter().map(one)).to_string()
}
