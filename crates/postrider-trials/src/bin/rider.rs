//! A process to be killed: an application with a relay. See the library.

use std::process::ExitCode;

use postrider_trials::ground::Land;
use postrider_trials::ground_mysql::MyGround;
use postrider_trials::ground_postgres::PgGround;
use postrider_trials::ground_sqlite::LiteGround;
use postrider_trials::log::Log;
use postrider_trials::ride::Ride;
use postrider_trials::riding::ride;

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> ExitCode {
    let level = std::env::var("RIDER_LOG").ok().and_then(|level| level.parse().ok());
    let _ = tracing::subscriber::set_global_default(Log::new(level.unwrap_or(tracing::Level::INFO)));
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match start(&arguments).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("rider: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn start(arguments: &[String]) -> Result<(), Box<dyn std::error::Error>> {
    let wanted = Ride::from_arguments(arguments)?;
    if wanted.store.starts_with("postgres") {
        ride(PgGround::reach(&wanted).await?, wanted).await?;
    } else if wanted.store.starts_with("mysql") {
        ride(MyGround::reach(&wanted).await?, wanted).await?;
    } else {
        ride(LiteGround::reach(&wanted).await?, wanted).await?;
    }
    Ok(())
}
