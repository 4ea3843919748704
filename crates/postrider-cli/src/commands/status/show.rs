//! The status as tables.

use postrider::OffsetDateTime;
use postrider::store::SubscriptionState;

use super::super::replay::unfinished::Unfinished;
use super::look::{Lane, Status, SubscriptionStatus};
use crate::output::{self, Column, Table};

/// The tables, one after the other.
pub(crate) fn text(status: &Status, streams: bool) -> String {
    if status.subscriptions.is_empty() {
        return "there are no subscriptions yet; a relay creates those in its settings, `postrider subscriptions create` creates others\n"
            .to_owned();
    }
    let width = output::width();
    let mut parts = vec![overview(status).text(width)];
    if streams {
        parts.push(by_stream(status).text(width));
    }
    parts.push(lanes(status).text(width));
    if status.subscriptions.iter().any(|each| each.estimated) {
        parts.push("~ an estimate: the backlog is too long to count quickly\n".to_owned());
    }
    let notes: Vec<String> = status.subscriptions.iter().flat_map(|each| notes(each, status.at.0)).collect();
    if !notes.is_empty() {
        parts.push(notes.concat());
    }
    parts.join("\n")
}

/// What a person should know of a subscription besides its numbers: a line each.
fn notes(each: &SubscriptionStatus, now: OffsetDateTime) -> Vec<String> {
    let name = &output::plain(&each.subscription);
    let mut notes = Vec::new();
    if let Some(pause) = &each.pause {
        let why = pause.why.as_ref().map(|why| format!(": {}", output::plain(why))).unwrap_or_default();
        let who = output::plain(&pause.who);
        notes.push(format!("{name}: paused by {who} since {}{why}\n", output::when(pause.since.0)));
    }
    if !each.run {
        let last = match &each.last_relay {
            None => String::new(),
            Some(relay) => format!(
                "; {} on {} disappeared {} ago without stopping",
                output::plain(&relay.name),
                output::plain(&relay.host),
                output::since(relay.seen_at.0, now)
            ),
        };
        notes.push(format!("{name}: no relay delivers it{last}; start one, or see `postrider relays`\n"));
    }
    if let Some(away) = each.away.as_ref().filter(|_| each.state == SubscriptionState::Away) {
        let probe = away.next_probe.map_or_else(|| "now".to_owned(), |at| soon(at.0, now));
        notes.push(format!(
            "{name}: its destination has been unavailable since {}, next try {probe}; its events wait and lose no attempts: {}\n",
            output::when(away.since.0),
            output::plain(&away.reason)
        ));
    }
    if let (SubscriptionState::WaitingForRetry, Some(at)) = (each.state, &each.next_retry_at) {
        notes.push(format!("{name}: the next retry is {}\n", soon(at.0, now)));
    }
    if let Some(what) = each.hold.sentence() {
        let quoted = output::quoted(name);
        notes.push(format!("{name}: {what}; see `postrider dead list --subscription {quoted}`\n"));
    }
    if let Some(next) = each.lanes_next {
        let lanes = each.lanes.len();
        notes.push(format!("{name}: changing from {lanes} to {next} lanes\n"));
    }
    if let Some(replay) = &each.paused_for_replay {
        notes.push(format!("{}: {}\n", output::plain(&replay.what(name)), Unfinished::remedy(name)));
    }
    notes
}

/// When something happens that is to come.
pub(crate) fn soon(at: OffsetDateTime, now: OffsetDateTime) -> String {
    if at > now { format!("in {}", output::age((at - now).unsigned_abs())) } else { "now".to_owned() }
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
    for each in &status.subscriptions {
        table.row([
            each.subscription.clone(),
            each.state.as_str().to_owned(),
            about(each.pending, each.estimated),
            output::number(each.processing),
            output::number(each.retrying),
            output::number(each.dead),
            oldest(each.oldest_seconds),
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
    for each in &status.subscriptions {
        for stream in &each.streams {
            table.row([
                each.subscription.clone(),
                stream.stream.clone(),
                about(stream.pending, each.estimated),
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
    for each in &status.subscriptions {
        for lane in &each.lanes {
            table.row(lane_row(each, lane, status));
        }
    }
    table
}

fn lane_row(each: &SubscriptionStatus, lane: &Lane, status: &Status) -> [String; 6] {
    let now = status.at.0;
    let left =
        |until: time::OffsetDateTime| output::age((until - now).max(time::Duration::ZERO).unsigned_abs());
    let ago = |at: time::OffsetDateTime| {
        format!("{} ago", output::age((now - at).max(time::Duration::ZERO).unsigned_abs()))
    };
    [
        each.subscription.clone(),
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
