//! What was understood, as JSON: the tables of the file with all their settings, those that nobody set included. Secrets are hidden.

use postrider::{OnDead, Retry, RetrySettings, Start, WhileUnavailable};
use serde_json::{Map, Value, json};

use crate::config::retention::{EXISTING, ZONE};
use crate::config::sink::{AsCloudEvents, HttpSink, KafkaSink};
use crate::config::{
    Alert, Catalog, Config, Notify, Retention, Sink, SubscriptionSection, duration, endpoint,
    without_password,
};
use crate::output::Time;

/// What stands for a secret that is set.
const HIDDEN: &str = "***";

/// The settings, as they are named in the file.
pub(super) fn json(config: &Config) -> Value {
    let store = &config.store;
    let relay = &config.relay;
    json!({
        "file": config.file.as_ref().map(|file| file.path.display().to_string()),
        "store": {
            "url": store.url.as_deref().map(without_password),
            "schema": store.schema,
            "connections": store.connections,
            "bell": store.bell,
            "listen_url": store.listen_url.as_deref().map(without_password),
            "pooler": format!("{:?}", store.pooler).to_lowercase(),
            "max_payload": store.max_payload,
        },
        "relay": {
            "name": relay.name,
            "lease": duration::show(relay.lease),
            "poll_interval": duration::show(relay.poll),
            "shutdown_grace": duration::show(relay.grace),
            "figures_every": duration::show(relay.figures),
            "alerts_every": duration::show(relay.alerts),
        },
        "http": {
            "listen": config.listen.map_or_else(|| "off".to_owned(), |listen| listen.address.to_string()),
        },
        "log": { "format": if config.log.json { "json" } else { "human" }, "level": config.log.level },
        "subscription": config.readers.iter().map(subscription).collect::<Vec<_>>(),
        "sink": config.sinks.iter().map(|(name, sink)| (name.clone(), of_sink(sink))).collect::<Map<_, _>>(),
        "catalog": catalog(&config.catalog),
        "retention": config.retention.as_ref().map(retention),
        "alert": config.alerts.iter().map(alert).collect::<Vec<_>>(),
        "notify": config.notify.iter().map(|(name, each)| (name.clone(), notify(each))).collect::<Map<_, _>>(),
    })
}

fn subscription(reader: &SubscriptionSection) -> Value {
    json!({
        "name": reader.name,
        "sink": reader.sink,
        "streams": reader.streams,
        "types": reader.types,
        "order": reader.order.to_string(),
        "lanes": reader.lanes,
        "batch": reader.batch,
        "start": match reader.start {
            Start::Beginning => json!("beginning"),
            Start::Now => json!("now"),
            Start::At(time) => json!(Time(time)),
        },
        "retry": retry(&reader.retry),
        "on_dead": match reader.on_dead {
            OnDead::Skip => "skip",
            OnDead::Hold => "hold",
        },
        "while_unavailable": match reader.while_unavailable {
            WhileUnavailable::Wait => "wait",
            WhileUnavailable::Expire => "expire",
        },
        "concurrency": reader.concurrency,
        "timeout": duration::show(reader.timeout),
        "patience": duration::show(reader.patience),
        "longest_pause": duration::show(reader.longest_pause),
        "replay": if reader.replay { "allow" } else { "forbid" },
    })
}

fn retry(retry: &Retry) -> Value {
    let settings = RetrySettings::from(retry);
    let schedule = settings.schedule.map(|pauses| pauses.into_iter().map(duration::show).collect::<Vec<_>>());
    json!({
        "every": settings.every.map(duration::show),
        "schedule": schedule,
        "base": settings.base.map(duration::show),
        "factor": settings.factor,
        "max": settings.max.map(duration::show),
        "jitter": settings.jitter,
        "max_attempts": settings.max_attempts,
        "max_age": settings.max_age.map(duration::show),
    })
}

