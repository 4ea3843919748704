//! What a relay says of itself, on stderr, which the test shows when it fails.

use std::fmt::{Debug, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

/// Writes events to stderr, one line each; spans are not looked at.
#[derive(Debug)]
pub struct Log {
    most: Level,
    spans: AtomicU64,
}

impl Log {
    /// Writes what is at least as grave as `most`.
    pub fn new(most: Level) -> Self {
        Self { most, spans: AtomicU64::new(1) }
    }
}

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let _ = match field.name() {
            "message" => write!(self.0, " {value:?}"),
            name => write!(self.0, " {name}={value:?}"),
        };
    }
}

impl Subscriber for Log {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event() && *metadata.level() <= self.most && metadata.target().starts_with("postrider")
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(self.spans.fetch_add(1, Ordering::Relaxed))
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        // Seconds of the hour: several relays' lines can be put side by side.
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() % 3_600_000;
        let mut line = Line(format!("{:8.3} {}", now as f64 / 1000.0, event.metadata().level()));
        event.record(&mut line);
        eprintln!("{}", line.0);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}
