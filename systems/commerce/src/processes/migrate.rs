//! `commerce migrate`: the schema of Postrider, the shop's tables, and the document's views.

use crate::adapters::postgres;
use crate::processes::settings;

/// Runs once, before the others.
pub async fn run() -> Result<(), String> {
    postgres::migrate(&settings::pool().await?).await.map(drop).map_err(|refusal| refusal.to_string())
}
