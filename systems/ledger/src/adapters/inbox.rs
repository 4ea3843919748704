//! What the consumers' inbox forgets where they have a database of their own: the relay's retention sees the ledger's alone.

use std::time::Duration;

use postrider::mysql::Outbox;
use postrider::store::{Operate as _, Sweep};

/// How long a mark is kept: as long as `[retention] inbox` of `ledger.toml` has it, and longer than the topics keep their records.
pub const KEPT_DAYS: u64 = 30;
const DAY: Duration = Duration::from_secs(86_400);
const BATCH: u32 = 1000;

/// Forgets now, and then once a day. Each consumer does so; they pass over what another one has in hand.
pub async fn forget_daily(outbox: Outbox) {
    loop {
        match forget(&outbox).await {
            Ok(0) => {}
            Ok(marks) => tracing::info!(marks, "old marks of the inbox were forgotten"),
            Err(error) => {
                tracing::warn!(%error, "could not forget old marks of the inbox; tried again in a day");
            }
        }
        tokio::time::sleep(DAY).await;
    }
}

async fn forget(outbox: &Outbox) -> postrider::Result<u64> {
    let older_than = DAY * u32::try_from(KEPT_DAYS).unwrap_or(u32::MAX);
    let (store, mut forgotten) = (outbox.store(), 0);
    loop {
        let swept = store.sweep(&Sweep::Inbox { older_than, limit: BATCH }).await?;
        forgotten += swept.taken;
        if !swept.more {
            return Ok(forgotten);
        }
    }
}
