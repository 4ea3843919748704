//! A sink that writes lines: one structured CloudEvent each.

use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use postrider_core::{CloudEvents, Delivery, Outcome, Sink, Unavailable};

/// Writes each event as one line: a CloudEvent as JSON, with the attributes of [`CloudEvents::each`]. Lines are flushed before their events count as
/// delivered.
///
/// If the writer fails, the destination is unavailable and its events wait. Lines that were written before may come again.
///
/// ```
/// use postrider::store::Lines;
/// use postrider::{CloudEvents, Relay, testing::Outbox};
///
/// let relay = Relay::new(&Outbox::new())
///     .subscribe("log", |s| s.sink(Lines::stdout(CloudEvents::default())));
/// ```
pub struct Lines {
    format: CloudEvents,
    writer: Arc<Mutex<dyn Write + Send>>,
}

impl Lines {
    /// Lines on standard output.
    pub fn stdout(format: CloudEvents) -> Self {
        Self::new(format, std::io::stdout())
    }

    /// Lines on any writer.
    pub fn new(format: CloudEvents, writer: impl Write + Send + 'static) -> Self {
        Self { format, writer: Arc::new(Mutex::new(writer)) }
    }
}

#[async_trait]
impl Sink for Lines {
    async fn deliver(&self, delivery: Arc<Delivery>) -> Result<(), Unavailable> {
        let mut text = String::new();
        for attempt in &delivery.events {
            // A payload that was written with line breaks in it is one line here.
            let json = self.format.to_json(&attempt.event);
            text.extend(json.chars().map(|letter| if matches!(letter, '\n' | '\r') { ' ' } else { letter }));
            text.push('\n');
        }
        let writer = Arc::clone(&self.writer);
        // A pipe that nobody reads blocks.
        let written = tokio::task::spawn_blocking(move || {
            let mut writer = writer.lock().unwrap_or_else(PoisonError::into_inner);
            writer.write_all(text.as_bytes()).and_then(|()| writer.flush())
        });
        match written.await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => return Err(Unavailable::new(format!("can't write lines: {error}"))),
            Err(error) => return Err(Unavailable::new(format!("the writer stopped: {error}"))),
        }
        for index in 0..delivery.events.len() {
            delivery.report(index, Outcome::Delivered);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use postrider_core::{Attempt, OptionalAttribute, Payload, Recorded};

    use super::*;
    use crate::engine::work::tests::event;

    /// What was flushed, what was not yet, and why nothing can be written.
    #[derive(Clone, Default)]
    struct Paper(Arc<Mutex<Vec<u8>>>, Arc<Mutex<Option<std::io::ErrorKind>>>, Arc<Mutex<Vec<u8>>>);

    impl Write for Paper {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            if let Some(kind) = *self.1.lock().expect("kind") {
                return Err(kind.into());
            }
            self.2.lock().expect("ink").extend(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            self.0.lock().expect("paper").append(&mut self.2.lock().expect("ink"));
            Ok(())
        }
    }

    fn delivery() -> Arc<Delivery> {
        let json = "{\n  \"a\": 1\n}";
        let events = ["a", "b"].map(|order| Recorded { payload: Payload::Json(json.into()), ..event(order) });
        let attempts = events.into_iter().map(|event| Attempt { event: Arc::new(event), attempt: 1 });
        Arc::new(Delivery::new("s", attempts.collect()))
    }

    #[tokio::test]
    async fn each_event_is_one_line_of_json() {
        let paper = Paper::default();
        let sink = Lines::new(CloudEvents::default(), paper.clone());
        let delivery = delivery();
        sink.deliver(Arc::clone(&delivery)).await.expect("written");
        assert!(delivery.take_outcomes().iter().all(|outcome| *outcome == Some(Outcome::Delivered)));
        let text = String::from_utf8(paper.0.lock().expect("paper").clone()).expect("text");
        let lines: Vec<serde_json::Value> =
            text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        assert_eq!(lines.len(), 2);
        assert_eq!((lines[1]["subject"].as_str(), lines[1]["data"]["a"].as_i64()), (Some("b"), Some(1)));
    }

    #[tokio::test]
    async fn an_attribute_is_written_where_it_was_asked_for() {
        for (asked, wanted) in [(None, None), (Some(OptionalAttribute::AggregateType), Some("Order"))] {
            let paper = Paper::default();
            let sink = Lines::new(CloudEvents::default().with_optional(asked), paper.clone());
            sink.deliver(delivery()).await.expect("written");
            let text = String::from_utf8(paper.0.lock().expect("paper").clone()).expect("text");
            let line: serde_json::Value =
                serde_json::from_str(text.lines().next().expect("a line")).expect("JSON");
            assert_eq!((line["aggregatetype"].as_str(), line["stream"].as_str()), (wanted, None));
        }
    }

    #[tokio::test]
    async fn a_broken_pipe_is_unavailable_and_nothing_counts_as_delivered() {
        let paper = Paper::default();
        *paper.1.lock().expect("kind") = Some(std::io::ErrorKind::BrokenPipe);
        let sink = Lines::new(CloudEvents::default(), paper);
        let delivery = delivery();
        let error = sink.deliver(Arc::clone(&delivery)).await.expect_err("unavailable");
        assert!(error.reason.contains("can't write lines"), "{error}");
        assert!(delivery.take_outcomes().iter().all(Option::is_none));
    }
}
