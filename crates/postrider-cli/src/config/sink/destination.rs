//! What a sink is compared by: two relays with one subscription should have the same. No secret is in it.

use std::collections::{BTreeMap, BTreeSet};

use super::super::{endpoint, without_password};
use super::{AsCloudEvents, HttpSink, KafkaSink, Sink};

impl Sink {
    /// Where it goes and how, for comparing two relays: an endpoint's path may be a secret, and is only told from another by a number, and
    /// so are the settings that would make the text too long.
    pub(crate) fn destination(&self) -> String {
        let (mut text, cloud_events, envelope) = match self {
            Self::Kafka(kafka) => {
                let mut text = format!("kafka {} {} {}", kafka.brokers, kafka.topic, kafka.format);
                for event_type in &kafka.tombstones {
                    text.push_str(" -");
                    text.push_str(event_type);
                }
                (text, &kafka.cloud_events, &kafka.envelope)
            }
            Self::Http(http) => {
                let whole = without_password(&http.url);
                let text = format!("{} ({:08x}) {}", endpoint(&http.url), fingerprint(&whole), http.format);
                (text, &http.cloud_events, &http.envelope)
            }
            Self::Stdout(cloud_events) => ("stdout".to_owned(), cloud_events, &None),
        };
        for attribute in &cloud_events.attributes {
            text.push_str(" +");
            text.push_str(attribute.as_str());
        }
        if let Some(template) = &cloud_events.dataschema {
            text.push_str(" dataschema ");
            text.push_str(template);
        }
        if let Some(envelope) = envelope {
            text.push_str(&format!(" ({:08x})", fingerprint(&format!("{:?}", envelope.envelope))));
        }
        let rest = self.rest();
        if !rest.is_empty() {
            text.push_str(&format!(" ({:08x})", fingerprint(&rest)));
        }
        text
    }

    /// The settings that have no words in its destination. Of secrets, and of properties, which may be some, it says only that they are
    /// set; files may be elsewhere on each machine.
    fn rest(&self) -> String {
        let cloud_events = match self {
            Self::Kafka(kafka) => &kafka.cloud_events,
            Self::Http(http) => &http.cloud_events,
            Self::Stdout(cloud_events) => cloud_events,
        };
        let AsCloudEvents { source, kind, attributes: _, dataschema: _ } = cloud_events;
        let mut rest: Vec<String> = Vec::new();
        rest.extend(source.as_ref().map(|source| format!("source {source:?}")));
        rest.extend(kind.as_ref().map(|kind| format!("event_type {kind:?}")));
        match self {
            Self::Kafka(kafka) => {
                let KafkaSink { topics, timeout, tls, authority, login, properties, .. } = &**kafka;
                let login = login.as_ref().map(|(mechanism, user, _)| (mechanism, user));
                let topics: BTreeMap<_, _> = topics.iter().map(|(kind, topic)| (kind, topic)).collect();
                let properties: BTreeSet<_> = properties.iter().map(|(name, _)| name).collect();
                rest.push(format!("topics {topics:?} {timeout:?} tls {tls} {}", authority.is_some()));
                rest.push(format!("login {login:?} properties {properties:?}"));
            }
            Self::Http(http) => {
                let HttpSink { batch, secret, token, authority, statuses, .. } = &**http;
                let HttpSink { longest_retry_after, keep_answers, .. } = &**http;
                let set = (secret.is_some(), token.is_some(), authority.is_some());
                let statuses: BTreeMap<_, _> = statuses.iter().copied().collect();
                rest.push(format!("batch {batch} set {set:?} statuses {statuses:?}"));
                rest.push(format!("longest_retry_after {longest_retry_after:?} keep_answers {keep_answers}"));
            }
            Self::Stdout(_) => {}
        }
        rest.join(" ")
    }
}

/// A number that another text hardly has, the same in every version of the program.
fn fingerprint(text: &str) -> u32 {
    text.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::config::{Secrets, Section};

    fn destination(text: &str) -> String {
        let secrets = Secrets::new(BTreeMap::new());
        let text = format!("[sink.s]\n{text}");
        let table = text.parse().unwrap_or_else(|error| panic!("{error}\n{text}"));
        let mut root = Section::root(table, &secrets);
        let (_, section) = root.named("sink").expect("sinks").pop().expect("a sink");
        let sink = Sink::read(section, Duration::from_secs(60));
        sink.unwrap_or_else(|problem| panic!("{problem}\n{text}")).destination()
    }

    #[test]
    fn sinks_with_other_settings_are_told_apart_and_secrets_are_not() {
        let kafka = "type = \"kafka\"\nbrokers = \"h:9092\"\n";
        let http = "type = \"http\"\nurl = \"https://h/\"\n";
        let stdout = "type = \"stdout\"\n";
        let login = "user = \"ada\"\npassword = \"planted-password\"\n";
        for (sink, other) in [
            (kafka, "topics = { OrderPaid = \"paid\" }"),
            (kafka, "event_type = \"org.shop.{event_type}\""),
            (kafka, "source = \"/shop\""),
            (kafka, "send_timeout = \"3s\""),
            (kafka, "tls = true"),
            (kafka, login),
            (kafka, "properties = { \"linger.ms\" = \"20\" }"),
            (http, "statuses = { 404 = \"event\" }"),
            (http, "longest_retry_after = \"5s\""),
            (http, "keep_answers = false"),
            (http, "token = \"planted-token\""),
            (http, "batch = 7"),
            (stdout, "event_type = \"org.shop.{event_type}\""),
        ] {
            let (plain, changed) = (destination(sink), destination(&format!("{sink}{other}\n")));
            assert_ne!(plain, changed, "{other}");
            assert_eq!(plain, destination(sink));
            assert!(!changed.contains("planted"), "{changed}");
        }
        let secret = |password: &str| destination(&format!("{kafka}{}", login.replace("planted", password)));
        assert_eq!(secret("one"), secret("another"), "a secret leaves no trace");
        let statuses = |list: &str| destination(&format!("{http}statuses = {{ {list} }}\n"));
        assert_eq!(
            statuses("404 = \"event\", 409 = \"retry\""),
            statuses("409 = \"retry\", 404 = \"event\"")
        );
        assert_eq!(destination(stdout), "stdout");
    }
}
