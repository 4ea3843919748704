//! The settings, table by table. Each default is the constant that is used where nothing is set.

mod alert;
mod catalog;
mod general;
mod retention;
mod sink;
mod subscription;

use super::{Described, Setting, Usual};

const TIME: &str = "duration";
const TEXT: &str = "text";
const FLAG: &str = "boolean";
const COUNT: &str = "number";
const LIST: &str = "list";
const BY_NAME: &str = "table";

/// A setting with a default.
const fn usual(name: &'static str, kind: &'static str, usual: Usual, what: &'static str) -> Setting {
    Setting { name, kind, usual: Some(usual), what }
}

/// A setting without a default that could be written.
const fn other(name: &'static str, kind: &'static str, what: &'static str) -> Setting {
    Setting { name, kind, usual: None, what }
}

/// Every table, in the order of the reference.
pub(crate) const TABLES: &[Described] = &[
    general::STORE,
    general::RELAY,
    general::HTTP,
    general::LOG,
    subscription::SUBSCRIPTION,
    subscription::RETRY,
    sink::KAFKA,
    sink::HTTP,
    sink::STDOUT,
    retention::RETENTION,
    retention::TARGET,
    alert::ALERT,
    alert::SLACK,
    alert::PAGERDUTY,
    alert::WEBHOOK,
    catalog::CATALOG,
];
