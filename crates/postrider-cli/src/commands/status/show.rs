//! The status as tables.

use super::super::replay::unfinished::Unfinished;
use super::look::{Doing, Lane, Standing, Status};
use crate::output::{self, Column, Table};

/// The tables, one after the other.
pub(crate) fn text(status: &Status, streams: bool) -> String {
    if status.subscriptions.is_empty() {
        return "there is no subscription yet; a relay makes those of its settings, and `postrider subscriptions create` others\n"
            .to_owned();
    }
    let width = output::width();
    let mut parts = vec![overview(status).text(width)];
    if streams {
        parts.push(by_stream(status).text(width));
    }
    parts.push(lanes(status).text(width));
    if status.subscriptions.iter().any(|standing| standing.estimated) {
        parts.push("~ an estimate: the backlog is too long to be counted in a moment\n".to_owned());
    }
    for standing in &status.subscriptions {
        if let Some(away) = &standing.away {
            let (name, since) = (&standing.subscription, output::when(away.since.0));
            parts.push(format!(
                "{name}: its destination has been away since {since}; its events wait and lose no attempt: {}\n",
                away.reason
            ));
        }
        if let Some(replay) = &standing.paused_for_replay {
            let name = &standing.subscription;
            parts.push(format!("{}: {}\n", replay.what(name), Unfinished::remedy(name)));
        }
    }
    parts.join("\n")
}

fn overview(status: &Status) -> Table {
    let mut table = Table::new([
        Column::text("subscription"),
        Column::whole("state"),
        Column::number("pending"),
        Column::number("in flight"),
        Column::number("retrying"),
        Column::number("dead"),
        Column::number("oldest"),
    ]);
    for standing in &status.subscriptions {
        table.row([
            standing.subscription.clone(),
            doing(standing),
            about(standing.pending, standing.estimated),
            output::number(standing.processing),
            output::number(standing.retrying),
            output::number(standing.dead),
            oldest(standing.oldest_seconds),
        ]);
    }
    table
}

fn by_stream(status: &Status) -> Table {
    let mut table = Table::new([
        Column::text("subscription"),
        Column::text("stream"),
        Column::number("pending"),
        Column::number("in flight"),
        Column::number("retrying"),
        Column::number("dead"),
        Column::number("oldest"),
    ]);
    for standing in &status.subscriptions {
        for stream in &standing.streams {
            table.row([
                standing.subscription.clone(),
                stream.stream.clone(),
                about(stream.pending, standing.estimated),
                output::number(stream.processing),
                output::number(stream.retrying),
                output::number(stream.dead),
                oldest(stream.oldest_seconds),
            ]);
        }
    }
    table
}

fn lanes(status: &Status) -> Table {
    let mut table = Table::new([
        Column::text("subscription"),
        Column::number("lane"),
        Column::text("held by"),
        Column::number("lag"),
        Column::number("lease"),
        Column::number("settled"),
    ]);
    for standing in &status.subscriptions {
        for lane in &standing.lanes {
            table.row(lane_row(standing, lane, status));
        }
    }
    table
}

fn lane_row(standing: &Standing, lane: &Lane, status: &Status) -> [String; 6] {
    let now = status.at.0;
    let left =
        |until: time::OffsetDateTime| output::age((until - now).max(time::Duration::ZERO).unsigned_abs());
    let ago = |at: time::OffsetDateTime| {
        format!("{} ago", output::age((now - at).max(time::Duration::ZERO).unsigned_abs()))
    };
    [
        standing.subscription.clone(),
        lane.lane.to_string(),
        lane.owner.clone().unwrap_or_else(|| "nobody".to_owned()),
        output::number(lane.behind),
        lane.lease_until.map(|until| left(until.0)).unwrap_or_default(),
        lane.settled_at.map_or_else(|| "never".to_owned(), |at| ago(at.0)),
    ]
}

fn doing(standing: &Standing) -> String {
    match standing.state {
        Doing::Paused => "paused".to_owned(),
        Doing::ChangingLanes => {
            format!("lanes {} to {}", standing.lanes.len(), standing.lanes_next.unwrap_or_default())
        }
        Doing::Away => "away".to_owned(),
        Doing::Delivering => "delivering".to_owned(),
        Doing::Idle => "idle".to_owned(),
        Doing::Unattended => "unattended".to_owned(),
    }
}

fn about(number: u64, estimated: bool) -> String {
    let mark = if estimated { "~" } else { "" };
    format!("{mark}{}", output::number(number))
}

fn oldest(seconds: f64) -> String {
    if seconds > 0.0 { output::seconds(seconds) } else { "-".to_owned() }
}
