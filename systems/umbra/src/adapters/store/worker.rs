//! The worker: the relay, the cron of charges and the job of the night, side by side. It alone delivers.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use postrider::asked_to_end;
use postrider::store::Store;

use super::Outbox;
use super::command_service::CommandService;
use super::relay::relay;
use crate::adapters::delivery::Delivery;
use crate::adapters::discord::Discord;
use crate::adapters::nightly::Nightly;
use crate::adapters::toss::Toss;
use crate::billing::charging;
use crate::contracts::Answer;

/// What a worker needs.
#[derive(Debug, Clone)]
pub struct Worker {
    /// The payment gateway.
    pub toss: Toss,
    /// Where messages go.
    pub discord: Discord,
    /// How often the cron looks for charges that are due.
    pub tick: Duration,
    /// How long its lanes stay its own after it died.
    pub lease: Duration,
    /// How it delivers.
    pub delivery: Delivery,
    /// The settings of `postrider archive`; without them there is no retention.
    pub settings: Option<PathBuf>,
}

impl Worker {
    /// Works until the process is asked to end.
    pub async fn run(self, outbox: &Outbox) -> Answer<()> {
        let nightly = self.settings.clone().map(Nightly::new).transpose()?;
        let metrics = story::metrics::collect()?;
        let mut running =
            relay(outbox, self.discord.clone(), &self.delivery)?.lease(self.lease).start().await?;
        let store = Arc::clone(running.store());
        let failed = tokio::select! {
            () = asked_to_end() => None,
            error = running.failed() => Some(error.into()),
            () = self.charges(outbox) => None,
            () = self.nights(outbox, &*store, nightly) => None,
            served = story::process::serve(metrics) => served.err().map(Into::into),
        };
        running.stop().await?;
        failed.map_or(Ok(()), Err)
    }

    /// Charges at each tick what is due. A failure waits for the next tick.
    async fn charges(&self, outbox: &Outbox) {
        let service = CommandService::new(outbox);
        let mut ticks = tokio::time::interval(self.tick);
        loop {
            ticks.tick().await;
            let charged = async { charging::charge_due(service.now().await?, &service, &self.toss).await };
            match charged.await {
                Ok(0) => {}
                Ok(charged) => tracing::info!(charged, "charged what was due"),
                Err(fault) => {
                    tracing::warn!(error = %fault, "the cron failed; it looks again at the next tick");
                }
            }
        }
    }

    /// Does the job of the night when it is due: beside the charges, because a long night must not delay them. A failure waits for the
    /// next tick.
    async fn nights(&self, outbox: &Outbox, store: &dyn Store, nightly: Option<Nightly>) {
        let Some(mut nightly) = nightly else { return std::future::pending().await };
        let service = CommandService::new(outbox);
        let mut ticks = tokio::time::interval(self.tick);
        loop {
            ticks.tick().await;
            let looked = async { nightly.look(store, service.now().await?).await };
            match looked.await {
                Ok(true) => tracing::info!("retention is done for today"),
                Ok(false) => tracing::debug!("no retention is due"),
                Err(fault) => {
                    tracing::warn!(error = %fault, "retention failed; it is tried again at the next tick");
                }
            }
        }
    }
}
