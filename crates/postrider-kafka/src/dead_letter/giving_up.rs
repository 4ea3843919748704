//! The end of a record that was given up: its dead letter, written for as long as it takes.

use std::time::Instant;

use postrider_core::Backoff;

use crate::consume::line::line;
use crate::consume::metrics::ConsumerMetrics;
use crate::consume::partition_batch::Batch;
use crate::consume::worker::Worker;
use crate::dead_letter::record::dead;

impl Worker {
    /// Writes the dead letter of a record, for as long as it takes; whether it was written before the worker is to end.
    pub(crate) async fn give_up(&self, batch: &mut Batch, index: usize) -> bool {
        let item = &batch.items[index];
        let Some(failure) = &item.given_up else { return true };
        let (record, event, tries, group) = (&item.record, item.event(), item.tries, &self.shared.group);
        let topic = self.shared.address.of(&record.topic);
        let mut stopped: Option<(Stopped<'_>, Backoff)> = None;
        loop {
            let letter = dead(record, &topic, &self.shared.group, failure, tries);
            let mut sending = std::pin::pin!(self.shared.receipt_producer.send(letter));
            let answer = tokio::select! {
                answer = &mut sending => answer,
                end = self.partition.ending() => match tokio::time::timeout_at(end.into(), sending).await {
                    Ok(answer) => answer,
                    Err(_) => return false,
                },
            };
            let Err(error) = answer else { break };
            let (_, backoff) = stopped.get_or_insert_with(|| {
                line!(error, group, record, event, { dead_letters = topic, error = %error, },
                    "can't write a dead letter; the partition is stopped until it can be written");
                (Stopped::new(&self.metrics), self.shared.backoff())
            });
            let pause = backoff.next_delay();
            if self.partition.end().is_some() {
                return false;
            }
            self.partition.sleep_until(Instant::now() + pause).await;
        }
        if stopped.take().is_some() {
            line!(info, group, record, event, { dead_letters = topic, },
                "the dead letter was written; the partition continues");
        }
        line!(warn, group, record, event,
            { attempt = tries, outcome = "dead", error_code = %failure.code, error = %failure.message,
              dead_letters = topic, },
            "failed for good; it is now a dead letter");
        self.say_duplicates(batch, index);
        self.metrics.dead.increment(1);
        self.metrics.duplicates.increment(batch.finish(index) as u64);
        true
    }
}

/// A partition that stands still, in the metrics.
struct Stopped<'t>(&'t ConsumerMetrics);

impl<'t> Stopped<'t> {
    fn new(metrics: &'t ConsumerMetrics) -> Self {
        metrics.stopped.increment(1.0);
        Self(metrics)
    }
}

impl Drop for Stopped<'_> {
    fn drop(&mut self) {
        self.0.stopped.decrement(1.0);
    }
}
