//! `postrider dead-letters list`.

use clap::Args;
use postrider::OffsetDateTime;
use postrider::kafka::DeadLetter;

use super::{LetterView, NOBODY, Place, failed, place_of};
use crate::Failure;
use crate::config::Config;
use crate::output::{self, Column, Table};

/// The flags of `dead-letters list`.
#[derive(Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    place: Place,
    /// Only letters of this consumer group
    #[arg(long, value_name = "NAME")]
    group: Option<String>,
    /// Include letters that were requeued, as long as the topic keeps them
    #[arg(long)]
    all: bool,
    /// Maximum number of letters
    #[arg(long, value_name = "COUNT", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
    /// Print a JSON array
    #[arg(long)]
    json: bool,
}

/// Lists them.
pub(crate) async fn run(config: &Config, arguments: Arguments) -> Result<bool, Failure> {
    let Arguments { place, group, all, limit, json } = arguments;
    let letters = place.letters(config, group.as_deref().unwrap_or(NOBODY))?;
    let limit = limit as usize;
    let wanted = move |letter: &DeadLetter| {
        group.as_ref().is_none_or(|group| letter.group == *group) && (all || !letter.requeued)
    };
    let mut found = letters.list_all(&place.topic, limit + 1, wanted).await.map_err(failed)?;
    let more = found.len() > limit;
    found.truncate(limit);
    if json {
        output::json(&found.into_iter().map(LetterView::of).collect::<Vec<_>>())?;
    } else if found.is_empty() {
        output::line(format!("no dead letters in {}", place.letters_topic()))?;
    } else {
        table(&found, all).show()?;
    }
    if more {
        output::note("there are more; raise --limit, or pass --group");
    }
    Ok(true)
}

fn table(letters: &[DeadLetter], all: bool) -> Table {
    let now = OffsetDateTime::now_utc();
    let mut columns = vec![
        Column::whole("letter"),
        Column::text("group"),
        Column::whole("event"),
        Column::text("type"),
        Column::text("code"),
        Column::text("error"),
        Column::number("attempts").spare(),
        Column::number("age"),
        Column::text("record").spare(),
    ];
    columns.extend(all.then(|| Column::text("requeued")));
    let mut table = Table::new(columns);
    for letter in letters {
        let mut row = vec![
            place_of(letter),
            letter.group.clone(),
            letter.event_id.map(|id| id.to_string()).unwrap_or_default(),
            letter.event_type.clone().unwrap_or_default(),
            letter.error_code.clone(),
            letter.error.clone(),
            letter.attempts.to_string(),
            letter.time.map(|at| output::since(at.min(now), now)).unwrap_or_default(),
            format!("{} {}:{}", letter.topic, letter.partition, letter.offset),
        ];
        row.extend(all.then(|| if letter.requeued { "yes" } else { "no" }.to_owned()));
        table.row(row);
    }
    table
}
