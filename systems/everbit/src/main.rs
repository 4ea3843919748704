//! The processes of everbit: one program, a subcommand each.

use std::process::ExitCode;

use everbit::adapters::api::{self, Api};
use everbit::adapters::exchange::HttpExchange;
use everbit::adapters::settings::Settings;
use everbit::adapters::store::{PostgresTransactions, SqliteTransactions};
use everbit::adapters::workers::{Services, Workers, reconcile};
use everbit::application::{Backtests, Transactions};
use everbit::stubs;
use postrider::store::OutboxSource;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::sqlite::SqlitePoolOptions;

type Fallible<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

const USAGE: &str = "usage: everbit migrate | api | worker | stub-exchange | stub-push | story [--keep] [--long] [--break loss] [--store sqlite]";

#[tokio::main]
async fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let command = arguments.next().unwrap_or_default();
    let done = match command.as_str() {
        "story" => return everbit::story::tell(arguments).await,
        "migrate" | "api" | "worker" => process(&command).await,
        "stub-exchange" => story::process::serve(stubs::exchange::router()).await.map_err(Into::into),
        "stub-push" => story::process::serve(stubs::push::router()).await.map_err(Into::into),
        _ => Err(USAGE.into()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("everbit: {error}");
            ExitCode::FAILURE
        }
    }
}

/// A process that needs the database.
async fn process(command: &str) -> Fallible<()> {
    story::process::logs();
    let settings = Settings::read()?;
    if settings.database.starts_with("sqlite:") {
        let options =
            settings.database.parse::<sqlx::sqlite::SqliteConnectOptions>()?.create_if_missing(true);
        let pool = SqlitePoolOptions::new().connect_with(options).await?;
        if command == "migrate" {
            return Ok(SqliteTransactions::migrate(&pool).await?);
        }
        let transactions = SqliteTransactions::open(&pool, &settings).await?;
        return run(command, &transactions.outbox.clone(), transactions, &settings).await;
    }
    let options: PgConnectOptions = settings.database.parse()?;
    let pool = PgPoolOptions::new().max_connections(8);
    let pool = pool.connect_with(options.application_name(&format!("everbit-{command}"))).await?;
    if command == "migrate" {
        return Ok(PostgresTransactions::migrate(&pool).await?);
    }
    let transactions = PostgresTransactions::open(&pool, &settings).await?;
    run(command, &transactions.outbox.clone(), transactions, &settings).await
}

async fn run<S: OutboxSource, D: Transactions>(
    command: &str,
    source: &S,
    transactions: D,
    settings: &Settings,
) -> Fallible<()> {
    if command == "api" {
        let exchange = HttpExchange::new(&settings.exchange, settings.timeout);
        let api = Api { backtests: Backtests::new(transactions.clone(), exchange), transactions };
        return Ok(story::process::serve(api::router(api)).await?);
    }
    let metrics = story::metrics::collect()?;
    let services = Services::new(&transactions, settings);
    let mut workers = tokio::select! {
        workers = Workers::start(source, &services, settings) => workers?,
        () = postrider::asked_to_end() => return Ok(()),
    };
    let mut reconciler = tokio::spawn(reconcile(services, settings.reconcile_every));
    // Until the process is asked to end. One that lives on without its workers would look as if all were well.
    let ended: Fallible<()> = tokio::select! {
        served = story::process::serve(metrics) => served.map_err(Into::into),
        error = workers.failed() => Err(error.into()),
        _ = &mut reconciler => Err("the reconciler has ended".into()),
    };
    reconciler.abort();
    let stopped = workers.stop().await;
    ended.and(stopped.map_err(Into::into))
}
