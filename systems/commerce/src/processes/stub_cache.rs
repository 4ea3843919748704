//! `commerce stub-cache`: what stands for the shop's cache server.

use crate::adapters::cache;

/// Serves until it is asked to end.
pub async fn run() -> Result<(), String> {
    story::process::serve(cache::stub()).await.map_err(|error| error.to_string())
}
