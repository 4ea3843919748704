//! The transaction service: `DATABASE_URL`, and `LISTEN` for another address than a free port of loopback.

use postrider::postgres::Outbox;

use super::{Ended, pool};
use crate::adapters::http;
use crate::adapters::postgres::PgUnits;

/// Serves until Ctrl-C or SIGTERM.
pub async fn run() -> Ended {
    story::process::logs();
    let outbox = Outbox::connect(&pool(20).await?).await?;
    story::process::serve(http::router(PgUnits::new(outbox))).await?;
    Ok(())
}
