//! What holds for the whole relay: `[store]`, `[relay]`, `[http]` and `[log]`.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use postrider::postgres::{OutboxBuilder, Pooler, StoreOptions};
use postrider::store::defaults;

use super::secret::without_password;
use super::{Problem, Section, address, duration};

/// The defaults: of several words, the first.
pub(crate) const SCHEMA: &str = OutboxBuilder::SCHEMA;
pub(crate) const CONNECTIONS: u32 = StoreOptions::CONNECTIONS;
pub(crate) const BELL: bool = StoreOptions::BELL;
pub(crate) const POOLERS: [(&str, Pooler); 3] =
    [("detect", Pooler::Detect), ("transaction", Pooler::Transaction), ("none", Pooler::None)];
pub(crate) const ALERTS_EVERY: Duration = Duration::from_secs(60);
/// A port that neither IANA nor the list of Prometheus exporters assigns.
pub(crate) const LISTEN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 7678);
pub(crate) const LOG_FORMATS: [(&str, bool); 2] = [("human", false), ("json", true)];
pub(crate) const LOG_LEVEL: &str = "info";

/// The database.
#[derive(Clone)]
pub(crate) struct Store {
    /// Its address.
    pub(crate) url: Option<String>,
    /// The schema, on PostgreSQL.
    pub(crate) schema: String,
    /// How many connections a pool may open.
    pub(crate) connections: u32,
    /// Whether publishers ring sleeping relays.
    pub(crate) bell: bool,
    /// Where the bell listens, if not at its address.
    pub(crate) listen_url: Option<String>,
    /// What is between this program and a PostgreSQL.
    pub(crate) pooler: Pooler,
    /// The largest payload, in bytes, that `migrate` lets the log take.
    pub(crate) max_payload: Option<u32>,
}

impl Default for Store {
    fn default() -> Self {
        Self {
            url: None,
            schema: SCHEMA.to_owned(),
            connections: CONNECTIONS,
            bell: BELL,
            listen_url: None,
            pooler: POOLERS[0].1,
            max_payload: None,
        }
    }
}

impl Store {
    /// With this address, and else as it is unless set.
    pub(crate) fn at(url: &str) -> Self {
        Self { url: Some(url.to_owned()), ..Self::default() }
    }

    /// Whether it is a file rather than a server.
    pub(crate) fn is_file(&self) -> bool {
        self.url.as_ref().is_some_and(|url| url.starts_with("sqlite:"))
    }
}

