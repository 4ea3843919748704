//! The stage: the database, the stubs and the processes.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};
use story::testkit::{Folder, Program, postgres::Database, until};
use story::{Story, Stub, process};

use super::eye::Eye;
use crate::adapters::{postgres, sqlite};
use crate::stubs;

/// Where the database is. It goes away with the stage.
enum Home {
    Postgres(Box<Database>),
    Sqlite(Folder),
}

/// What the story is played on.
pub(super) struct Stage {
    pub(super) eye: Eye,
    pub(super) toss: String,
    pub(super) discord: String,
    pub(super) api: String,
    pub(super) bot: String,
    pub(super) worker: String,
    pub(super) operators: Stub,
    /// The processes that may be killed.
    pub(super) api_process: Program,
    pub(super) worker_process: Option<Program>,
    client: reqwest::Client,
    home: Home,
    _others: Vec<Program>,
}

async fn listening(name: &str, command: &mut Command) -> (Program, String) {
    let mut program = Program::start(name, command);
    let address = program.line("listening on ").await;
    (program, address)
}

impl Home {
    fn url(&self) -> String {
        match self {
            Self::Postgres(database) => database.url(),
            Self::Sqlite(folder) => format!("sqlite:{}/umbra.db", folder.path().display()),
        }
    }
}

impl Stage {
    /// Creates the database and starts everything but the worker.
    pub(super) async fn set(story: &mut Story) -> Self {
        let home = match story.options().sqlite {
            true => Home::Sqlite(Folder::new()),
            false => Home::Postgres(Box::new(Database::new().await)),
        };
        let url = home.url();
        let eye = match &home {
            Home::Postgres(_) => {
                let pool = postgres::connect(&url).await.expect("a database");
                postgres::migrate(&pool).await.expect("tables");
                Eye::Postgres(pool)
            }
            Home::Sqlite(_) => {
                let pool = sqlite::connect(&url).await.expect("a file");
                sqlite::migrate(&pool).await.expect("tables");
                Eye::Sqlite(pool)
            }
        };
        let (toss_stub, toss) = listening("stub-toss", process::own().arg("stub-toss")).await;
        let bot_alone = &mut process::own();
        let (bot_process, bot) = listening("bot", bot_alone.arg("bot").env("DATABASE_URL", &url)).await;
        let discord_alone = &mut process::own();
        let discord_alone = discord_alone.arg("stub-discord").env("BOT_URL", &bot);
        let (discord_stub, discord) = listening("stub-discord", discord_alone).await;
        let operators = Stub::start().await;
        let command = |name: &str| command(name, &url, &toss, &discord, operators.url());
        let (api_process, api) = listening("api", &mut command("api")).await;
        story.tell("The API, the bot, and stubs of Toss and Discord are running. There is no worker yet.");
        let _others = vec![toss_stub, discord_stub, bot_process];
        let client = process::client();
        Self {
            eye,
            toss,
            discord,
            api,
            bot,
            worker: String::new(),
            operators,
            api_process,
            worker_process: None,
            client,
            home,
            _others,
        }
    }

    pub(super) fn is_postgres(&self) -> bool {
        matches!(self.home, Home::Postgres(_))
    }

    pub(super) fn url(&self) -> String {
        self.home.url()
    }

    fn command(&self, name: &str) -> Command {
        command(name, &self.url(), &self.toss, &self.discord, self.operators.url())
    }

    /// Starts another API, and kills the last one if it lives.
    pub(super) async fn start_api(&mut self) {
        (self.api_process, self.api) = listening("api", &mut self.command("api")).await;
    }

    /// Starts a worker.
    pub(super) async fn start_worker(&mut self) {
        let mut command = self.command("worker");
        if self.is_postgres() {
            command.env("UMBRA_SETTINGS", settings()).env("POSTRIDER", process::postrider_path());
        }
        let (worker, address) = listening("worker", &mut command).await;
        (self.worker_process, self.worker) = (Some(worker), address);
    }

    /// The binary `postrider` on this database.
    pub(super) fn postrider(&self, arguments: &[&str]) -> Command {
        let mut command = process::postrider();
        command.args(arguments).env("DATABASE_URL", self.url()).env("ALERT_URL", self.operators.url());
        match self.home {
            Home::Postgres(_) => command.arg("--config").arg(settings()),
            Home::Sqlite(_) => command.args(["--store", &self.url()]),
        };
        command
    }

    /// Posts JSON; the status of the answer, or 0 if there was none.
    pub(super) async fn post(&self, url: &str, body: Value) -> u16 {
        let request = self.client.post(url).json(&body).timeout(Duration::from_secs(30));
        request.send().await.map_or(0, |answer| answer.status().as_u16())
    }

    /// Deletes; the status of the answer.
    pub(super) async fn delete(&self, url: &str) -> u16 {
        self.client.delete(url).send().await.map_or(0, |answer| answer.status().as_u16())
    }

    /// Lets the stub of Discord send something to the bot.
    pub(super) async fn dispatch(&self, kind: &str, data: Value) -> u16 {
        self.post(&format!("{}/dispatch", self.discord), json!({ "t": kind, "d": data })).await
    }

    /// Makes a stub behave differently.
    pub(super) async fn control(&self, stub: &str, control: Value) {
        assert_eq!(self.post(&format!("{stub}/control"), control).await, 200, "the stub listens");
    }

    pub(super) async fn charges(&self) -> stubs::toss::Figures {
        self.figures(&self.toss).await
    }

    pub(super) async fn messages(&self) -> stubs::discord::Figures {
        self.figures(&self.discord).await
    }

    async fn figures<T: serde::de::DeserializeOwned>(&self, stub: &str) -> T {
        let answer = self.client.get(format!("{stub}/figures")).send().await.expect("the stub answers");
        answer.json().await.expect("figures")
    }

    /// Turns the clock of the application to so many seconds ahead.
    pub(super) async fn turn(&self, seconds: i64) {
        let sql = format!("insert into outside.clock (seconds) values ({seconds})");
        self.eye.execute(&sql).await.expect("turned");
    }

    /// Waits until a query returns this number.
    pub(super) async fn until(&self, what: &str, sql: &str, number: i64) {
        until(what, async || self.eye.number(sql).await == number).await;
    }

    /// A promise: a query comes to return this number.
    pub(super) async fn comes_to(&self, story: &mut Story, promise: &str, sql: &str, number: i64) {
        story.comes_to(promise, async || self.eye.number(sql).await, number).await;
    }

    /// Loses the effect of one event, so that the story has something to find.
    pub(super) async fn lose_a_message(&self) {
        let one = "delete from notification.messages where event_id in
            (select event_id from notification.messages order by event_id limit 1)";
        self.eye.execute(one).await.expect("lost");
    }

    /// Waits until every subscription is done with every event.
    pub(super) async fn quiet(&self) {
        let sql = "select (select count(*) from events.event_state where state not in ('done', 'dead', 'discarded'))
            + abs((select count(*) from events.event) - (select count(*) from audit.events))";
        self.until("all is delivered", sql, 0).await;
    }
}

/// The settings file, which lies beside the source.
pub(super) fn settings() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/umbra.toml"))
}

fn command(name: &str, url: &str, toss: &str, discord: &str, operators: &str) -> Command {
    let mut command = process::own();
    command.arg(name).env("DATABASE_URL", url).env("TOSS_URL", toss).env("DISCORD_URL", discord);
    command.env("ALERT_URL", operators).env("UMBRA_TICK", "50").env("UMBRA_LEASE", "1000");
    command
}
