//! What the program runs. Each process reads its addresses from the environment.

use sqlx::PgPool;
use sqlx::postgres::PgPoolOptions;

pub mod api;
pub mod fraud;
pub mod migrate;
pub mod operations;

/// Why a process ended.
pub type Ended = Result<(), Box<dyn std::error::Error + Send + Sync>>;

/// Connections to the database that `DATABASE_URL` names.
async fn pool(connections: u32) -> Result<PgPool, Box<dyn std::error::Error + Send + Sync>> {
    let url = story::process::setting("DATABASE_URL")?;
    Ok(PgPoolOptions::new().max_connections(connections).connect(&url).await?)
}