fn of_sink(sink: &Sink) -> Value {
    match sink {
        Sink::Kafka(sink) => kafka(sink),
        Sink::Http(sink) => http(sink),
        Sink::Stdout(cloud_events) => json!({
            "type": "stdout",
            "source": cloud_events.source,
            "event_type": cloud_events.kind,
            "attributes": attributes(cloud_events),
            "dataschema": cloud_events.dataschema,
        }),
    }
}

fn attributes(cloud_events: &AsCloudEvents) -> Vec<&'static str> {
    cloud_events.attributes.iter().map(|attribute| attribute.as_str()).collect()
}

fn kafka(sink: &KafkaSink) -> Value {
    let (login, user) = match &sink.login {
        Some((mechanism, user, _)) => (Some(mechanism.to_lowercase()), Some(user)),
        None => (None, None),
    };
    json!({
        "type": "kafka",
        "brokers": sink.brokers,
        "topic": sink.topic,
        "topics": sink.topics.iter().cloned().collect::<std::collections::BTreeMap<_, _>>(),
        "tombstones": sink.tombstones,
        "format": sink.format.to_string(),
        "envelope": sink.envelope.as_ref().map(|table| &table.fields),
        "send_timeout": duration::show(sink.timeout),
        "tls": sink.tls || sink.authority.is_some(),
        "authority": sink.authority,
        "login": login,
        "user": user,
        "password": sink.login.as_ref().map(|_| HIDDEN),
        // Their values may be secrets.
        "properties": sink.properties.iter().map(|(name, _)| (name.clone(), json!(HIDDEN))).collect::<Map<_, _>>(),
        "source": sink.cloud_events.source,
        "event_type": sink.cloud_events.kind,
        "attributes": attributes(&sink.cloud_events),
        "dataschema": sink.cloud_events.dataschema,
    })
}

fn http(sink: &HttpSink) -> Value {
    let statuses = sink.statuses.iter();
    let statuses =
        statuses.map(|(status, blame)| (status.to_string(), json!(format!("{blame:?}").to_lowercase())));
    json!({
        "type": "http",
        "url": endpoint(&sink.url),
        "format": sink.format.to_string(),
        "envelope": sink.envelope.as_ref().map(|table| &table.fields),
        "batch": sink.batch,
        "secret": sink.secret.as_ref().map(|_| HIDDEN),
        "token": sink.token.as_ref().map(|_| HIDDEN),
        "authority": sink.authority,
        "statuses": statuses.collect::<Map<_, _>>(),
        "longest_retry_after": duration::show(sink.longest_retry_after),
        "keep_answers": sink.keep_answers,
        "source": sink.cloud_events.source,
        "event_type": sink.cloud_events.kind,
        "attributes": attributes(&sink.cloud_events),
        "dataschema": sink.cloud_events.dataschema,
    })
}

fn catalog(catalog: &Catalog) -> Value {
    let names =
        catalog.names.iter().map(|(stream, convention)| (stream.clone(), convention.to_string().into()));
    json!({ "file": catalog.file, "lock": catalog.lock, "names": Value::Object(names.collect()) })
}

fn retention(retention: &Retention) -> Value {
    let archiving = &retention.archiving;
    let target = archiving.target.as_ref().map(|target| {
        let columns =
            target.columns().iter().map(|(column, field)| (column.clone(), json!(field.to_string())));
        let existing = EXISTING[usize::from(target.existing_by().is_some())].0;
        json!({ "table": target.name(), "columns": columns.collect::<Map<_, _>>(), "existing": existing })
    });
    json!({
        "delivered": duration::show(retention.delivered),
        "archive": retention.archive,
        "archived": retention.archived.map(duration::show),
        "inbox": duration::show(retention.inbox),
        "at": format!("{:02}:{:02}", retention.at / 60, retention.at % 60),
        "zone": retention.zone.iana_name().unwrap_or(ZONE),
        "batch": retention.pacing.batch,
        "pause": duration::show(retention.pacing.pause),
        "share": retention.pacing.share,
        "mask": archiving.mask.to_string().split(", ").filter(|path| !path.is_empty()).collect::<Vec<_>>(),
        "by_month": archiving.by_month,
        "target": target,
    })
}

