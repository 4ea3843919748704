//! The engine keeps its promises on the log in memory.

use async_trait::async_trait;
use postrider_conformance::engine::Fixture;
use postrider_core::Clock;
use postrider_memory::Outbox;

struct Memory;

#[async_trait]
impl Fixture for Memory {
    type Outbox = Outbox;

    async fn outbox(&self, clock: Clock) -> Outbox {
        Outbox::builder().clock(clock).build()
    }
}

postrider_conformance::engine!(Memory);
