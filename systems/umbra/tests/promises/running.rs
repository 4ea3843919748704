//! Umbra as it runs: stubs, API, bot and worker, each a process of its own.

use std::process::Command;
use std::time::Duration;

use postrider_testkit::{Program, postgres::Database, until};
use serde_json::{Value, json};
use sqlx::PgPool;
use umbra::adapters::postgres::migrate;
use umbra::stubs;

/// The stubs, a database, and what a process needs to know of them.
pub(crate) struct System {
    pub(crate) db: PgPool,
    pub(crate) toss: String,
    pub(crate) discord: String,
    client: reqwest::Client,
    _stubs: [Program; 2],
    database: Database,
}

/// Variables of the environment.
pub(crate) type Settings<'a> = &'a [(&'a str, &'a str)];

fn umbra(command: &str) -> Command {
    let mut program = Command::new(env!("CARGO_BIN_EXE_umbra"));
    program.arg(command);
    program
}

async fn listening(name: &str, command: &mut Command) -> (Program, String) {
    let mut program = Program::start(name, command);
    let address = program.line("listening on ").await;
    (program, address)
}

impl System {
    pub(crate) async fn new() -> Self {
        let database = Database::new().await;
        let db = PgPool::connect_with(database.options()).await.expect("a connection");
        migrate(&db).await.expect("tables");
        let (toss_stub, toss) = listening("stub-toss", &mut umbra("stub-toss")).await;
        let (discord_stub, discord) = listening("stub-discord", &mut umbra("stub-discord")).await;
        let client = story::process::client();
        Self { db, toss, discord, client, _stubs: [toss_stub, discord_stub], database }
    }

    /// Starts a process, and returns it with its address.
    pub(crate) async fn start(&self, name: &str) -> (Program, String) {
        self.start_with(name, &[]).await
    }

    /// Starts a process with settings, and returns it with its address.
    pub(crate) async fn start_with(&self, name: &str, settings: Settings<'_>) -> (Program, String) {
        let mut command = umbra(name);
        command.env("DATABASE_URL", self.database.url());
        command.env("TOSS_URL", &self.toss).env("DISCORD_URL", &self.discord);
        command.env("UMBRA_TICK", "50").env("UMBRA_LEASE", "1000");
        command.env("UMBRA_SETTINGS", concat!(env!("CARGO_MANIFEST_DIR"), "/umbra.toml"));
        command.env("ALERT_URL", "http://127.0.0.1:9/").env("POSTRIDER", story::process::postrider_path());
        listening(name, command.envs(settings.iter().copied())).await
    }

    /// Another stub of Discord, which sends dispatches to this bot.
    pub(crate) async fn discord_of(&self, bot: &str) -> (Program, String) {
        listening("stub-discord", umbra("stub-discord").env("BOT_URL", bot)).await
    }

    /// Posts JSON; the status of the answer, or nothing if there was none.
    pub(crate) async fn post(&self, url: String, body: Value) -> Option<u16> {
        let request = self.client.post(url).json(&body).timeout(Duration::from_secs(30));
        request.send().await.ok().map(|answer| answer.status().as_u16())
    }

    /// Posts JSON; the status and the text of the answer.
    pub(crate) async fn say(&self, url: String, body: Value) -> (u16, String) {
        let answer = self.client.post(url).json(&body).send().await.expect("an answer");
        (answer.status().as_u16(), answer.text().await.expect("a text"))
    }

    pub(crate) async fn get(&self, url: String) -> String {
        let answer = self.client.get(url).send().await.expect("an answer");
        answer.text().await.expect("a text")
    }

    pub(crate) async fn charges(&self) -> stubs::toss::Figures {
        serde_json::from_str(&self.get(format!("{}/figures", self.toss)).await).expect("figures")
    }

    pub(crate) async fn messages(&self) -> stubs::discord::Figures {
        serde_json::from_str(&self.get(format!("{}/figures", self.discord)).await).expect("figures")
    }

    /// Makes a stub do its work and hold its answers, or answer again.
    pub(crate) async fn hold(&self, stub: &str, hold: bool) {
        assert_eq!(self.post(format!("{stub}/control"), json!({ "hold": hold })).await, Some(200));
    }

    /// Turns the clock of the application.
    pub(crate) async fn turn(&self, seconds: i64) {
        let sql = "insert into outside.clock values ($1)";
        sqlx::query(sql).bind(seconds).execute(&self.db).await.expect("turned");
    }

    pub(crate) async fn one<T>(&self, sql: &'static str) -> T
    where
        T: for<'r> sqlx::Decode<'r, sqlx::Postgres> + sqlx::Type<sqlx::Postgres> + Send + Unpin,
    {
        sqlx::query_scalar(sql).fetch_one(&self.db).await.unwrap_or_else(|error| panic!("{sql}: {error}"))
    }

    /// Waits until every subscription is done with every event.
    pub(crate) async fn quiet(&self) {
        let sql = "select not exists (select 1 from events.event_state where state <> 'done')
            and (select count(*) from events.event) = (select count(*) from audit.events)
            and (select count(*) from events.subscription) = 4";
        until("all is delivered", async || self.one(sql).await).await;
    }

    /// The same when so many events are only in the trail.
    pub(crate) async fn quiet_but_for(&self, archived: i64) {
        let sql = "select not exists (select 1 from events.event_state where state <> 'done')";
        let more = "select (select count(*) from audit.events) - (select count(*) from events.event)";
        until("all is delivered", async || self.one::<i64>(more).await == archived && self.one(sql).await)
            .await;
    }
}
