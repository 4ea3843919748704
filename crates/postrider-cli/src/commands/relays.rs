//! `postrider relays`: who is there, and what each of them runs.

use std::collections::BTreeMap;

use clap::Args;
use postrider::OffsetDateTime;
use postrider::store::{RelayInfo, RelayRun};
use serde::Serialize;

use crate::Failure;
use crate::config::Config;
use crate::database;
use crate::output::{self, Column, Table, Time};

/// The flags of `relays`.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Print a JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Report<'r> {
    relays: Vec<Relay<'r>>,
    /// What does not fit together, a sentence each.
    conflicts: Vec<String>,
}

/// What does not fit together among the relays that are there.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Conflict {
    /// What it is, in a sentence.
    pub(crate) what: String,
    /// What to do about it.
    pub(crate) remedy: &'static str,
}

#[derive(Serialize)]
struct Relay<'r> {
    id: String,
    name: &'r str,
    host: &'r str,
    process: u32,
    version: &'r str,
    /// Whether it was seen within the last minute.
    live: bool,
    started_at: Time,
    seen_at: Time,
    subscriptions: Vec<Run<'r>>,
}

#[derive(Serialize)]
struct Run<'r> {
    subscription: &'r str,
    lanes: &'r [u32],
    settings: &'r BTreeMap<String, String>,
    away: Option<&'r str>,
}

impl<'r> Relay<'r> {
    fn of(relay: &'r RelayInfo) -> Self {
        let report = &relay.report;
        let runs = report.runs.iter().map(|run| Run {
            subscription: &run.subscription,
            lanes: &run.lanes,
            settings: &run.settings,
            away: run.away.as_ref().map(|away| away.reason.as_str()),
        });
        Self {
            id: report.id.to_string(),
            name: &report.name,
            host: &report.host,
            process: report.process,
            version: &report.version,
            live: relay.live,
            started_at: Time(relay.started_at),
            seen_at: Time(relay.seen_at),
            subscriptions: runs.collect(),
        }
    }
}

/// Lists them.
pub(crate) async fn run(config: &Config, arguments: Arguments) -> Result<bool, Failure> {
    let relays = database::open(&config.store).await?.relays().await?;
    let conflicts = conflicts(&relays);
    let told = |Conflict { what, remedy }| format!("{what}; {remedy}");
    let conflicts: Vec<String> = conflicts.into_iter().map(told).collect();
    if arguments.json {
        output::json(&Report { relays: relays.iter().map(Relay::of).collect(), conflicts })?;
        return Ok(true);
    }
    if relays.is_empty() {
        output::line(
            "no relay is running, and none disappeared in the last day; start one with `postrider relay`",
        )?;
        return Ok(true);
    }
    let mut text = table(&relays, OffsetDateTime::now_utc()).text(output::width());
    if !conflicts.is_empty() {
        text.push('\n');
    }
    for conflict in conflicts {
        text.push_str(&format!("{}\n", output::plain(&conflict)));
    }
    output::print(&text)?;
    Ok(true)
}

fn table(relays: &[RelayInfo], now: OffsetDateTime) -> Table {
    let mut table = Table::new([
        Column::text("relay"),
        Column::text("host"),
        Column::number("process").spare(),
        Column::whole("version"),
        Column::whole("state"),
        Column::number("up").spare(),
        Column::number("seen"),
        Column::text("subscriptions and lanes"),
    ]);
    for relay in relays {
        let report = &relay.report;
        table.row([
            report.name.clone(),
            report.host.clone(),
            report.process.to_string(),
            report.version.clone(),
            if relay.live { "live" } else { "gone" }.to_owned(),
            output::since(relay.started_at, if relay.live { now } else { relay.seen_at }),
            format!("{} ago", output::age((now - relay.seen_at).max(time::Duration::ZERO).unsigned_abs())),
            runs(relay),
        ]);
    }
    table
}

/// The subscriptions of a relay with its lanes: `orders 0-3 7, mail`.
fn runs(relay: &RelayInfo) -> String {
    let shown = relay.report.runs.iter().map(|run| {
        let lanes = ranges(&run.lanes);
        if lanes.is_empty() { run.subscription.clone() } else { format!("{} {lanes}", run.subscription) }
    });
    shown.collect::<Vec<_>>().join(", ")
}

