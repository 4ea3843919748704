//! A type-erased handler for one event type.

use std::sync::{Arc, OnceLock};

use futures_util::future::BoxFuture;
use postrider_core::{Attempt, OutboxSource};

use crate::handlers::decode::Decode;
use crate::handlers::handler::{CallResult, Handler};
use crate::{Context, Failure, NewerVersion, Received, Tx, Upcasters};

/// What is called for an event type.
pub(crate) struct Route<S: OutboxSource> {
    /// The event type; `*` for all others.
    pub(crate) name: String,
    /// How long it may take, where that is not the subscription's.
    pub(crate) timeout: Option<std::time::Duration>,
    pub(crate) transactional: bool,
    pub(crate) several: bool,
    /// The version that the handler wants, where it says so.
    pub(crate) version: Option<u32>,
    pub(crate) seconds: OnceLock<metrics::Histogram>,
    call: Box<dyn Call<S>>,
}

impl<S: OutboxSource> Route<S> {
    pub(crate) fn new<H, Shape>(name: &str, handler: H, version: Option<u32>) -> Self
    where
        H: Handler<S, Shape>,
        H::Payload: Decode,
        Shape: 'static,
    {
        Self {
            name: name.to_owned(),
            timeout: None,
            transactional: H::TRANSACTIONAL,
            several: H::SEVERAL,
            version,
            seconds: OnceLock::new(),
            call: Box::new(Typed {
                handler: Arc::new(handler),
                shape: std::marker::PhantomData::<fn() -> Shape>,
            }),
        }
    }

    /// Decodes the events and calls the handler. If one can't be decoded, it is reported and the handler is not called.
    pub(crate) fn call(
        &self,
        events: &[&Attempt],
        reading: Reading<'_>,
        context: Context,
        transaction: Option<Tx<S>>,
    ) -> Result<BoxFuture<'static, CallResult>, Failure> {
        self.call.call(events, reading, self.version, context, transaction)
    }
}

/// How payloads of other versions than a handler's are read.
#[derive(Clone, Copy)]
pub(crate) struct Reading<'a> {
    pub(crate) upcasters: &'a Upcasters,
    pub(crate) newer_version: NewerVersion,
}

trait Call<S: OutboxSource>: Send + Sync {
    fn call(
        &self,
        events: &[&Attempt],
        reading: Reading<'_>,
        version: Option<u32>,
        context: Context,
        transaction: Option<Tx<S>>,
    ) -> Result<BoxFuture<'static, CallResult>, Failure>;
}

struct Typed<H, Shape> {
    handler: Arc<H>,
    shape: std::marker::PhantomData<fn() -> Shape>,
}

impl<S, H, Shape> Call<S> for Typed<H, Shape>
where
    S: OutboxSource,
    H: Handler<S, Shape>,
    H::Payload: Decode,
    Shape: 'static,
{
    fn call(
        &self,
        events: &[&Attempt],
        reading: Reading<'_>,
        version: Option<u32>,
        context: Context,
        transaction: Option<Tx<S>>,
    ) -> Result<BoxFuture<'static, CallResult>, Failure> {
        let mut received = Vec::with_capacity(events.len());
        for Attempt { event, attempt } in events {
            let payload = reading.upcasters.decode::<H::Payload>(event, version, reading.newer_version)?;
            received.push(Received::new(payload, Arc::clone(event), *attempt));
        }
        Ok(Arc::clone(&self.handler).call(received, context, transaction))
    }
}
