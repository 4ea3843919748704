//! What the binary is told: a TOML file, then the environment, then flags. Each wins over the one before.

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use toml::{Table, Value};

pub(crate) mod alert;
pub(crate) mod duration;
pub(crate) mod nearest;
pub(crate) mod retention;
pub(crate) mod section;
pub(crate) mod sink;
pub(crate) mod subscription;

pub(crate) use alert::{Alert, Notify};
pub(crate) use retention::Retention;
pub(crate) use section::Section;
pub(crate) use sink::Sink;
pub(crate) use subscription::Reader;

/// What is wrong with a setting: one sentence that names it and says what would be right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Problem(String);

impl Problem {
    /// A problem, in a sentence.
    pub(crate) fn new(sentence: impl Into<String>) -> Self {
        Self(sentence.into())
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Problem {}

/// Where values come from that are not in the file: `env:NAME` and `file:PATH`.
pub(crate) struct Secrets {
    environment: BTreeMap<String, String>,
}

impl Secrets {
    /// With these variables.
    pub(crate) fn new(environment: BTreeMap<String, String>) -> Self {
        Self { environment }
    }

    /// The value that a text stands for.
    pub(crate) fn look_up(&self, text: &str) -> Result<String, String> {
        if let Some(name) = text.strip_prefix("env:") {
            let value = self.environment.get(name).filter(|value| !value.is_empty());
            return value.cloned().ok_or_else(|| format!("the environment variable {name} is not set"));
        }
        if let Some(path) = text.strip_prefix("file:") {
            let value = std::fs::read_to_string(path);
            let value = value.map_err(|error| format!("the file {path} can't be read: {}", plain(&error)))?;
            return Ok(value.trim_end_matches(['\r', '\n']).to_owned());
        }
        Ok(text.to_owned())
    }
}

fn plain(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::NotFound => "it does not exist".to_owned(),
        std::io::ErrorKind::PermissionDenied => "permission is denied".to_owned(),
        _ => error.to_string(),
    }
}

/// Everything that the binary is told.
#[derive(Debug)]
pub(crate) struct Config {
    /// `[store]`.
    pub(crate) store: Store,
    /// `[relay]`.
    pub(crate) relay: RelaySettings,
    /// `[http]`: where the endpoints listen; nowhere if it is `"off"`.
    pub(crate) listen: Option<std::net::SocketAddr>,
    /// `[log]`.
    pub(crate) log: Log,
    /// `[[subscription]]`.
    pub(crate) readers: Vec<Reader>,
    /// `[sink.NAME]`.
    pub(crate) sinks: BTreeMap<String, Sink>,
    /// `[retention]`.
    pub(crate) retention: Option<Retention>,
    /// `[[alert]]`.
    pub(crate) alerts: Vec<Alert>,
    /// `[notify.NAME]`.
    pub(crate) notify: BTreeMap<String, Notify>,
}

/// The database.
#[derive(Clone)]
pub(crate) struct Store {
    /// Its address.
    pub(crate) url: Option<String>,
    /// The schema, on PostgreSQL.
    pub(crate) schema: String,
    /// How many connections the relay may open.
    pub(crate) connections: u32,
    /// Whether publishers ring sleeping relays.
    pub(crate) bell: bool,
}

impl Store {
    /// Whether it is a file rather than a server.
    pub(crate) fn is_file(&self) -> bool {
        self.url.as_ref().is_some_and(|url| url.starts_with("sqlite:"))
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let url = self.url.as_deref().map(without_password);
        f.debug_struct("Store").field("url", &url).field("schema", &self.schema).finish_non_exhaustive()
    }
}

/// The relay itself.
#[derive(Debug, Clone)]
pub(crate) struct RelaySettings {
    /// What it is called in leases and logs.
    pub(crate) name: Option<String>,
    /// How long a lease lasts.
    pub(crate) lease: Duration,
    /// How long it sleeps at most when nobody rings.
    pub(crate) poll: Duration,
    /// How long it may take to stop.
    pub(crate) grace: Duration,
    /// How often it counts what is pending, for metrics.
    pub(crate) figures: Duration,
}

/// How it speaks.
#[derive(Debug, Clone)]
pub(crate) struct Log {
    /// Whether a line is a JSON object.
    pub(crate) json: bool,
    /// What is said: `info`, or a filter such as `postrider=debug`.
    pub(crate) level: String,
}

/// Where settings are taken from.
#[derive(Debug, Default)]
pub(crate) struct Origins {
    /// The file, if one was named.
    pub(crate) file: Option<PathBuf>,
    /// Settings by flag, as `relay.lease` and `10s`.
    pub(crate) flags: Vec<(String, String)>,
}

/// Settings that can be given in the environment, as `POSTRIDER_STORE_URL`.
const SECTIONS: &[(&str, &[&str])] = &[
    ("store", &["url", "schema", "connections", "bell"]),
    ("relay", &["name", "lease", "poll_interval", "shutdown_grace", "figures_every"]),
    ("http", &["listen"]),
    ("log", &["format", "level"]),
    ("retention", &["delivered", "archive", "archived", "inbox", "at", "batch", "pause"]),
];

/// Variables of that name which are no settings.
const OTHERS: [&str; 3] = ["POSTRIDER_CONFIG", "POSTRIDER_SOAK", "POSTRIDER_TEST_"];

impl Config {
    /// Reads the file, the environment and the flags.
    pub(crate) fn load(origins: &Origins, environment: BTreeMap<String, String>) -> Result<Self, Problem> {
        let file = origins.file.clone().or_else(|| environment.get("POSTRIDER_CONFIG").map(PathBuf::from));
        let mut table = file.as_deref().map(read).transpose()?.unwrap_or_default();
        for (name, value) in &environment {
            if let Some((section, key)) = variable(name)? {
                set(&mut table, name, &[section, key], value)?;
            }
        }
        for (path, value) in &origins.flags {
            let parts: Vec<&str> = path.split('.').collect();
            set(&mut table, path, &parts, value)?;
        }
        let secrets = Secrets::new(environment);
        let in_file = |problem: Problem| match &file {
            Some(file) => Problem::new(format!("{}: {problem}", file.display())),
            None => problem,
        };
        Self::understand(Section::root(table, &secrets)).map_err(in_file)
    }

