//! `postrider dead-letters show`.

use clap::Args;
use postrider::Payload;
use postrider::kafka::DeadLetter;
use serde::Serialize;
use serde_json::value::RawValue;

use super::super::page::{payload_raw, payload_text};
use super::{LetterView, NOBODY, Place, failed};
use crate::Failure;
use crate::config::Config;
use crate::output;

/// The flags of `dead-letters show`.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Partition and offset in the dead-letter topic, as `list` shows them
    #[arg(value_name = "PARTITION:OFFSET", value_parser = position)]
    letter: (i32, i64),
    #[command(flatten)]
    place: Place,
    /// Print the payload, too
    #[arg(long)]
    payload: bool,
    /// Print a JSON object
    #[arg(long)]
    json: bool,
}

fn position(text: &str) -> Result<(i32, i64), String> {
    let parsed = text.split_once(':').and_then(|(partition, offset)| {
        let (partition, offset) = (partition.parse::<i32>().ok()?, offset.parse::<i64>().ok()?);
        (partition >= 0 && offset >= 0).then_some((partition, offset))
    });
    parsed.ok_or_else(|| "expected PARTITION:OFFSET, as in 0:17".to_owned())
}

#[derive(Serialize)]
struct Page {
    #[serde(flatten)]
    letter: LetterView,
    payload_bytes: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    payload: Option<Box<RawValue>>,
}

/// Shows it.
pub(crate) async fn run(config: &Config, arguments: &Arguments) -> Result<bool, Failure> {
    let (place, (partition, offset)) = (&arguments.place, arguments.letter);
    let letters = place.letters(config, NOBODY)?;
    let found = letters.read(&place.topic, partition, offset).await.map_err(failed)?;
    let Some((letter, value)) = found else {
        let (letters, topic) = (place.letters_topic(), &place.topic);
        return Err(format!("there is no dead letter of {topic} at {partition}:{offset} in {letters}; `postrider dead-letters list` shows which there are").into());
    };
    let value = value.unwrap_or_default();
    let payload_bytes = value.len();
    let payload = match Payload::json_bytes(value.clone()) {
        Ok(json) => json,
        Err(_) => Payload::Bytes { content_type: String::new(), bytes: value },
    };
    if arguments.json {
        let payload = payload_raw(&payload).filter(|_| arguments.payload);
        output::json(&Page { letter: LetterView::of(letter), payload_bytes, payload })?;
        return Ok(true);
    }
    let mut text = lines(&letter, payload_bytes);
    if arguments.payload {
        text.push_str(&format!("\npayload:\n{}\n", payload_text(&payload)));
    }
    output::print(&text)?;
    if !letter.requeued {
        let (group, topic) = (&letter.group, &place.topic);
        output::line(format!("\nretry it:  postrider dead-letters requeue --topic {topic} --group {group}"))?;
    }
    Ok(true)
}

fn lines(letter: &DeadLetter, payload_bytes: usize) -> String {
    let mut lines = vec![
        ("letter", super::place_of(letter)),
        ("group", letter.group.clone()),
        ("record", format!("{} {}:{}", letter.topic, letter.partition, letter.offset)),
    ];
    lines.extend(letter.event_id.map(|id| ("event", id.to_string())));
    lines.extend(letter.event_type.clone().map(|kind| ("type", kind)));
    lines.extend(letter.key.clone().map(|key| ("key", key)));
    lines.push(("error", format!("{}: {}", letter.error_code, letter.error)));
    lines.push(("attempts", letter.attempts.to_string()));
    lines.extend(letter.time.map(|time| ("died", output::when(time))));
    lines.push(("requeued", if letter.requeued { "yes" } else { "no" }.to_owned()));
    lines.push(("payload", output::count(payload_bytes as u64, "byte")));
    lines.iter().map(|(name, value)| format!("{name:<10} {}\n", output::plain(value))).collect()
}
