//! The processes of `ledger`, one subcommand each. The relay between them is `postrider relay --config ledger.toml`.

use std::process::ExitCode;

use ledger::adapters::{consumers, processes};
use story::Options;
use story::process::{logs, setting};

const USAGE: &str = "ledger migrate | api | read-model | positions | audit | stub-positions | stub-alerts | figures | story [--keep] [--long] [--break loss]";

#[tokio::main]
async fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let command = arguments.next().unwrap_or_default();
    if command == "story" {
        return match Options::parse(arguments) {
            Ok(options) => ledger::story::tell(options).await,
            Err(sentence) => wrong(&sentence),
        };
    }
    logs();
    let ended = match command.as_str() {
        "migrate" => processes::migrate().await,
        "api" => processes::api().await,
        "read-model" => processes::consumer(consumers::read_model).await,
        "audit" => processes::consumer(consumers::audit).await,
        "positions" => match setting("POSITIONS_URL") {
            Ok(url) => processes::consumer(|outbox, topics| consumers::positions(outbox, topics, &url)).await,
            Err(sentence) => Err(sentence.into()),
        },
        "stub-positions" => processes::stub_positions().await,
        "stub-alerts" => processes::stub_alerts().await,
        "figures" => processes::figures().await,
        _ => return wrong(USAGE),
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn wrong(sentence: &str) -> ExitCode {
    eprintln!("{sentence}");
    ExitCode::from(2)
}
