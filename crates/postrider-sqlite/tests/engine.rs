//! The engine keeps its promises on SQLite.

mod support;

use std::sync::Mutex;

use async_trait::async_trait;
use postrider_conformance::engine::Ground;
use postrider_core::Clock;
use postrider_sqlite::Outbox;
use support::{Lite, LiteLog};

/// Keeps the logs it made until the test is over.
#[derive(Default)]
struct Files(Mutex<Vec<LiteLog>>);

#[async_trait]
impl Ground for Files {
    type Outbox = Outbox;

    async fn outbox(&self, clock: Clock) -> Outbox {
        let log = Lite::default().lite_log(clock).await;
        let outbox = log.outbox.clone();
        self.0.lock().expect("logs").push(log);
        outbox
    }
}

postrider_conformance::engine!(Files::default());
