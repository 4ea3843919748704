//! A small shop, on an embedded database unless a server is named: what is recorded, what fails, who is killed, and what became of all that.
//!
//! The shop records in this process; two relays handle in processes of their own, and one of them is killed. Every figure of
//! the summary is counted in the shop's tables.

mod demo_store;
mod fault;
mod handlers;
mod relay_process;
mod screen;
mod script;
mod shop;
mod snapshot;
mod tally;

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use postrider::{Uuid, asked_to_end};

use crate::config::{Problem, address, without_password};
use crate::{Failure, bounded};
use demo_store::{DemoStore, FILE, Mysql, Postgres, Sqlite};
use fault::Fault;
use screen::Screen;
use script::Ending;

/// How long a server may take to make the shop's database, and to remove it.
const BUILD: Duration = Duration::from_secs(30);

/// How the demo is run.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Keep the shop in this folder, which must be empty or new (default: a temporary folder). With --store, also keep the
    /// demo's schema (PostgreSQL) or database (MariaDB, MySQL), which is dropped otherwise
    #[arg(long, value_name = "FOLDER")]
    keep: Option<PathBuf>,
    /// For developers: make a handler break a promise once, to see that the summary reports it
    #[arg(long = "break", hide = true, value_name = "PROMISE")]
    fault: Option<Fault>,
    /// For the demo itself: run as one of its relays
    #[arg(long, hide = true, value_name = "NAME", requires = "keep")]
    relay: Option<String>,
}

/// The schema of the demo on a PostgreSQL, unless another is named.
const SCHEMA: &str = "postrider_demo";

/// A server that the shop is on: where it is, and, on PostgreSQL, in which schema.
#[derive(Clone, Copy)]
pub(crate) struct Server<'a> {
    pub(crate) address: &'a str,
    pub(crate) schema: Option<&'a str>,
}

/// Runs the demo, on a server if one is named; whether every promise held.
pub(crate) async fn run(
    options: &Options,
    store: Option<&str>,
    schema: Option<&str>,
) -> Result<bool, Failure> {
    if let (Some(name), Some(folder)) = (&options.relay, &options.keep) {
        return match (std::env::var(relay_process::ADDRESS), schema) {
            (Ok(address), Some(schema)) => {
                handlers::work(Postgres::open(&address, schema).await?, folder, name, options.fault).await
            }
            (Ok(address), None) => {
                handlers::work(Mysql::open(&address).await?, folder, name, options.fault).await
            }
            (Err(_), _) => handlers::work(Sqlite::open(folder).await?, folder, name, options.fault).await,
        };
    }
    let begins = |address: &str, kinds: [&str; 2]| kinds.iter().any(|kind| address.starts_with(kind));
    if let Some(address) = store {
        address::check(address).map_err(|what| Problem::new(format!("--store: {what}")))?;
    }
    match store {
        None => on_sqlite(options).await,
        Some(address) if begins(address, ["postgres://", "postgresql://"]) => {
            let schema = schema.unwrap_or(SCHEMA);
            let named = postrider::postgres::migration_sql(schema);
            named.map_err(|error| Problem::new(format!("--schema: {}", error.message())))?;
            on_postgres(options, address, schema).await
        }
        Some(address) if begins(address, ["mysql://", "mariadb://"]) => on_mysql(options, address).await,
        Some(_) => {
            let what = "--store must be postgres://user@host/database or mysql://user@host; without it the demo uses SQLite";
            Err(Problem::new(what).into())
        }
    }
}

async fn on_sqlite(options: &Options) -> Result<bool, Failure> {
    let folder = prepared(options.keep.as_deref())?;
    let mut screen = Screen::of_stdout();
    let store = Sqlite::build(&folder).await?;
    let ending = tokio::select! {
        ending = script::play(&mut screen, store, &folder, None, options.fault) => ending?,
        () = asked_to_end() => Ending::Interrupted,
    };
    screen.clear();
    if let Ending::Whole { held } = ending {
        tally::look_around(&mut screen, &format!("sqlite:{}", folder.join(FILE).display()), None);
        return Ok(held);
    }
    // Half a shop is of no use to anybody.
    let kept = options.keep.is_some() || std::fs::remove_dir_all(&folder).is_err();
    ended(&ending, kept.then(|| folder.display().to_string()), "its folder")
}

