//! `postrider subscriptions list`.

use clap::Args;
use postrider::Start;
use postrider::store::{SubscriptionInfo, SubscriptionState};
use serde::Serialize;

use super::super::status::look::{self, SubscriptionStatus};
use super::wanted;
use crate::Failure;
use crate::database::SharedStore;
use crate::output::{self, Column, Table, Time};

/// The flags of `list`.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Print a JSON array
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Listed {
    name: String,
    streams: Vec<String>,
    types: Vec<String>,
    lanes: u32,
    lanes_next: Option<u32>,
    start: String,
    order: &'static str,
    on_dead: &'static str,
    replay: bool,
    #[serde(serialize_with = "look::word")]
    state: SubscriptionState,
    paused: bool,
    away: Option<String>,
    created_at: Time,
}

impl Listed {
    fn of(info: &SubscriptionInfo, status: SubscriptionStatus) -> Self {
        let subscription = &info.subscription;
        let texts = |patterns: &[postrider::store::Pattern]| {
            patterns.iter().map(|pattern| pattern.as_str().to_owned()).collect()
        };
        Self {
            name: subscription.name.clone(),
            streams: texts(&subscription.filter.streams),
            types: texts(&subscription.filter.types),
            lanes: subscription.lanes,
            lanes_next: info.lanes_next,
            start: start(subscription.start),
            order: subscription.order.as_str(),
            on_dead: subscription.on_dead.as_str(),
            replay: subscription.replay,
            state: status.state,
            paused: status.paused,
            away: status.away.map(|away| away.reason),
            created_at: Time(info.created_at),
        }
    }
}

fn start(start: Start) -> String {
    match start {
        Start::Beginning => "beginning".to_owned(),
        Start::Now => "now".to_owned(),
        Start::At(time) => {
            time.format(&time::format_description::well_known::Rfc3339).unwrap_or_else(|_| output::when(time))
        }
    }
}

/// Lists them.
pub(crate) async fn run(log: &SharedStore, arguments: &Arguments) -> Result<bool, Failure> {
    let infos = log.subscriptions().await?;
    let listed = listed(&infos, look::look(log, None).await?.subscriptions);
    if arguments.json {
        output::json(&listed.into_iter().map(|(_, listed)| listed).collect::<Vec<_>>())?;
        return Ok(true);
    }
    if listed.is_empty() {
        output::line("there are no subscriptions yet")?;
    } else {
        table(listed).show()?;
    }
    Ok(true)
}

/// Each with what it is doing; what was removed meanwhile is left out.
fn listed(infos: &[SubscriptionInfo], looked: Vec<SubscriptionStatus>) -> Vec<(&SubscriptionInfo, Listed)> {
    let of = |status: SubscriptionStatus| {
        let info = infos.iter().find(|info| info.subscription.name == status.subscription)?;
        Some((info, Listed::of(info, status)))
    };
    looked.into_iter().filter_map(of).collect()
}

fn table(all: Vec<(&SubscriptionInfo, Listed)>) -> Table {
    let mut table = Table::new([
        Column::text("name"),
        Column::text("streams"),
        Column::text("types"),
        Column::number("lanes"),
        Column::whole("order"),
        Column::whole("on dead"),
        Column::whole("replay"),
        Column::whole("state"),
        Column::whole("start").spare(),
        Column::whole("made").spare(),
    ]);
    for (info, listed) in all {
        let (streams, types) = wanted(&info.subscription);
        let lanes = match info.lanes_next {
            Some(next) => format!("{} to {next}", listed.lanes),
            None => listed.lanes.to_string(),
        };
        table.row([
            listed.name,
            streams,
            types,
            lanes,
            listed.order.to_owned(),
            listed.on_dead.to_owned(),
            if listed.replay { "allowed" } else { "forbidden" }.to_owned(),
            listed.state.as_str().to_owned(),
            listed.start,
            output::when(info.created_at),
        ]);
    }
    table
}
