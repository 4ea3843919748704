//! Alerts: people are told when something is wrong, by one of all relays.

use std::time::Duration;

use postrider::asked_to_end;
use serde_json::{Value, json};
use tokio::sync::watch as channel;
use tokio::task::JoinHandle;

use crate::config::alert::When;
use crate::config::general::SCHEMA;
use crate::config::{Config, Problem, Store};
use crate::database::{self};
use crate::output::{self, Column, Table};
use crate::{Failure, logging};

mod dead_event;
mod message;
mod monitor;
mod next;
mod note;
mod notify;
mod open;
mod reading;

use message::{Message, shown};
pub(crate) use monitor::AlertMonitor;
use notify::Notifier;
use reading::{Reading, readings};

/// How long a watch that was asked to end may take.
const GRACE: Duration = Duration::from_secs(3);

/// `postrider alerts check`: how each alert stands now; whether none fires.
pub(crate) async fn check(config: &Config, as_json: bool) -> Result<bool, Failure> {
    Notifier::make(&config.notify, &source(&config.store))?;
    some(config)?;
    let log = database::open(&config.store).await?;
    let readings = readings(&log, &config.alerts, postrider::OffsetDateTime::now_utc()).await?;
    if as_json {
        output::json(&readings.iter().map(as_value).collect::<Vec<_>>())?;
    } else {
        let mut table = Table::new([
            Column::text("alert"),
            Column::text("subscription"),
            Column::number("figure"),
            Column::text("condition"),
            Column::whole("state"),
            Column::text("to").spare(),
        ]);
        for reading in &readings {
            table.row([
                reading.alert.name.clone(),
                reading.subject.clone().unwrap_or_else(|| "(all)".to_owned()),
                shown(reading.value),
                reading.alert.when.to_string(),
                state(reading).to_owned(),
                reading.alert.to.join(", "),
            ]);
        }
        table.show()?;
    }
    Ok(!readings.iter().any(|reading| reading.fires))
}

fn state(reading: &Reading<'_>) -> &'static str {
    match (&reading.value, &reading.alert.when) {
        (None, _) => "no such subscription",
        (Some(_), When::EventDies) => "per event",
        (Some(_), When::Figure(..)) if reading.fires => "firing",
        (Some(_), When::Figure(..)) => "fine",
    }
}

fn as_value(reading: &Reading<'_>) -> Value {
    let limit = match &reading.alert.when {
        When::Figure(_, _, limit) => Some(*limit),
        When::EventDies => None,
    };
    json!({
        "alert": reading.alert.name,
        "subscription": reading.subject,
        "condition": reading.alert.when.to_string(),
        "value": reading.value,
        "limit": limit,
        "firing": reading.fires,
        "to": reading.alert.to,
    })
}

/// `postrider alerts run`: looks after alerts until the process is asked to end.
pub(crate) async fn run(config: &Config) -> Result<bool, Failure> {
    some(config)?;
    let Some(watch) = AlertMonitor::of(config)? else { return Ok(true) };
    logging::start(&config.log)?;
    if let Err(error) = database::open(&config.store).await {
        let away = error
            .downcast_ref::<postrider::Error>()
            .is_some_and(|error| matches!(error.kind(), postrider::ErrorKind::Unreachable));
        // A server may come back; a file that is not there is not going to.
        if config.store.is_file() || !away {
            return Err(error);
        }
    }
    tracing::info!(alerts = config.alerts.len(), "watching alerts");
    let (end, ended_by) = channel::channel(false);
    let watching = tokio::spawn(watch.run(ended_by));
    asked_to_end().await;
    end.send_replace(true);
    ended(watching).await;
    tracing::info!("stopped");
    Ok(true)
}

/// Waits until a watch that was asked to end has done so.
pub(crate) async fn ended(mut watching: JoinHandle<()>) {
    if tokio::time::timeout(GRACE, &mut watching).await.is_err() {
        watching.abort();
    }
}

/// `postrider alerts test`: says something to everybody, or to one; whether all could be told.
pub(crate) async fn test(config: &Config, name: Option<&str>, as_json: bool) -> Result<bool, Failure> {
    let notifier = Notifier::make(&config.notify, &source(&config.store))?;
    let names: Vec<&str> = notifier.names().filter(|each| name.is_none_or(|name| name == *each)).collect();
    if names.is_empty() {
        let what = match name {
            Some(name) => format!("there is no [notify.{name}] in the settings"),
            None => "there is no [notify.NAME] in the settings, so alerts go to the log only".to_owned(),
        };
        return Err(Problem::new(what).into());
    }
    let mut answers = Vec::new();
    for name in names {
        let failure =
            notifier.send(name, &Message::test(notifier.source())).await.err().map(|error| error.what);
        match &failure {
            _ if as_json => {}
            None => output::line(format!("{name}: sent"))?,
            Some(what) => output::line(format!("{name}: not sent: {what}"))?,
        }
        answers.push(json!({ "name": name, "told": failure.is_none(), "error": failure }));
    }
    if as_json {
        output::json(&answers)?;
    }
    Ok(answers.iter().all(|answer| answer["told"] == true))
}

fn some(config: &Config) -> Result<(), Problem> {
    if config.alerts.is_empty() {
        let what = "no [[alert]] is configured; add one, for example with when = \"undelivered > 1000\"";
        return Err(Problem::new(what));
    }
    Ok(())
}

/// What the database is called in messages: its address without a login and without options.
fn source(store: &Store) -> String {
    let Some(url) = &store.url else { return "a database".to_owned() };
    if store.is_file() {
        let path = url.split('?').next().unwrap_or(url);
        return path.trim_start_matches("sqlite:").trim_start_matches("//").to_owned();
    }
    let Ok(url) = reqwest::Url::parse(url) else { return "a database".to_owned() };
    let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
    let schema = if store.schema == SCHEMA { String::new() } else { format!(" ({})", store.schema) };
    format!("{}{port}{}{schema}", url.host_str().unwrap_or_default(), url.path())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_is_named_without_what_is_secret() {
        for (url, schema, name) in [
            (
                "postgres://u:hush@db.example:5433/shop?sslpassword=hush@x",
                "postrider",
                "db.example:5433/shop",
            ),
            ("postgres://u:hu@sh@db/shop", "other", "db/shop (other)"),
            ("postgresql:///shop?host=/run", "postrider", "/shop"),
            ("sqlite://var/shop.db?mode=rw", "postrider", "var/shop.db"),
            ("sqlite:shop.db", "postrider", "shop.db"),
        ] {
            let store = Store {
                url: Some(url.to_owned()),
                schema: schema.to_owned(),
                connections: 2,
                ..Store::default()
            };
            assert_eq!(source(&store), name);
        }
    }
}