async fn on_postgres(options: &Options, address: &str, schema: &str) -> Result<bool, Failure> {
    let folder = prepared(options.keep.as_deref())?;
    let built = bounded::opened(BUILD, || without_password(address), Postgres::build(address, schema)).await;
    let built = built.inspect_err(|_| _ = std::fs::remove_dir_all(&folder))?;
    let server = Server { address, schema: Some(schema) };
    let place = (without_password(address), Some(schema));
    on_server(options, &folder, built.clone(), server, place, async move || built.remove().await).await
}

async fn on_mysql(options: &Options, address: &str) -> Result<bool, Failure> {
    let folder = prepared(options.keep.as_deref())?;
    let database = format!("postrider_demo_{}", unique());
    let built = bounded::opened(BUILD, || without_password(address), Mysql::build(address, &database)).await;
    let built = built.inspect_err(|_| _ = std::fs::remove_dir_all(&folder))?;
    let address = built.address();
    let server = Server { address: &address, schema: None };
    let place = (without_password(&address), None);
    on_server(options, &folder, built.clone(), server, place, async move || built.remove().await).await
}

/// Plays on a server, and removes what was made there unless it is to be kept.
async fn on_server(
    options: &Options,
    folder: &Path,
    store: impl DemoStore,
    server: Server<'_>,
    (place, schema): (String, Option<&str>),
    remove: impl AsyncFnOnce() -> bool,
) -> Result<bool, Failure> {
    let mut screen = Screen::of_stdout();
    let played = tokio::select! {
        played = script::play(&mut screen, store, folder, Some(server), options.fault) => played,
        () = asked_to_end() => Ok(Ending::Interrupted),
    };
    screen.clear();
    let is_kept = options.keep.is_some();
    if !is_kept {
        let _ = std::fs::remove_dir_all(folder);
    }
    let removed = !is_kept && tokio::time::timeout(BUILD, remove()).await.unwrap_or(false);
    let what = if schema.is_some() { "schema" } else { "database" };
    match (played?, removed) {
        (Ending::Whole { held }, false) => {
            tally::look_around(&mut screen, &place, schema);
            Ok(held)
        }
        (Ending::Whole { held }, true) => {
            screen.say(&format!("\n  The demo's {what} was dropped. Pass --keep FOLDER to keep it."));
            Ok(held)
        }
        (ending, removed) => {
            let kept =
                schema.map_or_else(|| place.clone(), |schema| format!("the schema {schema} on {place}"));
            ended(&ending, (!removed).then_some(kept), &format!("its {what}"))
        }
    }
}

/// What is said of a demo that was not played to the end.
fn ended(ending: &Ending, kept: Option<String>, what: &str) -> Result<bool, Failure> {
    match (ending, kept) {
        (Ending::Interrupted, Some(kept)) => {
            Err(format!("interrupted; the relays have stopped, and the demo left {kept} behind").into())
        }
        (Ending::Interrupted, None) => {
            Err(format!("interrupted; the relays have stopped, and the demo removed {what}").into())
        }
        // Whoever closed the pipe has seen enough.
        (Ending::Unseen | Ending::Whole { .. }, _) => Ok(true),
    }
}

/// A word that nothing else is called.
fn unique() -> String {
    Uuid::new_v4().simple().to_string()[..8].to_owned()
}

/// The folder, made if need be.
fn prepared(keep: Option<&Path>) -> Result<PathBuf, Failure> {
    let folder = match keep {
        Some(folder) => folder.to_owned(),
        None => std::env::temp_dir().join(format!("postrider-demo-{}", unique())),
    };
    std::fs::create_dir_all(&folder).map_err(|error| {
        let remedy = if keep.is_some() { "choose another folder" } else { "set TMPDIR to a writable folder" };
        format!("can't create the folder {}: {error}; {remedy}", folder.display())
    })?;
    if std::fs::read_dir(&folder)?.next().is_some() {
        let what = format!("--keep: the folder {} must be empty; choose another one", folder.display());
        return Err(Problem::new(what).into());
    }
    Ok(folder)
}
