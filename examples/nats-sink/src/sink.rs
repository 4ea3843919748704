//! A sink of one's own: events go to a stream of NATS JetStream.

use std::sync::Arc;
use std::time::Duration;

use async_nats::HeaderMap;
use async_nats::header::NATS_MESSAGE_ID;
use async_nats::jetstream::Context;
use async_nats::jetstream::context::PublishErrorKind;
use async_trait::async_trait;
use futures_util::{StreamExt, TryStreamExt, stream};
use postrider::store::{Delivery, DeliveryFailure, Outcome, Sink, Unavailable};
use postrider::{CloudEvents, Recorded};

/// Publishes each event to the subject that has the name of its stream, as a CloudEvent in JSON.
pub(crate) struct Nats(pub(crate) Context);

#[async_trait]
impl Sink for Nats {
    /// A batch of events. A chain is the events of one key, in their order: chains run at the same time, and within a chain each
    /// event waits for the one before it.
    async fn deliver(&self, delivery: Arc<Delivery>) -> Result<(), Unavailable> {
        let chains = delivery.chains().into_iter().map(|chain| self.deliver_chain(&delivery, chain));
        stream::iter(chains).buffer_unordered(delivery.concurrency).try_collect().await
    }
}

impl Nats {
    async fn deliver_chain(&self, delivery: &Delivery, chain: Vec<usize>) -> Result<(), Unavailable> {
        for index in chain {
            // `false`: the relay is stopping, or has lost its lease. What was not attempted comes again later.
            if !delivery.begin(index) {
                break;
            }
            let outcome = self.publish(&delivery.events[index].event).await?;
            let is_delivered = outcome.is_delivered();
            delivery.report(index, outcome);
            // No later event of a key before this one: the relay passes them again.
            if !is_delivered {
                break;
            }
        }
        Ok(())
    }

    /// Publishes one event, and says what became of it.
    async fn publish(&self, event: &Recorded) -> Result<Outcome, Unavailable> {
        // Delivery is at least once. JetStream drops a message with an id that it has seen in the last two minutes.
        let mut headers = HeaderMap::new();
        headers.insert(NATS_MESSAGE_ID, event.event_id.to_string());
        let payload = CloudEvents::default().to_json(event).into();
        let published = async {
            // The first `await` sends, the second waits until the message is stored.
            self.0.publish_with_headers(event.stream.to_string(), headers, payload).await?.await
        };
        let error = match published.await {
            Ok(stored) if stored.duplicate => return Ok(Outcome::Duplicate),
            Ok(_) => return Ok(Outcome::Delivered),
            Err(error) => error,
        };
        let failure = DeliveryFailure::new("nats", error.to_string());
        match error.kind() {
            // Nobody's fault: all events wait, and lose no attempt. The relay tries one of them after a growing pause.
            PublishErrorKind::TimedOut | PublishErrorKind::BrokenPipe => {
                Err(Unavailable::new(failure.message))
            }
            // No stream takes this subject yet: its events wait, and other subjects continue.
            PublishErrorKind::StreamNotFound => Ok(Outcome::Hold { after: Duration::from_secs(5), failure }),
            // It will not get smaller: the event is dead, until an operator acts.
            PublishErrorKind::MaxPayloadExceeded => Ok(Outcome::reject(failure)),
            // The event's fault or the server's: Postrider compares with other keys, and retries.
            _ => Ok(Outcome::unclear(failure)),
        }
    }
}