/// Numbers in a row as one range.
fn ranges(lanes: &[u32]) -> String {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for lane in lanes {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == *lane => *last = *lane,
            _ => ranges.push((*lane, *lane)),
        }
    }
    let shown = ranges.iter().map(
        |(first, last)| {
            if first == last { first.to_string() } else { format!("{first}-{last}") }
        },
    );
    shown.collect::<Vec<_>>().join(" ")
}

/// What does not fit together among the relays that are there: names that are used twice, subscriptions with other settings.
pub(crate) fn conflicts(relays: &[RelayInfo]) -> Vec<Conflict> {
    let live: Vec<&RelayInfo> = relays.iter().filter(|relay| relay.live).collect();
    let mut conflicts = Vec::new();
    for (place, relay) in live.iter().enumerate() {
        let (name, host) = (&relay.report.name, &relay.report.host);
        for other in live[place + 1..].iter().filter(|other| relay.is_beside(other)) {
            let (its, its_host) = (&other.report.name, &other.report.host);
            if name == its {
                let (one, two) = (relay.report.process, other.report.process);
                let what = format!(
                    "two relays are named {name}: process {one} on {host} and process {two} on {its_host}"
                );
                conflicts.push(Conflict { what, remedy: "give each a different relay.name" });
            }
            for run in &relay.report.runs {
                let Some(theirs) = other.run(&run.subscription) else { continue };
                let value = |run: &RelayRun, setting| {
                    run.settings.get(setting).cloned().unwrap_or_else(|| "not set".to_owned())
                };
                conflicts.extend(run.differing(theirs).into_iter().map(|setting| Conflict {
                    what: format!(
                        "{}: {setting} is {} in {name} on {host} and {} in {its} on {its_host}",
                        run.subscription,
                        value(run, setting),
                        value(theirs, setting)
                    ),
                    remedy: "give both the same settings, or stop one of them",
                }));
            }
        }
    }
    conflicts.sort();
    conflicts.dedup();
    conflicts
}

#[cfg(test)]
mod tests {
    use postrider::Uuid;
    use postrider::store::RelayReport;

    use super::*;

    #[test]
    fn lanes_in_a_row_are_a_range() {
        assert_eq!(ranges(&[0, 1, 2, 3, 7, 9, 10]), "0-3 7 9-10");
        assert_eq!((ranges(&[]), ranges(&[4])), (String::new(), "4".to_owned()));
    }

    /// Each with what to do about it, also where only the second one has the setting.
    #[test]
    fn relays_that_do_not_fit_together_are_told() {
        let relay = |name: &str, settings: &[(&str, &str)]| {
            let settings = settings.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
            let run =
                RelayRun { subscription: "mail".into(), settings: settings.collect(), ..RelayRun::default() };
            let (host, version) = ("h".to_owned(), "1".to_owned());
            let (id, name) = (Uuid::new_v4(), name.to_owned());
            let report = RelayReport { id, name, host, process: 1, version, runs: vec![run] };
            let at = OffsetDateTime::UNIX_EPOCH;
            RelayInfo { report, started_at: at, seen_at: at, live: true }
        };
        let told = |relays: &[RelayInfo]| -> Vec<(String, &'static str)> {
            conflicts(relays).into_iter().map(|Conflict { what, remedy }| (what, remedy)).collect()
        };
        let (plain, patient) = (relay("a", &[]), relay("b", &[("patience", "7s")]));
        let remedy = "give both the same settings, or stop one of them";
        let what = "mail: patience is not set in a on h and 7s in b on h".to_owned();
        assert_eq!(told(&[plain.clone(), patient.clone()]), [(what, remedy)]);
        let what = "mail: patience is 7s in b on h and not set in a on h".to_owned();
        assert_eq!(told(&[patient, plain.clone()]), [(what, remedy)]);
        let what = "two relays are named a: process 1 on h and process 1 on h".to_owned();
        assert_eq!(told(&[plain, relay("a", &[])]), [(what, "give each a different relay.name")]);
    }
}
