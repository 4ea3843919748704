//! The program: one subcommand for each process of the system.

use std::env;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use story::process::{self, setting};
use umbra::adapters::delivery::Delivery;
use umbra::adapters::discord::Discord;
use umbra::adapters::toss::Toss;
use umbra::adapters::{postgres, sqlite};
use umbra::contracts::Answer;
use umbra::{stubs, telling};

const USAGE: &str = "umbra COMMAND, where COMMAND is one of
  migrate                            create the tables
  api                                serve the commands of users
  bot                                take what Discord sends
  worker                             deliver events, charge what is due, retention
  stub-toss, stub-discord            stubs of the outside world
  story [--keep] [--break loss] [--store sqlite]    act all of it out";

#[tokio::main]
async fn main() -> ExitCode {
    let mut arguments = env::args().skip(1);
    let command = arguments.next().unwrap_or_default();
    if command == "story" {
        return match story::Options::parse(arguments) {
            Ok(options) => telling::tell(options).await,
            Err(why) => wrong(&why),
        };
    }
    process::logs();
    let done = match command.as_str() {
        "stub-toss" => process::serve(stubs::toss::Toss::default().router()).await.map_err(Into::into),
        "stub-discord" => {
            let discord = stubs::discord::Discord::of(env::var("BOT_URL").ok());
            process::serve(discord.router()).await.map_err(Into::into)
        }
        "migrate" | "api" | "bot" | "worker" => on_store(&command).await,
        _ => return wrong(USAGE),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(fault) => {
            eprintln!("umbra {command}: {fault}");
            ExitCode::FAILURE
        }
    }
}

fn wrong(why: &str) -> ExitCode {
    eprintln!("{why}");
    ExitCode::from(2)
}

/// A duration from the environment, in milliseconds.
fn millis(name: &str, usual: Duration) -> Answer<Duration> {
    match env::var(name) {
        Ok(text) => {
            let millis = text.parse().map_err(|_| format!("{name} must be a number of milliseconds"))?;
            Ok(Duration::from_millis(millis))
        }
        Err(_) => Ok(usual),
    }
}

/// A process on the database that `DATABASE_URL` names.
macro_rules! on {
    ($store:ident, $command:expr, $url:expr) => {{
        let pool = $store::connect($url).await?;
        if $command == "migrate" {
            $store::migrate(&pool).await?;
            return Ok(());
        }
        let delivery = Delivery::read(env::var_os("UMBRA_WORKER").map(PathBuf::from).as_deref())?;
        let outbox = $store::open(&pool, delivery.bell).await?;
        match $command {
            "api" => process::serve($store::api::router(&outbox, Toss::new(&setting("TOSS_URL")?))).await?,
            "bot" => process::serve($store::bot::router(&outbox)).await?,
            _ => {
                let worker = $store::worker::Worker {
                    toss: Toss::new(&setting("TOSS_URL")?),
                    discord: Discord::new(&setting("DISCORD_URL")?),
                    tick: millis("UMBRA_TICK", Duration::from_secs(60))?,
                    lease: millis("UMBRA_LEASE", Duration::from_secs(30))?,
                    delivery,
                    settings: env::var_os("UMBRA_SETTINGS").map(PathBuf::from),
                };
                worker.run(&outbox).await?;
            }
        }
        Ok(())
    }};
}

async fn on_store(command: &str) -> Answer<()> {
    let url = setting("DATABASE_URL")?;
    if url.starts_with("sqlite:") { on!(sqlite, command, &url) } else { on!(postgres, command, &url) }
}