    fn understand(mut root: Section<'_>) -> Result<Self, Problem> {
        let store = store(root.section("store")?)?;
        let relay = relay(root.section("relay")?)?;
        let listen = listen(root.section("http")?)?;
        let log = log(root.section("log")?)?;
        let mut sinks = BTreeMap::new();
        for (name, section) in root.named("sink")? {
            sinks.insert(name, Sink::read(section)?);
        }
        let mut readers = Vec::new();
        let mut names = HashSet::new();
        for section in root.each("subscription")? {
            let reader = Reader::read(section, &sinks)?;
            if !names.insert(reader.name.clone()) {
                return Err(Problem::new(format!(
                    "two subscriptions are called {:?}; a name belongs to one",
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
        let alerts = root.each("alert")?.into_iter().map(|section| Alert::read(section, &notify, &names));
        let alerts = alerts.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect();
        root.finish()?;
        Ok(Self { store, relay, listen, log, readers, sinks, retention, alerts, notify })
    }
}

fn read(path: &Path) -> Result<Table, Problem> {
    let text = std::fs::read_to_string(path).map_err(|error| {
        Problem::new(format!("the file {} can't be read: {}", path.display(), plain(&error)))
    })?;
    text.parse().map_err(|error: toml::de::Error| {
        let line = error.span().map_or(0, |span| text[..span.start.min(text.len())].lines().count().max(1));
        let what = error.message().lines().next().unwrap_or("it can't be understood");
        Problem::new(format!("{}: line {line}: {what}", path.display()))
    })
}

/// Which setting a variable is.
fn variable(name: &str) -> Result<Option<(&'static str, &'static str)>, Problem> {
    let Some(rest) = name.strip_prefix("POSTRIDER_") else { return Ok(None) };
    if OTHERS.iter().any(|other| name.starts_with(other)) {
        return Ok(None);
    }
    let all = || SECTIONS.iter().flat_map(|(section, keys)| keys.iter().map(move |key| (*section, *key)));
    let spelled = |(section, key): (&str, &str)| format!("{section}_{key}").to_uppercase();
    if let Some(found) = all().find(|each| spelled(*each) == rest) {
        return Ok(Some(found));
    }
    let names: Vec<String> = all().map(|each| format!("POSTRIDER_{}", spelled(each))).collect();
    let what = match nearest::nearest(name, names.iter().map(String::as_str)) {
        Some(meant) => format!("is {meant} meant?"),
        None => format!("there is {}", names.join(", ")),
    };
    Err(Problem::new(format!("the environment variable {name} is no setting; {what}")))
}

fn set(table: &mut Table, name: &str, path: &[&str], value: &str) -> Result<(), Problem> {
    let Some((key, sections)) = path.split_last() else { return Ok(()) };
    let mut table = table;
    for section in sections {
        let inner = table.entry((*section).to_owned()).or_insert_with(|| Value::Table(Table::new()));
        let Value::Table(inner) = inner else {
            return Err(Problem::new(format!(
                "{name}: {section} is no table in the file, so nothing in it can be set"
            )));
        };
        table = inner;
    }
    table.insert((*key).to_owned(), Value::String(value.to_owned()));
    Ok(())
}

fn store(section: Option<Section<'_>>) -> Result<Store, Problem> {
    let mut store = Store { url: None, schema: "postrider".to_owned(), connections: 10, bell: true };
    let Some(mut section) = section else { return Ok(store) };
    store.url = section.text("url")?;
    if let Some(url) = &store.url {
        let kinds = ["postgres://", "postgresql://", "sqlite:"];
        if !kinds.iter().any(|kind| url.starts_with(kind)) {
            let what = "it begins with postgres:// or sqlite:, as in \"postgres://user@host/database\" or \"sqlite:shop.db\"";
            return Err(section.problem("url", what));
        }
    }
    if let Some(schema) = section.text("schema")? {
        store.schema = schema;
    }
    if let Some(connections) = section.parsed("connections", "a number of connections, 2 or more")? {
        if connections < 2 {
            return Err(section.problem("connections", "the relay needs 2 or more"));
        }
        store.connections = connections;
    }
    if let Some(bell) = section.parsed("bell", "true or false")? {
        store.bell = bell;
    }
    section.finish()?;
    Ok(store)
}

fn relay(section: Option<Section<'_>>) -> Result<RelaySettings, Problem> {
    let seconds = Duration::from_secs;
    let mut relay = RelaySettings {
        name: None,
        lease: seconds(30),
        poll: seconds(1),
        grace: seconds(10),
        figures: seconds(15),
    };
    let Some(mut section) = section else { return Ok(relay) };
    relay.name = section.text("name")?;
    for (key, setting, least) in [
        ("lease", &mut relay.lease, Duration::from_millis(100)),
        ("poll_interval", &mut relay.poll, Duration::from_millis(1)),
        ("shutdown_grace", &mut relay.grace, Duration::ZERO),
        ("figures_every", &mut relay.figures, Duration::from_secs(1)),
    ] {
        if let Some(given) = section.duration(key)? {
            if given < least || given > Duration::from_secs(86_400) {
                let what = format!(
                    "{} is out of bounds: {} to 1d are possible",
                    duration::show(given),
                    duration::show(least)
                );
                return Err(section.problem(key, what));
            }
            *setting = given;
        }
    }
    section.finish()?;
    Ok(relay)
}

fn listen(section: Option<Section<'_>>) -> Result<Option<std::net::SocketAddr>, Problem> {
    let usual = std::net::SocketAddr::from(([127, 0, 0, 1], 9187));
    let Some(mut section) = section else { return Ok(Some(usual)) };
    let listen = match section.text("listen")? {
        None => Some(usual),
        Some(text) if text == "off" => None,
        Some(text) => Some(text.parse().map_err(|_| {
            section.problem("listen", format!("{text:?} is no address; write \"127.0.0.1:9187\", or \"off\""))
        })?),
    };
    section.finish()?;
    Ok(listen)
}

fn log(section: Option<Section<'_>>) -> Result<Log, Problem> {
    let mut log = Log { json: false, level: "info".to_owned() };
    let Some(mut section) = section else { return Ok(log) };
    if let Some(json) = section.word("format", &[("human", false), ("json", true)])? {
        log.json = json;
    }
    if let Some(level) = section.text("level")? {
        log.level = level;
    }
    section.finish()?;
    Ok(log)
}

/// An address as it may be shown.
pub(crate) fn without_password(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let (rest, query) = rest.split_once('?').map_or((rest, None), |(rest, query)| (rest, Some(query)));
    let shown = match rest.rsplit_once('@') {
        Some((login, host)) => match login.split_once(':') {
            Some((user, _)) => format!("{scheme}://{user}:***@{host}"),
            None => format!("{scheme}://{rest}"),
        },
        None => format!("{scheme}://{rest}"),
    };
    // A password may be there, too.
    match query {
        Some(query) if query.to_lowercase().contains("password") => format!("{shown}?***"),
        Some(query) => format!("{shown}?{query}"),
        None => shown,
    }
}
