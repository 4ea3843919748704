//! `postrider dead list` and `dead show`.

use clap::Args;
use postrider::store::{EventQuery, LoggedEvent, OpenDelivery, State};
use postrider::{OffsetDateTime, Uuid};
use serde::Serialize;

use super::super::deliveries::{self, DeliveryView};
use super::super::page::{self, EventView};
use super::{Wanted, each_dead};
use crate::Failure;
use crate::database::SharedStore;
use crate::output::{self, Column, Table, Time};

/// The flags of `dead list`.
#[derive(Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    wanted: Wanted,
    /// Maximum number of events
    #[arg(long, value_name = "COUNT", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
    /// Print a JSON array
    #[arg(long)]
    json: bool,
}

/// The flags of `dead show`.
#[derive(Args)]
pub(crate) struct Show {
    /// Id of the event
    #[arg(value_name = "UUID")]
    id: Uuid,
    /// Print a JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct DeadView {
    subscription: String,
    attempts: u32,
    first_failed_at: Option<Time>,
    last_attempt_at: Option<Time>,
    error_code: Option<String>,
    error_message: Option<String>,
    event: EventView,
}

impl DeadView {
    fn of(delivery: OpenDelivery) -> Self {
        Self {
            subscription: delivery.subscription,
            attempts: delivery.attempts,
            first_failed_at: delivery.first_failed_at.map(Time),
            last_attempt_at: delivery.last_attempt_at.map(Time),
            error_code: delivery.error_code,
            error_message: delivery.error_message,
            event: EventView::of(&LoggedEvent { event: delivery.event, archived: false }, None),
        }
    }
}

/// Lists the dead.
pub(crate) async fn run(log: &SharedStore, arguments: &Arguments) -> Result<bool, Failure> {
    arguments.wanted.check(log).await?;
    let (mut dead, mut more) = (Vec::new(), false);
    each_dead(log, &arguments.wanted, |delivery| {
        more = dead.len() == arguments.limit as usize;
        if !more {
            dead.push(delivery);
        }
        !more
    })
    .await?;
    if arguments.json {
        output::json(&dead.into_iter().map(DeadView::of).collect::<Vec<_>>())?;
    } else if dead.is_empty() {
        let matching = if arguments.wanted.is_set() { " match" } else { "" };
        output::line(format!("no dead events{matching}"))?;
    } else {
        shown(&dead)?;
    }
    if more {
        output::note("there are more; raise --limit, or add a filter");
    }
    Ok(true)
}

/// A line for each where they fit as they are; otherwise what went wrong stands below, for it is what matters.
fn shown(dead: &[OpenDelivery]) -> Result<(), Failure> {
    match output::width() {
        Some(width) if !table(dead).fits(width) => output::print(&stacked(dead, width)),
        _ => table(dead).show(),
    }
}

/// How many lines what went wrong has at most; `dead show` has all of it.
const LINES: usize = 3;

fn stacked(dead: &[OpenDelivery], width: usize) -> String {
    let now = OffsetDateTime::now_utc();
    let mut table = Table::new([
        Column::whole("event"),
        Column::text("subscription"),
        Column::number("attempts"),
        Column::number("last").spare(),
        Column::text("type").spare(),
    ]);
    for delivery in dead {
        table.row([
            delivery.event.event_id.to_string(),
            delivery.subscription.clone(),
            delivery.attempts.to_string(),
            delivery.last_attempt_at.map(|at| output::since(at.min(now), now)).unwrap_or_default(),
            delivery.event.event_type.to_string(),
        ]);
    }
    let text = table.text(Some(width));
    let mut lines = text.lines();
    let mut out = format!("{}\n", lines.next().unwrap_or_default());
    for (line, delivery) in lines.zip(dead) {
        let code = delivery.error_code.as_deref().unwrap_or("failed");
        let what = format!("{code}: {}", delivery.error_message.as_deref().unwrap_or_default());
        let below = output::wrapped(&what, width.saturating_sub(2), LINES);
        out.push_str(&format!("{line}\n"));
        out.extend(below.iter().map(|line| format!("  {line}\n")));
    }
    out
}

fn table(dead: &[OpenDelivery]) -> Table {
    let now = OffsetDateTime::now_utc();
    let mut table = Table::new([
        Column::whole("event"),
        Column::text("subscription"),
        Column::number("attempts"),
        Column::text("code"),
        Column::text("error"),
        Column::number("last").spare(),
        Column::text("type").spare(),
        Column::text("aggregate").spare(),
    ]);
    for delivery in dead {
        let event = &delivery.event;
        table.row([
            event.event_id.to_string(),
            delivery.subscription.clone(),
            delivery.attempts.to_string(),
            delivery.error_code.clone().unwrap_or_default(),
            delivery.error_message.clone().unwrap_or_default(),
            delivery.last_attempt_at.map(|at| output::since(at.min(now), now)).unwrap_or_default(),
            event.event_type.to_string(),
            format!("{}:{}", event.aggregate_type, event.aggregate_id),
        ]);
    }
    table
}

#[derive(Serialize)]
struct Page {
    event: EventView,
    deliveries: Vec<DeliveryView>,
}

/// Shows one of the dead.
pub(crate) async fn show(log: &SharedStore, arguments: &Show) -> Result<bool, Failure> {
    let query = EventQuery { event_id: Some(arguments.id), ..EventQuery::default() };
    let logged = log.events(&query).await?.events.pop();
    let Some(logged) = logged else {
        return Err(format!("there is no event {} in the log or in the archive", arguments.id).into());
    };
    let event = (&logged.event).into();
    let dead = deliveries::of_event(log, event, |state| state.state == State::Dead).await?;
    if dead.is_empty() {
        let what = format!(
            "event {} is not dead for any subscription; `postrider events show` shows its state",
            arguments.id
        );
        return Err(what.into());
    }
    if arguments.json {
        output::json(&Page { event: EventView::of(&logged, None), deliveries: dead })?;
        return Ok(true);
    }
    let now = OffsetDateTime::now_utc();
    let text = page::head(&logged) + &deliveries::text(&dead, false, now);
    output::print(&text)?;
    let id = arguments.id;
    output::line(format!(
        "\nretry it:   postrider dead requeue {id}\ndiscard it: postrider dead discard {id} --why REASON\n\
         correct it: postrider dead replace {id} --payload @FILE --why REASON"
    ))?;
    Ok(true)
}