impl Store {
    /// Whether it is a MariaDB or a MySQL.
    pub(crate) fn is_mysql(&self) -> bool {
        self.url.as_ref().is_some_and(|url| url.starts_with("mysql://") || url.starts_with("mariadb://"))
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let url = self.url.as_deref().map(without_password);
        f.debug_struct("Store")
            .field("url", &url)
            .field("schema", &self.schema)
            .field("connections", &self.connections)
            .field("bell", &self.bell)
            .field("listen_url", &self.listen_url.as_deref().map(without_password))
            .field("pooler", &self.pooler)
            .field("max_payload", &self.max_payload)
            .finish()
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
    /// How often it looks whether somebody is to be told.
    pub(crate) alerts: Duration,
}

/// How it speaks.
#[derive(Debug, Clone)]
pub(crate) struct Log {
    /// Whether a line is a JSON object.
    pub(crate) json: bool,
    /// What is said: `info`, or a filter such as `postrider=debug`.
    pub(crate) level: String,
}

/// `[store]`.
pub(crate) fn store(section: Option<Section<'_>>) -> Result<Store, Problem> {
    let mut store = Store::default();
    let Some(mut section) = section else { return Ok(store) };
    store.url = section.text("url")?;
    if let Some(url) = &store.url {
        check_url(&section, url)?;
        if address::names_a_pooler(url) {
            store.pooler = Pooler::Transaction;
        }
    }
    if let Some(schema) = section.text("schema")? {
        // Only PostgreSQL has one, and knows what it may be called.
        if !store.is_file() && !store.is_mysql() {
            let named = postrider::postgres::migration_sql(&schema);
            named.map_err(|error| section.problem("schema", error.message()))?;
        }
        store.schema = schema;
    }
    if let Some(connections) = section.parsed("connections", "a number of connections, 2 or more")? {
        if connections < 2 {
            return Err(section.problem("connections", "it must be 2 or more"));
        }
        store.connections = connections;
    }
    if let Some(bell) = section.parsed("bell", "true or false")? {
        store.bell = bell;
    }
    store.listen_url = listen_url(&mut section, &store)?;
    store.max_payload = section.parsed("max_payload", "a number of bytes, 1 to 1073741824")?;
    if store.max_payload.is_some_and(|bytes| bytes == 0 || bytes > 1 << 30) {
        return Err(section.problem("max_payload", "it must be 1 to 1073741824 bytes"));
    }
    if let Some(pooler) = section.text("pooler")? {
        let known = POOLERS.iter().find(|(word, _)| *word == pooler);
        let (_, known) = known
            .ok_or_else(|| section.problem("pooler", "it must be \"detect\", \"transaction\" or \"none\""))?;
        store.pooler = *known;
    }
    section.finish()?;
    Ok(store)
}

fn check_url(section: &Section<'_>, url: &str) -> Result<(), Problem> {
    let kinds = ["postgres://", "postgresql://", "mysql://", "mariadb://", "sqlite:"];
    if !kinds.iter().any(|kind| url.starts_with(kind)) {
        let what = "it must begin with postgres://, mysql:// or sqlite:, as in \"postgres://user@host/database\" or \"sqlite:shop.db\"";
        return Err(section.problem("url", what));
    }
    address::check(url).map_err(|what| section.problem("url", what))
}

/// Where the bell listens, if that is not the address of the store.
fn listen_url(section: &mut Section<'_>, store: &Store) -> Result<Option<String>, Problem> {
    let Some(url) = section.text("listen_url")? else { return Ok(None) };
    if !["postgres://", "postgresql://"].iter().any(|kind| url.starts_with(kind)) {
        let what = "it must begin with postgres://, as in \"postgres://user@host/database\"";
        return Err(section.problem("listen_url", what));
    }
    address::check(&url).map_err(|what| section.problem("listen_url", what))?;
    if address::names_a_pooler(&url) {
        let what = "it must be the URL of the database itself: pgbouncer=true means a pooler in transaction mode, where LISTEN does not work";
        return Err(section.problem("listen_url", what));
    }
    if store.is_mysql() || store.is_file() {
        let what = "it works with PostgreSQL only, because no other database has LISTEN; leave it out";
        return Err(section.problem("listen_url", what));
    }
    Ok(Some(url))
}

/// `[relay]`.
pub(crate) fn relay(section: Option<Section<'_>>) -> Result<RelaySettings, Problem> {
    let mut relay = RelaySettings {
        name: None,
        lease: defaults::LEASE,
        poll: defaults::POLL_INTERVAL,
        grace: defaults::SHUTDOWN_GRACE,
        figures: defaults::FIGURES_EVERY,
        alerts: ALERTS_EVERY,
    };
    let Some(mut section) = section else { return Ok(relay) };
    relay.name = section.text("name")?;
    if relay.name.as_ref().is_some_and(|name| name.is_empty() || name.contains('\0')) {
        return Err(section.problem(
            "name",
            "it must not be empty or contain a NUL character; leave it out to have one generated",
        ));
    }
    for (key, setting, least) in [
        ("lease", &mut relay.lease, Duration::from_millis(100)),
        ("poll_interval", &mut relay.poll, Duration::from_millis(1)),
        ("shutdown_grace", &mut relay.grace, Duration::ZERO),
        ("figures_every", &mut relay.figures, Duration::from_secs(1)),
        ("alerts_every", &mut relay.alerts, Duration::from_secs(1)),
    ] {
        if let Some(given) = section.duration(key)? {
            if given < least || given > Duration::from_secs(86_400) {
                let what = format!(
                    "it must be between {} and 1d, not {}",
                    duration::show(least),
                    duration::show(given)
                );
                return Err(section.problem(key, what));
            }
            *setting = given;
        }
    }
    section.finish()?;
    Ok(relay)
}

/// Where the endpoints listen.
#[derive(Clone, Copy)]
pub(crate) struct Listen {
    /// The address.
    pub(crate) address: SocketAddr,
    /// Whether somebody set it. One that nobody set gives way to another when it is taken.
    pub(crate) is_set: bool,
}

impl fmt::Debug for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.address)
    }
}

/// `[http]`: nowhere if it is `"off"`.
pub(crate) fn listen(section: Option<Section<'_>>) -> Result<Option<Listen>, Problem> {
    let usual = Listen { address: LISTEN, is_set: false };
    let Some(mut section) = section else { return Ok(Some(usual)) };
    let listen = match section.text("listen")? {
        None => Some(usual),
        Some(text) if text == "off" => None,
        Some(text) => {
            let address = text.parse().map_err(|_| {
                section.problem(
                    "listen",
                    format!("{text:?} is not an address; write it as \"{LISTEN}\", or \"off\" to disable it"),
                )
            })?;
            Some(Listen { address, is_set: true })
        }
    };
    section.finish()?;
    Ok(listen)
}

/// `[log]`.
pub(crate) fn log(section: Option<Section<'_>>) -> Result<Log, Problem> {
    let mut log = Log { json: LOG_FORMATS[0].1, level: LOG_LEVEL.to_owned() };
    let Some(mut section) = section else { return Ok(log) };
    if let Some(json) = section.word("format", &LOG_FORMATS)? {
        log.json = json;
    }
    if let Some(level) = section.text("level")? {
        log.level = level;
    }
    section.finish()?;
    Ok(log)
}
