//! The last tries of a delivery that failed: when, by which relay, how long each took, and what was said to it.

use std::collections::HashMap;
use std::time::Duration;

use postrider::store::{EventRef, PastAttempt, Store};
use serde::Serialize;
use unicode_width::UnicodeWidthChar;

use crate::Failure;
use crate::output::{self, Column, Table, Time};

/// How far they stand from the margin, and the answers from them.
const INDENT: &str = "      ";
const ANSWERED: &str = "        answered: ";
/// Below this a text is not broken.
const LEAST: usize = 20;

/// A try that failed.
#[derive(Serialize)]
pub(crate) struct AttemptView {
    at: Time,
    relay: String,
    millis: Option<u64>,
    code: String,
    message: String,
    answer: Option<String>,
}

impl AttemptView {
    fn of(attempt: PastAttempt) -> Self {
        Self {
            at: Time(attempt.at),
            relay: attempt.relay,
            millis: attempt.took.and_then(|took| u64::try_from(took.as_millis()).ok()),
            code: attempt.code,
            message: attempt.message,
            answer: attempt.answer.map(|answer| answer.as_str().to_owned()),
        }
    }
}

/// What is on record of an event, by subscription.
pub(crate) async fn of_event(
    log: &dyn Store,
    event: EventRef,
) -> Result<HashMap<String, Vec<AttemptView>>, Failure> {
    let found = log.attempts(event).await?.into_iter();
    Ok(found
        .map(|each| (each.subscription, each.attempts.into_iter().map(AttemptView::of).collect()))
        .collect())
}

/// For people: a line for each try, the oldest first, and what was answered below it, unless the try before it was answered the same.
pub(crate) fn text(attempts: &[AttemptView], width: Option<usize>) -> String {
    if attempts.is_empty() {
        return String::new();
    }
    let mut table = Table::new([
        Column::whole("when"),
        Column::text("relay"),
        Column::number("took"),
        Column::text("code"),
        Column::text("message"),
    ]);
    for attempt in attempts {
        table.row([
            output::when(attempt.at.0),
            attempt.relay.clone(),
            attempt
                .millis
                .map_or_else(|| "-".to_owned(), |millis| output::age(Duration::from_millis(millis))),
            attempt.code.clone(),
            attempt.message.clone(),
        ]);
    }
    let table = table.text(width.map(|width| width.saturating_sub(INDENT.len())));
    let mut lines = table.lines();
    let mut text = lines.next().map(|head| format!("{INDENT}{head}\n")).unwrap_or_default();
    let mut last = None;
    for (line, attempt) in lines.zip(attempts) {
        text.push_str(&format!("{INDENT}{line}\n"));
        if let Some(answer) = attempt.answer.as_ref().filter(|answer| last != Some(*answer)) {
            text.push_str(&wrapped(&output::plain(answer), width));
        }
        last = attempt.answer.as_ref();
    }
    text
}

/// An answer in lines that fit.
fn wrapped(answer: &str, width: Option<usize>) -> String {
    let most = width.map_or(usize::MAX, |width| width.saturating_sub(ANSWERED.len()).max(LEAST));
    let (mut lines, mut line, mut used) = (Vec::new(), String::new(), 0);
    for letter in answer.chars() {
        let wide = letter.width().unwrap_or(0);
        if used + wide > most {
            lines.push(std::mem::take(&mut line));
            used = 0;
        }
        line.push(letter);
        used += wide;
    }
    lines.push(line);
    format!("{ANSWERED}{}\n", lines.join(&format!("\n{}", " ".repeat(ANSWERED.len()))))
}

#[cfg(test)]
mod tests {
    use postrider::OffsetDateTime;
    use postrider::store::{DeliveryFailure, Excerpt};
    use unicode_width::UnicodeWidthStr;

    use super::*;

    fn attempts() -> Vec<AttemptView> {
        let at = OffsetDateTime::UNIX_EPOCH;
        let failed = |code: &str, answer: &str| {
            let message =
                format!("the endpoint answered {}, and this is a long sentence", "again ".repeat(20));
            DeliveryFailure::new(code, message).answer(Excerpt::new(answer.as_bytes()))
        };
        let long = "주문 {\"error\":\"no\"} ".repeat(20);
        [("http_500", long.as_str()), ("http_500", &long), ("http_503", "busy"), ("timeout", "")]
            .map(|(code, answer)| {
                let relay = "relay-4711-0123456789abcdef-in-a-long-name";
                let took = (code != "timeout").then_some(Duration::from_millis(1234));
                AttemptView::of(PastAttempt::new(at, relay, took, &failed(code, answer)))
            })
            .into()
    }

    #[test]
    fn tries_fit_into_80_columns_with_their_answers_below() {
        let text = text(&attempts(), Some(80));
        assert!(text.lines().all(|line| line.width() <= 80), "{text}");
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].trim_start().starts_with("WHEN "), "{text}");
        assert!(lines[1].contains("1970-01-01 00:00:00Z") && lines[1].contains("http_500"), "{text}");
        assert!(lines[2].starts_with(ANSWERED), "{text}");
        assert_eq!(text.matches("answered: ").count(), 2, "the same is not said twice: {text}");
        assert!(text.contains("answered: busy\n") && text.contains(" - "), "{text}");
        let shown: String = lines.iter().map(|line| line.trim()).collect();
        assert_eq!(shown.matches("{\"error\":\"no\"}").count(), 20, "all of it: {text}");
    }

    #[test]
    fn into_a_pipe_an_answer_is_one_line() {
        let text = text(&attempts(), None);
        assert_eq!(text.lines().count(), 1 + 4 + 2, "{text}");
        assert!(super::text(&[], None).is_empty());
    }
}