fn alert(alert: &Alert) -> Value {
    use crate::config::alert::Of;
    let (subscription, of) = match &alert.of {
        Of::One(name) => (Some(name), None),
        Of::Each => (None, Some("each")),
        Of::All => (None, Some("all")),
    };
    json!({
        "when": alert.when.to_string(),
        "name": alert.name,
        "to": alert.to,
        "subscription": subscription,
        "of": of,
        "repeat": alert.repeat.map(duration::show),
    })
}

fn notify(notify: &Notify) -> Value {
    match notify {
        Notify::Slack(url) => json!({ "type": "slack", "url": endpoint(url) }),
        Notify::PagerDuty(url, _) => json!({ "type": "pagerduty", "url": endpoint(url), "key": HIDDEN }),
        Notify::Webhook(url, token) => {
            json!({ "type": "webhook", "url": endpoint(url), "token": token.as_ref().map(|_| HIDDEN) })
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::config::Origins;
    use crate::config::described::{TABLES, every_table};

    /// A setting that is added is added here, too.
    #[test]
    fn every_setting_that_is_described_is_shown() {
        let shown = json(&every_table());
        let list = |name: &str| shown[name][0].clone();
        for table in TABLES {
            let there = match (table.place, table.kind) {
                ("subscription" | "alert", _) => list(table.place),
                ("subscription.retry", _) => shown["subscription"][0]["retry"].clone(),
                ("sink.*", Some(kind)) => shown["sink"][kind].clone(),
                ("notify.*", Some(kind)) => shown["notify"][kind].clone(),
                ("retention.target", _) => shown["retention"]["target"].clone(),
                (place, _) => shown[place].clone(),
            };
            let keys: BTreeSet<&str> =
                there.as_object().map(|all| all.keys().map(String::as_str).collect()).unwrap_or_default();
            let settings = table.settings.iter().map(|setting| setting.name);
            // A preset stands for its conditions, each with those who are told of it.
            let settings: BTreeSet<&str> =
                settings.filter(|name| !["preset", "to_when"].contains(name)).collect();
            assert_eq!(keys, settings, "{}", table.head);
        }
    }

    #[test]
    fn a_retry_is_shown_as_it_is_written_in_the_file() {
        let understood = |lines: &str| {
            let text =
                format!("[sink.o]\ntype = \"stdout\"\n[[subscription]]\nname = \"s\"\nsink = \"o\"\n{lines}");
            let folder = postrider_testkit::Folder::new();
            let origins = Origins { named: Some(folder.file("p.toml", &text)), flags: Vec::new() };
            let config = Config::load(&origins, std::collections::BTreeMap::new());
            let mut shown = json(&config.unwrap_or_else(|problem| panic!("{problem}\n{text}")));
            let mut retry = shown["subscription"][0]["retry"].take();
            retry.as_object_mut().expect("an object").retain(|_, value| !value.is_null());
            retry
        };
        let usual = json!({ "base": "1s", "factor": 2.0, "max": "5m", "jitter": 0.2, "max_attempts": 10 });
        assert_eq!(understood(""), usual);
        assert_eq!(
            understood("retry = { every = \"90s\", max_age = \"1d\" }\n"),
            json!({ "every": "1m30s", "max_age": "1d" })
        );
        assert_eq!(
            understood("retry = { schedule = [\"1s\", \"1h\"], max_attempts = 3 }\n"),
            json!({ "schedule": ["1s", "1h"], "max_attempts": 3 })
        );
        assert_eq!(
            understood("retry = { base = \"2s\", factor = 3, max = \"1m\", jitter = 0 }\n"),
            json!({ "base": "2s", "factor": 3.0, "max": "1m", "jitter": 0.0, "max_attempts": 10 })
        );
    }
}
