//! The processes of `transfers`, one subcommand each.

use std::process::ExitCode;

use story::Options;
use transfers::acts::{load, tale};
use transfers::processes::{api, fraud, migrate, operations};

const USAGE: &str = "usage: transfers migrate | api | fraud | stub-operations | story [--keep] [--long] [--break loss] | load [--rate N] [--seconds N]";

#[tokio::main]
async fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let command = arguments.next().unwrap_or_default();
    let done = match command.as_str() {
        "migrate" => ended(migrate::run().await),
        "api" => ended(api::run().await),
        "fraud" => ended(fraud::run().await),
        "stub-operations" => ended(operations::run().await),
        "story" => match Options::parse(arguments) {
            Ok(options) => Ok(tale::run(options).await),
            Err(sentence) => Err(sentence),
        },
        "load" => match load::Options::parse(arguments) {
            Ok(options) => Ok(load::run(options).await),
            Err(sentence) => Err(sentence),
        },
        _ => Err(USAGE.to_owned()),
    };
    done.unwrap_or_else(|sentence| {
        eprintln!("transfers: {sentence}");
        ExitCode::from(2)
    })
}

/// The exit code of a process: 1 with a sentence if something failed.
fn ended(result: Result<(), Box<dyn std::error::Error + Send + Sync>>) -> Result<ExitCode, String> {
    Ok(result.map_or_else(
        |error| {
            eprintln!("transfers: {error}");
            ExitCode::FAILURE
        },
        |()| ExitCode::SUCCESS,
    ))
}
