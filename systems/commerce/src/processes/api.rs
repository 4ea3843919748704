//! `commerce api`: the shop over HTTP.

use crate::adapters::http::{Shop, router};
use crate::adapters::mapping;
use crate::adapters::postgres::PgUnits;
use crate::processes::settings;

/// Serves until it is asked to end.
pub async fn run() -> Result<(), String> {
    let units = PgUnits::new(settings::outbox().await?, mapping::json);
    let shop = Shop { units, cache: settings::cache()? };
    story::process::serve(router(shop)).await.map_err(|error| error.to_string())
}
