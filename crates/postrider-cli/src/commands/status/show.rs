//! The status as tables.

use postrider::{Condition, OffsetDateTime};

use super::super::replay::unfinished::Unfinished;
use super::look::{Lane, Standing, Status};
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
    let notes: Vec<String> =
        status.subscriptions.iter().flat_map(|standing| notes(standing, status.at.0)).collect();
    if !notes.is_empty() {
        parts.push(notes.concat());
    }
    parts.join("\n")
}

/// What a person should know of a subscription besides its numbers: a line each.
fn notes(standing: &Standing, now: OffsetDateTime) -> Vec<String> {
    let name = &standing.subscription;
    let mut notes = Vec::new();
    if let Some(pause) = &standing.pause {
        let why = pause.why.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
        notes.push(format!("{name}: paused by {} since {}{why}\n", pause.who, output::when(pause.since.0)));
    }
    if standing.state == Condition::NoRelay {
        let last = match &standing.last_relay {
            None => String::new(),
            Some(relay) => format!(
                "; the last one, {} on {}, was seen {} ago",
                relay.name,
                relay.host,
                output::since(relay.seen_at.0, now)
            ),
        };
        notes.push(format!("{name}: no relay delivers it{last}; start one, or see `postrider relays`\n"));
    }
    if let Some(away) = standing.away.as_ref().filter(|_| standing.state == Condition::Away) {
        let probe = away.next_probe.map_or_else(|| "now".to_owned(), |at| soon(at.0, now));
        notes.push(format!(
            "{name}: its destination has been away since {}, asked again {probe}; its events wait and lose no attempt: {}\n",
            output::when(away.since.0),
            away.reason
        ));
    }
    if let (Condition::WaitingForRetry, Some(at)) = (standing.state, &standing.next_retry_at) {
        notes.push(format!("{name}: the next retry is {}\n", soon(at.0, now)));
    }
    if standing.dead > 0 && standing.waiting > 0 && standing.state != Condition::WaitingForRetry {
        notes.push(format!(
            "{name}: {} behind {}; look at `postrider dead list --subscription {}`\n",
            waits(standing.waiting),
            output::count(standing.dead, "dead event"),
            output::quoted(name),
        ));
    }
    if let Some(next) = standing.lanes_next {
        let lanes = standing.lanes.len();
        notes.push(format!("{name}: its lanes are being changed from {lanes} to {next}\n"));
    }
    if let Some(replay) = &standing.paused_for_replay {
        notes.push(format!("{}: {}\n", replay.what(name), Unfinished::remedy(name)));
    }
    notes
}

fn soon(at: OffsetDateTime, now: OffsetDateTime) -> String {
    if at > now { format!("in {}", output::age((at - now).unsigned_abs())) } else { "now".to_owned() }
}

fn waits(many: u64) -> String {
    format!("{} wait{}", output::count(many, "event"), if many == 1 { "s" } else { "" })
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
            standing.state.as_str().to_owned(),
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

fn about(number: u64, estimated: bool) -> String {
    let mark = if estimated { "~" } else { "" };
    format!("{mark}{}", output::number(number))
}

fn oldest(seconds: f64) -> String {
    if seconds > 0.0 { output::seconds(seconds) } else { "-".to_owned() }
}
