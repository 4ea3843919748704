//! What the binary is told: a TOML file, then the environment, then flags. Each wins over the one before.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;

use postrider::store::nearest;
use toml::{Table, Value};

pub(crate) mod address;
pub(crate) mod alert;
pub(crate) mod catalog;
pub(crate) mod described;
pub(crate) mod duration;
pub(crate) mod envelope;
pub(crate) mod general;
pub(crate) mod notify;
pub(crate) mod origin;
pub(crate) mod problem;
pub(crate) mod retention;
pub(crate) mod retry;
pub(crate) mod secret;
pub(crate) mod section;
pub(crate) mod sink;
pub(crate) mod subscription;

pub(crate) use alert::Alert;
pub(crate) use catalog::Catalog;
pub(crate) use general::{Listen, Log, RelaySettings, Store};
pub(crate) use notify::Notify;
pub(crate) use origin::{File, Origins};
pub(crate) use problem::Problem;
pub(crate) use retention::Retention;
pub(crate) use secret::{Secrets, endpoint, without_password};
pub(crate) use section::Section;
pub(crate) use sink::{Format, Sink};
pub(crate) use subscription::SubscriptionSection;

/// Everything that the binary is told.
#[derive(Debug)]
pub(crate) struct Config {
    /// The file that they are from, if there is one.
    pub(crate) file: Option<File>,
    /// `[store]`.
    pub(crate) store: Store,
    /// `[relay]`.
    pub(crate) relay: RelaySettings,
    /// `[http]`: where the endpoints listen; nowhere if it is `"off"`.
    pub(crate) listen: Option<Listen>,
    /// `[log]`.
    pub(crate) log: Log,
    /// `[[subscription]]`.
    pub(crate) readers: Vec<SubscriptionSection>,
    /// `[sink.NAME]`.
    pub(crate) sinks: BTreeMap<String, Sink>,
    /// `[catalog]`.
    pub(crate) catalog: Catalog,
    /// `[retention]`.
    pub(crate) retention: Option<Retention>,
    /// `[[alert]]`.
    pub(crate) alerts: Vec<Alert>,
    /// `[notify.NAME]`.
    pub(crate) notify: BTreeMap<String, Notify>,
}

/// Variables of that name which are no settings.
const OTHERS: [&str; 3] = ["POSTRIDER_CONFIG", "POSTRIDER_SOAK", "POSTRIDER_TEST_"];

impl Config {
    /// Reads the file, the environment and the flags.
    pub(crate) fn load(origins: &Origins, environment: BTreeMap<String, String>) -> Result<Self, Problem> {
        let file = origins.file(&environment);
        let mut table = file.as_ref().map(|file| read(&file.path)).transpose()?.unwrap_or_default();
        for (name, value) in &environment {
            if let Some((section, key)) = variable(name)? {
                set(&mut table, name, &[section, key], value)?;
            }
        }
        for (path, value) in &origins.flags {
            let parts: Vec<&str> = path.split('.').collect();
            set(&mut table, &Origins::flag(path), &parts, value)?;
        }
        let blamed =
            |problem: Problem| problem.of_file(file.as_ref()).blamed_on(origins, &environment, file.as_ref());
        let secrets = Secrets::new(environment.clone());
        let mut config = Self::understand(Section::root(table, &secrets)).map_err(blamed)?;
        config.file = file;
        Ok(config)
    }

    fn understand(mut root: Section<'_>) -> Result<Self, Problem> {
        let store = general::store(root.section("store")?)?;
        let relay = general::relay(root.section("relay")?)?;
        let listen = general::listen(root.section("http")?)?;
        let log = general::log(root.section("log")?)?;
        let mut sinks = BTreeMap::new();
        for (name, section) in root.named("sink")? {
            sinks.insert(name, Sink::read(section, relay.lease)?);
        }
        let mut readers = Vec::new();
        let mut names = HashSet::new();
        for section in root.each("subscription")? {
            let reader = SubscriptionSection::read(section, &sinks)?;
            if !names.insert(reader.name.clone()) {
                return Err(Problem::new(format!(
                    "two subscriptions are named {:?}; names must be unique",
                    reader.name
                )));
            }
            readers.push(reader);
        }
        let retention = root.section("retention")?.map(Retention::read).transpose()?;
        let mut notify = BTreeMap::new();
        for (name, section) in root.named("notify")? {
            notify.insert(name, Notify::read(section)?);
        }
        let mut alerts = Vec::new();
        for section in root.each("alert")? {
            let more = Alert::read(section, &notify, &names, &alerts)?;
            alerts.extend(more);
        }
        let catalog = Catalog::read(root.section("catalog")?)?;
        root.finish()?;
        Ok(Self { file: None, store, relay, listen, log, readers, sinks, catalog, retention, alerts, notify })
    }
}

fn read(path: &Path) -> Result<Table, Problem> {
    let text = std::fs::read_to_string(path).map_err(|error| {
        Problem::new(format!("can't read the file {}: {}", path.display(), secret::plain(&error)))
    })?;
    text.parse().map_err(|error: toml::de::Error| {
        let line = error.span().map_or(0, |span| text[..span.start.min(text.len())].lines().count().max(1));
        let what = error.message().lines().next().unwrap_or("this is not valid TOML");
        Problem::new(format!("{}: line {line}: {what}", path.display()))
    })
}

/// Which setting a variable is.
fn variable(name: &str) -> Result<Option<(&'static str, &'static str)>, Problem> {
    let Some(rest) = name.strip_prefix("POSTRIDER_") else { return Ok(None) };
    if OTHERS.iter().any(|other| name.starts_with(other)) {
        return Ok(None);
    }
    let spelled = |(section, key): (&str, &str)| format!("{section}_{key}").to_uppercase();
    if let Some(found) = described::in_environment().find(|each| spelled(*each) == rest) {
        return Ok(Some(found));
    }
    let names: Vec<String> =
        described::in_environment().map(|each| format!("POSTRIDER_{}", spelled(each))).collect();
    let what = match nearest(name, names.iter().map(String::as_str)) {
        Some(meant) => format!("did you mean {meant}?"),
        None => format!("the known ones are {}", names.join(", ")),
    };
    Err(Problem::new(format!("the environment variable {name} is not a setting; {what}")))
}

fn set(table: &mut Table, name: &str, path: &[&str], value: &str) -> Result<(), Problem> {
    let Some((key, sections)) = path.split_last() else { return Ok(()) };
    let mut table = table;
    for section in sections {
        let inner = table.entry((*section).to_owned()).or_insert_with(|| Value::Table(Table::new()));
        let Value::Table(inner) = inner else {
            return Err(Problem::new(format!(
                "{name}: {section} is not a table in the file, so no setting in it can be changed"
            )));
        };
        table = inner;
    }
    table.insert((*key).to_owned(), Value::String(value.to_owned()));
    Ok(())
}
