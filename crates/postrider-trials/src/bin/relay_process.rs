//! A process to be killed: an application with a relay. See the library.

use std::process::ExitCode;

use postrider_trials::log::Log;
use postrider_trials::relay_options::RelayOptions;
use postrider_trials::relay_program::run;
use postrider_trials::test_store::StoreKind;
use postrider_trials::test_store_mysql::MyTestStore;
use postrider_trials::test_store_postgres::PgTestStore;
use postrider_trials::test_store_sqlite::LiteTestStore;

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> ExitCode {
    let level = std::env::var("RELAY_LOG").ok().and_then(|level| level.parse().ok());
    let _ = tracing::subscriber::set_global_default(Log::new(level.unwrap_or(tracing::Level::INFO)));
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match start(&arguments).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("relay_process: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn start(arguments: &[String]) -> Result<(), Box<dyn std::error::Error>> {
    let wanted = RelayOptions::from_arguments(arguments)?;
    if wanted.store.starts_with("postgres") {
        run(PgTestStore::reach(&wanted).await?, wanted).await?;
    } else if wanted.store.starts_with("mysql") {
        run(MyTestStore::reach(&wanted).await?, wanted).await?;
    } else {
        run(LiteTestStore::reach(&wanted).await?, wanted).await?;
    }
    Ok(())
}
