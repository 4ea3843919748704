//! Sends messages: to the log, Slack, PagerDuty or any endpoint. No URL, key or token is ever in an error or a log line.

use std::collections::BTreeMap;
use std::time::Duration;

use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use reqwest::{Client, Url};
use serde_json::Value;

use super::message::{Message, State};
use crate::config::{Notify, Problem};

mod pagerduty;
mod slack;
mod webhook;

/// How long somebody may take to answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// Sends a message to a target of the settings.
pub(crate) struct Notifier {
    client: Client,
    targets: BTreeMap<String, Target>,
    source: String,
}

struct Target {
    notify: Notify,
    url: Url,
    token: Option<HeaderValue>,
}

/// Why a message could not be sent.
#[derive(Debug)]
pub(crate) struct NotifyError {
    /// In a sentence.
    pub(crate) what: String,
    /// Whether it may be worth another try at once.
    pub(crate) passing: bool,
}

impl Notifier {
    /// Those of the settings; `source` is what the database is called.
    pub(crate) fn make(notify: &BTreeMap<String, Notify>, source: &str) -> Result<Self, Problem> {
        let targets = notify.iter().map(|(name, notify)| Ok((name.clone(), Target::make(name, notify)?)));
        let targets = targets.collect::<Result<_, Problem>>()?;
        let client = postrider::http::client().map_err(|error| Problem::new(error.to_string()))?;
        Ok(Self { client, targets, source: source.to_owned() })
    }

    /// Whether there is somebody of that name.
    pub(crate) fn has(&self, target: &str) -> bool {
        target == "log" || self.targets.contains_key(target)
    }

    /// Whether somebody keeps an incident open until it is resolved.
    pub(crate) fn keeps_incidents(&self, target: &str) -> bool {
        self.targets.get(target).is_some_and(|target| matches!(target.notify, Notify::PagerDuty(..)))
    }

    /// Their names, but for the log.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.targets.keys().map(String::as_str)
    }

    /// What the database is called.
    pub(crate) fn source(&self) -> &str {
        &self.source
    }

    /// Sends it once.
    pub(crate) async fn send(&self, target: &str, message: &Message) -> Result<(), NotifyError> {
        let Some(target) = self.targets.get(target) else {
            log(message);
            return Ok(());
        };
        for body in target.bodies(message, &self.source) {
            self.post(target, &body).await?;
        }
        Ok(())
    }

    async fn post(&self, target: &Target, body: &Value) -> Result<(), NotifyError> {
        let mut request = self.client.post(target.url.clone()).timeout(PATIENCE);
        request = request.header(CONTENT_TYPE, "application/json").body(body.to_string());
        if let Some(token) = &target.token {
            request = request.header(AUTHORIZATION, token.clone());
        }
        let answer = match request.send().await {
            Ok(answer) => answer.status(),
            Err(error) if error.is_timeout() => {
                let what = format!("it did not answer within {} s", PATIENCE.as_secs());
                return Err(NotifyError { what, passing: true });
            }
            Err(error) => {
                return Err(NotifyError {
                    what: postrider::http::reason(&error.without_url()),
                    passing: true,
                });
            }
        };
        if answer.is_success() {
            return Ok(());
        }
        let passing = answer.is_server_error() || matches!(answer.as_u16(), 408 | 425 | 429);
        Err(NotifyError { what: format!("it answered {}", answer.as_u16()), passing })
    }
}

impl Target {
    fn make(name: &str, notify: &Notify) -> Result<Self, Problem> {
        let (url, token) = match notify {
            Notify::Slack(url) | Notify::PagerDuty(url, _) => (url, None),
            Notify::Webhook(url, token) => (url, token.as_ref()),
        };
        let url = Url::parse(url).ok().filter(Url::has_host).ok_or_else(|| {
            let what = "it must be a URL such as https://host/path (the value is not shown)";
            Problem::of(format!("notify.{name}.url"), what)
        })?;
        let token = token.map(|token| HeaderValue::from_str(&format!("Bearer {token}"))).transpose();
        let mut token = token.map_err(|_| {
            let what = "it contains characters that are not allowed in a header (the value is not shown)";
            Problem::of(format!("notify.{name}.token"), what)
        })?;
        if let Some(token) = &mut token {
            token.set_sensitive(true);
        }
        Ok(Self { notify: notify.clone(), url, token })
    }

    /// What is posted, in order.
    fn bodies(&self, message: &Message, source: &str) -> Vec<Value> {
        match &self.notify {
            Notify::Slack(_) => vec![slack::body(message, source)],
            Notify::PagerDuty(_, key) => pagerduty::bodies(message, key, source),
            Notify::Webhook(..) => vec![webhook::body(message, source)],
        }
    }
}

fn log(message: &Message) {
    let Message { alert, text, incident, .. } = message;
    let subscription = message.subscription.as_deref().unwrap_or("*");
    match message.state {
        State::Firing => tracing::warn!(alert, subscription, incident, "{text}"),
        State::Resolved | State::Test => tracing::info!(alert, subscription, incident, "{text}"),
    }
}
