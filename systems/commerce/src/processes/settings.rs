//! What processes are told by their environment, and the relay's file for those who share a broker.

use std::time::Duration;

use postrider::postgres::Outbox;
use sqlx::PgPool;
use story::process::setting;

use crate::adapters::cache::HttpCache;
use crate::adapters::consumers::Settings;

/// The relay's file, with the document's values.
pub const RELAY: &str = include_str!("../../commerce.toml");

/// The topics, as `topics.sh` creates them.
pub const TOPICS: &str = include_str!("../../topics.txt");

/// The relay's file with other values in the place of some. Each text must be in the file.
pub fn relay_with(changes: &[(&str, &str)]) -> String {
    changes.iter().fold(RELAY.to_owned(), |file, (text, other)| {
        assert!(file.contains(text), "commerce.toml must have {text:?}");
        file.replace(text, other)
    })
}

/// The database, by `DATABASE_URL`.
pub async fn pool() -> Result<PgPool, String> {
    let url = setting("DATABASE_URL")?;
    PgPool::connect(&url).await.map_err(|error| format!("the database can't be reached: {error}"))
}

/// The outbox, on a schema that `commerce migrate` has made.
pub async fn outbox() -> Result<Outbox, String> {
    Outbox::connect(&pool().await?).await.map_err(|error| error.to_string())
}

/// The cache, by `CACHE_URL`.
pub fn cache() -> Result<HttpCache, String> {
    Ok(HttpCache::new(story::process::client(), &setting("CACHE_URL")?))
}

/// The consumers' settings: the document's values, or what the environment says.
pub fn consumers() -> Result<Settings, String> {
    let mut settings = Settings::new(&setting("KAFKA_BROKERS")?);
    settings.prefix = std::env::var("NAME_PREFIX").unwrap_or_default();
    if let Some(records) = number("MAX_POLL_RECORDS")? {
        settings.max_poll_records = records as usize;
    }
    if let Some(retries) = number("RETRIES")? {
        settings.retries = retries as u32;
    }
    if let Some(milliseconds) = number("RETRY_INTERVAL_MS")? {
        settings.retry_interval = Duration::from_millis(milliseconds);
    }
    if let Some(milliseconds) = number("SESSION_TIMEOUT_MS")? {
        settings.session_timeout = Duration::from_millis(milliseconds);
    }
    Ok(settings)
}

fn number(name: &str) -> Result<Option<u64>, String> {
    let Ok(text) = std::env::var(name) else { return Ok(None) };
    text.parse().map(Some).map_err(|_| format!("{name} must be a whole number"))
}
