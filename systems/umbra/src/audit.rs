//! Audit: every event, once, without what is secret.

use std::future::Future;

use uuid::Uuid;

use crate::contracts::Answer;

/// The fields that are masked in the trail.
pub const SECRET: &[&str] = &["session_id", "discord_user_id"];

/// An event, as the trail keeps it; its secret fields are masked.
#[derive(Debug, Clone)]
pub struct Entry {
    /// The event's id.
    pub event_id: Uuid,
    /// Its type.
    pub event_type: String,
    /// What it happened to.
    pub aggregate: String,
    /// Its payload, as JSON.
    pub payload: String,
    /// When it happened: seconds since 1970.
    pub occurred_at: f64,
}

/// The trail.
pub trait Trail: Send {
    /// Writes an entry. Skips an event that is there already.
    fn write(&mut self, entry: &Entry) -> impl Future<Output = Answer<()>> + Send;
}

/// Keeps an event.
pub async fn keep(entry: &Entry, trail: &mut impl Trail) -> Answer<()> {
    trail.write(entry).await
}
