//! `postrider config check`: what was understood, with secrets hidden.

mod json;

use std::fmt::Write as _;

use postrider::{OnDead, Start, WhileUnavailable};

use crate::Failure;
use crate::config::duration::show;
use crate::config::retention::ZONE;
use crate::config::{
    Alert, Config, Format, RelaySettings, Retention, Sink, Store, SubscriptionSection, endpoint,
    without_password,
};
use crate::sinks::Ready;
use crate::{alerts, database, logging, output};

/// Shows the settings; refuses what a relay would refuse without asking anybody.
pub(crate) fn check(config: &Config, as_json: bool) -> Result<bool, Failure> {
    logging::filter(&config.log)?;
    database::check(&config.store)?;
    for (name, sink) in &config.sinks {
        Ready::check(config, name, sink)?;
    }
    alerts::AlertMonitor::of(config)?;
    if as_json {
        output::json(&json::json(config))?;
    } else {
        output::print(&text(config)?)?;
    }
    Ok(true)
}

/// Which properties are set; their values may be secrets.
fn named(properties: &[(String, String)]) -> String {
    let names: Vec<&str> = properties.iter().map(|(name, _)| name.as_str()).collect();
    if names.is_empty() { String::new() } else { format!(", with {}", names.join(", ")) }
}

fn text(config: &Config) -> Result<String, std::fmt::Error> {
    let mut out = String::new();
    if let Some(file) = &config.file {
        writeln!(out, "file           {file}")?;
    }
    writeln!(out, "store          {}", store(&config.store))?;
    writeln!(out, "relay          {}", relay(&config.relay))?;
    let listen = config.listen.map_or_else(|| "off".to_owned(), |listen| listen.address.to_string());
    writeln!(out, "http           {listen}")?;
    writeln!(out, "log            {}, {}", if config.log.json { "json" } else { "human" }, config.log.level)?;
    for (name, each) in &config.sinks {
        writeln!(out, "sink           {name}: {}", sink(each))?;
    }
    for reader in &config.readers {
        subscription(&mut out, reader)?;
    }
    if let Some(settings) = &config.retention {
        retention(&mut out, settings)?;
    }
    for each in &config.alerts {
        writeln!(out, "alert          {}", alert(each))?;
    }
    for (name, notify) in &config.notify {
        writeln!(out, "notify         {name}: {}", notify.kind())?;
    }
    Ok(out)
}

fn store(store: &Store) -> String {
    match &store.url {
        Some(url) if url.starts_with("sqlite:") => url.clone(),
        Some(url) if store.is_mysql() => {
            format!("{} ({} connections)", without_password(url), store.connections)
        }
        Some(url) => format!(
            "{} (schema {}, {} connections, bell {})",
            without_password(url),
            store.schema,
            store.connections,
            if store.bell { "on" } else { "off" }
        ),
        None => "not set: use store.url, POSTRIDER_STORE_URL or --store".to_owned(),
    }
}

fn relay(relay: &RelaySettings) -> String {
    format!(
        "{}lease {}, poll interval {}, shutdown grace {}, figures every {}, alerts every {}",
        relay.name.as_ref().map(|name| format!("{name}: ")).unwrap_or_default(),
        show(relay.lease),
        show(relay.poll),
        show(relay.grace),
        show(relay.figures),
        show(relay.alerts)
    )
}

fn sink(sink: &Sink) -> String {
    match sink {
        Sink::Kafka(kafka) => format!(
            "kafka at {}, topic {}{}, {}, send timeout {}{}{}{}",
            kafka.brokers,
            kafka.topic,
            kafka.topics.iter().map(|(kind, topic)| format!(", {kind} to {topic}")).collect::<String>(),
            kafka.format,
            show(kafka.timeout),
            named(&kafka.properties),
            if kafka.tls || kafka.authority.is_some() { ", tls" } else { "" },
            kafka.login.as_ref().map(|(how, user, _)| format!(", {how} as {user}")).unwrap_or_default()
        ),
        Sink::Http(http) => format!(
            "http to {}, {}{}{}{}",
            endpoint(&http.url),
            http.format,
            if http.format == Format::Batched { format!(" (up to {})", http.batch) } else { String::new() },
            if http.secret.is_some() { ", signed" } else { "" },
            if http.token.is_some() { ", with a token" } else { "" }
        ),
        Sink::Stdout(_) => "stdout, one JSON object per line".to_owned(),
    }
}

fn subscription(out: &mut String, reader: &SubscriptionSection) -> std::fmt::Result {
    writeln!(
        out,
        "subscription   {} -> {}: streams {}, types {}, order {}, {} lane{}, concurrency {}, timeout {}, replay {}",
        reader.name,
        reader.sink,
        reader.streams.join(" "),
        reader.types.join(" "),
        reader.order,
        reader.lanes,
        if reader.lanes == 1 { "" } else { "s" },
        reader.concurrency,
        show(reader.timeout),
        if reader.replay { "allowed" } else { "forbidden" }
    )?;
    let start = match reader.start {
        Start::Beginning => "the beginning".to_owned(),
        Start::Now => "now on".to_owned(),
        Start::At(time) => time.to_string(),
    };
    let on_dead = match reader.on_dead {
        OnDead::Skip => "dead events are skipped",
        OnDead::Hold => "dead events block their key",
    };
    let outages = match reader.while_unavailable {
        WhileUnavailable::Wait => "outages do not count toward max_age",
        WhileUnavailable::Expire => "outages count toward max_age",
    };
    writeln!(
        out,
        "               from {start}, {}retries {}, {on_dead}, {outages}, longest pause {}",
        reader.batch.map(|batch| format!("batches of {batch}, ")).unwrap_or_default(),
        reader.retry,
        show(reader.longest_pause)
    )
}

fn retention(out: &mut String, retention: &Retention) -> std::fmt::Result {
    let target = match (&retention.archiving.target, retention.archive) {
        (Some(target), _) => format!("to {}", target.name()),
        (None, true) => "to the archive".to_owned(),
        (None, false) => "deleted".to_owned(),
    };
    writeln!(
        out,
        "retention      daily at {:02}:{:02} {}: settled events after {} {target}, inbox marks after {}; batches of {}, pause {}, share {}",
        retention.at / 60,
        retention.at % 60,
        retention.zone.iana_name().unwrap_or(ZONE),
        show(retention.delivered),
        show(retention.inbox),
        retention.pacing.batch,
        show(retention.pacing.pause),
        retention.pacing.share
    )?;
    if let Some(archived) = retention.archived {
        writeln!(out, "               archive months dropped after {}", show(archived))?;
    }
    if retention.archiving.by_month {
        writeln!(out, "               archive partitioned by month")?;
    }
    if !retention.archiving.mask.is_empty() {
        writeln!(out, "               masked fields: {}", retention.archiving.mask)?;
    }
    Ok(())
}

fn alert(alert: &Alert) -> String {
    let when = alert.when.to_string();
    format!(
        "{}{when} for {} -> {}{}",
        if alert.name == when { String::new() } else { format!("{}: ", alert.name) },
        alert.of,
        alert.to.join(", "),
        alert.repeat.map(|repeat| format!(", repeated every {}", show(repeat))).unwrap_or_default()
    )
}
