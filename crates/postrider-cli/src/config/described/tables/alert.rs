//! Alerts, and who is told.

use super::{BY_NAME, LIST, TEXT, TIME, other, usual};
use crate::config::described::{Described, Usual};
use crate::config::{alert, notify};

pub(super) const ALERT: Described = Described {
    place: "alert",
    kind: None,
    head: "[[alert]]",
    what: "A condition and whom to notify: when it starts to fire, again after `repeat`, and when it is over. Only one of all relays notifies. Repeat the table for each alert.",
    environment: false,
    settings: &[
        other(
            "when",
            TEXT,
            "Condition: `>` or `>=` on `undelivered`, `undelivered_over(5m)`, `oldest_seconds`, `retrying`, `dead`, `mean_attempts`, `unavailable_seconds`; or `event dies`.",
        ),
        other("preset", "`saas`, `ledger` or `transfers`", "A set of conditions, instead of `when`."),
        other("name", TEXT, "Name of the alert. Default: its condition. Must be unique per subscription."),
        usual("to", LIST, Usual::List(alert::TO), "Whom to notify: NAMEs of `[notify.NAME]`, or `log`."),
        other(
            "to_when",
            BY_NAME,
            "Whom to notify of single conditions of the preset, in place of `to`: `{ \"event dies\" = [\"slack\"] }`.",
        ),
        other("subscription", TEXT, "Evaluate it for this subscription only."),
        usual(
            "of",
            "`each` or `all`",
            Usual::Text(alert::OF[0].0),
            "Evaluate it for each subscription, or for all of them together.",
        ),
        other("repeat", TIME, "Notify again after this time while it fires. Default: never."),
    ],
};

pub(super) const SLACK: Described = Described {
    place: "notify.*",
    kind: Some("slack"),
    head: "[notify.NAME], type = \"slack\"",
    what: "A Slack channel.",
    environment: false,
    settings: &[
        other("type", TEXT, "`slack`."),
        other("url", TEXT, "URL of the incoming webhook. Required."),
    ],
};

pub(super) const PAGERDUTY: Described = Described {
    place: "notify.*",
    kind: Some("pagerduty"),
    head: "[notify.NAME], type = \"pagerduty\"",
    what: "A PagerDuty service, through the Events API v2.",
    environment: false,
    settings: &[
        other("type", TEXT, "`pagerduty`."),
        usual("url", TEXT, Usual::Text(notify::PAGERDUTY_URL), "URL of the Events API."),
        other("key", TEXT, "Integration key. Required."),
    ],
};

pub(super) const WEBHOOK: Described = Described {
    place: "notify.*",
    kind: Some("webhook"),
    head: "[notify.NAME], type = \"webhook\"",
    what: "Any HTTP endpoint that accepts JSON.",
    environment: false,
    settings: &[
        other("type", TEXT, "`webhook`."),
        other("url", TEXT, "URL of the endpoint. Required."),
        other("token", TEXT, "Bearer token of each request."),
    ],
};
