//! Who is told: `[notify.NAME]`.

use std::fmt;

use super::{Problem, Section};

/// PagerDuty's own address, unless another is set.
pub(crate) const PAGERDUTY_URL: &str = "https://events.pagerduty.com/v2/enqueue";

/// Who is told.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Notify {
    /// A Slack channel, by its incoming webhook.
    Slack(String),
    /// A PagerDuty service: the address of its events API, and its key.
    PagerDuty(String, String),
    /// Any endpoint that takes JSON, and its token.
    Webhook(String, Option<String>),
}

impl fmt::Debug for Notify {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind())
    }
}

#[derive(Clone, Copy)]
enum Kind {
    Slack,
    PagerDuty,
    Webhook,
}

impl Notify {
    /// Reads one.
    pub(crate) fn read(mut section: Section<'_>) -> Result<Self, Problem> {
        let kinds = [("slack", Kind::Slack), ("pagerduty", Kind::PagerDuty), ("webhook", Kind::Webhook)];
        let Some(kind) = section.word("type", &kinds)? else {
            return Err(
                section.problem("type", "it is required; it must be \"slack\", \"pagerduty\" or \"webhook\"")
            );
        };
        let notify = match kind {
            Kind::Slack => Self::Slack(section.need("url", "env:SLACK_URL")?),
            Kind::PagerDuty => {
                let url = section.text("url")?.unwrap_or_else(|| PAGERDUTY_URL.to_owned());
                Self::PagerDuty(url, section.need("key", "env:PAGERDUTY_KEY")?)
            }
            Kind::Webhook => {
                Self::Webhook(section.need("url", "https://example.org/alerts")?, section.text("token")?)
            }
        };
        let url = match &notify {
            Self::Slack(url) | Self::PagerDuty(url, _) | Self::Webhook(url, _) => url,
        };
        if !url.starts_with("http://") && !url.starts_with("https://") {
            return Err(section.problem("url", "it must begin with https:// or http://"));
        }
        section.finish()?;
        Ok(notify)
    }

    /// The word for it.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Slack(_) => "slack",
            Self::PagerDuty(..) => "pagerduty",
            Self::Webhook(..) => "webhook",
        }
    }
}
