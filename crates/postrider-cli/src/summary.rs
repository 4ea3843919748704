//! `postrider config check`: what was understood, with secrets hidden.

use std::fmt::Write as _;
use std::io::Write as _;

use crate::Failure;
use crate::config::{Config, Sink, duration, without_password};
use crate::sinks::Ready;

/// Shows the settings.
pub(crate) fn show(config: &Config) -> Result<bool, Failure> {
    for (name, sink) in &config.sinks {
        Ready::check(name, sink)?;
    }
    // Whoever closed the pipe has seen enough.
    let _ = std::io::stdout().write_all(text(config)?.as_bytes());
    Ok(true)
}

fn text(config: &Config) -> Result<String, std::fmt::Error> {
    let mut out = String::new();
    let store = &config.store;
    match &store.url {
        Some(url) if url.starts_with("sqlite:") => writeln!(out, "store          {url}")?,
        Some(url) if store.is_mysql() => {
            writeln!(out, "store          {} ({} connections)", without_password(url), store.connections)?;
        }
        Some(url) => writeln!(
            out,
            "store          {} (schema {}, {} connections, bell {})",
            without_password(url),
            store.schema,
            store.connections,
            if store.bell { "on" } else { "off" }
        )?,
        None => writeln!(out, "store          none yet: store.url, POSTRIDER_STORE_URL or --store")?,
    }
    let relay = &config.relay;
    let show = duration::show;
    writeln!(
        out,
        "relay          {}lease {}, poll every {}, {} to stop, figures every {}",
        relay.name.as_ref().map(|name| format!("{name}: ")).unwrap_or_default(),
        show(relay.lease),
        show(relay.poll),
        show(relay.grace),
        show(relay.figures)
    )?;
    let listen = config.listen.map_or_else(|| "off".to_owned(), |address| address.to_string());
    writeln!(out, "http           {listen}")?;
    writeln!(out, "log            {}, {}", if config.log.json { "json" } else { "human" }, config.log.level)?;
    for (name, sink) in &config.sinks {
        let what = match sink {
            Sink::Kafka(kafka) => format!(
                "kafka at {}, topic {}{}{}",
                kafka.brokers,
                kafka.topic,
                if kafka.tls || kafka.authority.is_some() { ", tls" } else { "" },
                kafka.login.as_ref().map(|(how, user, _)| format!(", {user} by {how}")).unwrap_or_default()
            ),
            Sink::Http(http) => format!(
                "http to {}{}{}",
                without_password(&http.url),
                if http.secret.is_some() { ", signed" } else { "" },
                if http.token.is_some() { ", with a token" } else { "" }
            ),
            Sink::Stdout(_) => "stdout, a JSON object a line".to_owned(),
        };
        writeln!(out, "sink           {name}: {what}")?;
    }
    for reader in &config.readers {
        writeln!(
            out,
            "subscription   {} -> {}: streams {}, types {}, order {}, {} lane{}, {} at once, {} each, replay {}",
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
    }
    if let Some(retention) = &config.retention {
        writeln!(
            out,
            "retention      daily at {:02}:{:02} UTC: delivered after {} {}, inbox after {}, {} at once, {} between",
            retention.at / 60,
            retention.at % 60,
            show(retention.delivered),
            if retention.archive { "to the archive" } else { "deleted" },
            show(retention.inbox),
            retention.batch,
            show(retention.pause)
        )?;
    }
    for alert in &config.alerts {
        let of = alert.subscription.as_ref().map(|name| format!(" of {name}")).unwrap_or_default();
        writeln!(out, "alert          {}{of} -> {}", alert.name, alert.to.join(", "))?;
    }
    for (name, notify) in &config.notify {
        writeln!(out, "notify         {name}: {}", notify.kind())?;
    }
    Ok(out)
}
