//! `commerce api`, `commerce consumer NAME`, `commerce stub-cache`, `commerce migrate` and `commerce story`. The relay is
//! `postrider relay --config commerce.toml`.

use std::process::ExitCode;

use commerce::processes::{api, consumer, migrate, stub_cache, tale};

const USAGE: &str =
    "usage: commerce api | consumer NAME | stub-cache | migrate | story [--keep] [--long] [--break loss]";

#[tokio::main]
async fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let command = arguments.next().unwrap_or_default();
    if command == "story" {
        return match story::Options::parse(arguments) {
            Ok(options) => tale::tell(options).await,
            Err(sentence) => refused(&sentence),
        };
    }
    story::process::logs();
    let ended = match (command.as_str(), arguments.next()) {
        ("api", None) => api::run().await,
        ("consumer", Some(name)) => consumer::run(&name).await,
        ("stub-cache", None) => stub_cache::run().await,
        ("migrate", None) => migrate::run().await,
        _ => Err(USAGE.to_owned()),
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(sentence) => refused(&sentence),
    }
}

fn refused(sentence: &str) -> ExitCode {
    eprintln!("commerce: {sentence}");
    ExitCode::FAILURE
}
