//! Brings the database up to date: `DATABASE_URL`.

use super::{Ended, pool};
use crate::adapters::postgres;

/// Does it, and ends.
pub async fn run() -> Ended {
    postgres::migrate(&pool(1).await?).await?;
    Ok(())
}
