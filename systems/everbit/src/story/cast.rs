//! The processes of everbit on loopback, with a database of their own: for the story, and for tests that kill processes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;
use serde_json::{Value, json};
use story::testkit::{Program, until};
use uuid::Uuid;

use crate::domain::{identifier, intent_id};
use crate::story::counts::Database;
use crate::stubs::exchange::Conduct;

/// How fast everything is, where nobody wants to wait: a lease, a timeout of the exchange, a round of the reconciler, its grace.
const BRISK: [(&str, &str); 4] = [
    ("EVERBIT_LEASE_MS", "500"),
    ("EVERBIT_TIMEOUT_MS", "400"),
    ("EVERBIT_RECONCILE_MS", "100"),
    ("EVERBIT_GRACE_MS", "800"),
];

/// The volume of each signal, in units of 1e-8.
pub const VOLUME: i64 = 1_000_000;

/// The exchange's book.
#[derive(Debug, Default, Deserialize)]
pub struct Book {
    /// The volumes of orders, by identifier.
    pub orders: BTreeMap<String, i64>,
    /// How often each identifier was sent.
    pub requests: BTreeMap<String, u32>,
}

impl Book {
    /// How many orders an intent has.
    pub fn orders_of(&self, intent: Uuid) -> usize {
        let prefix = format!("{intent}-");
        self.orders.keys().filter(|identifier| identifier.starts_with(&prefix)).count()
    }
}

/// The processes that are always there.
#[derive(Debug)]
pub struct Cast {
    program: PathBuf,
    /// The database.
    pub database: Database,
    client: reqwest::Client,
    /// The address of the API.
    pub api: String,
    /// The address of the exchange.
    pub exchange: String,
    /// The address of the push service.
    pub push: String,
    running: Vec<(String, Program)>,
}

impl Cast {
    /// Creates the database, and starts the exchange, the push service and the API.
    pub async fn raise(program: &Path, sqlite: bool) -> Self {
        let database = Database::new(sqlite).await;
        let mut cast = Self {
            program: program.to_owned(),
            database,
            client: story::process::client(),
            api: String::new(),
            exchange: String::new(),
            push: String::new(),
            running: Vec::new(),
        };
        let mut migrate = Program::start("everbit migrate", &mut cast.command("migrate"));
        if migrate.exit_code().await != Some(0) {
            panic!("everbit migrate failed: {}", migrate.errors().text());
        }
        cast.exchange = cast.serve("stub-exchange").await;
        cast.push = cast.serve("stub-push").await;
        cast.api = cast.serve("api").await;
        cast
    }

    fn command(&self, name: &str) -> Command {
        let mut command = Command::new(&self.program);
        command.arg(name).envs(BRISK).env("DATABASE_URL", self.database.url()).env("LOG_JSON", "1");
        command.env("EXCHANGE_URL", &self.exchange).env("PUSH_URL", &self.push);
        command
    }

    async fn serve(&mut self, name: &str) -> String {
        self.serve_with(name, &[]).await
    }

    /// Starts one more process that listens, with settings, and returns its address.
    pub async fn serve_with(&mut self, name: &str, settings: &[(&str, &str)]) -> String {
        let mut program = Program::start(name, self.command(name).envs(settings.iter().copied()));
        let address = program.line("listening on ").await;
        self.running.push((name.to_owned(), program));
        address
    }

    /// What a process that listens has written to stderr so far.
    pub fn errors_of(&self, name: &str) -> String {
        let found = self.running.iter().rfind(|(each, _)| each == name);
        found.map(|(_, program)| program.errors().text()).unwrap_or_default()
    }

    /// Starts a worker that is called so in leases, and waits until it works. Returns it and the address of its metrics.
    pub async fn worker(&self, name: &str, settings: &[(&str, &str)]) -> (Program, String) {
        let mut command = self.command("worker");
        command.env("EVERBIT_NAME", name).envs(settings.iter().copied());
        let mut worker = Program::start(name, &mut command);
        let address = worker.line("listening on ").await;
        (worker, address)
    }

    /// Starts Postrider's relay with a settings file of this system.
    pub fn relay(&self, file: &str, settings: &[&str]) -> Program {
        let mut command = story::process::postrider();
        command.args(["relay", "--config"]).arg(self.file(file)).args(["--set", "http.listen=off"]);
        for setting in settings {
            command.args(["--set", setting]);
        }
        command.env("DATABASE_URL", self.database.url()).env("RESULTS_URL", format!("{}/results", self.push));
        Program::start("postrider relay", &mut command)
    }

    /// Runs a command of Postrider's program, and returns its exit code and all that it said.
    pub fn postrider(&self, arguments: &[&str]) -> (Option<i32>, String) {
        let mut command = story::process::postrider();
        command.args(["--config"]).arg(self.file("everbit.toml")).args(arguments);
        command.env("DATABASE_URL", self.database.url()).env("RESULTS_URL", format!("{}/results", self.push));
        let output = command.output().unwrap_or_else(|error| panic!("postrider does not start: {error}"));
        let said = [output.stdout, output.stderr].concat();
        (output.status.code(), String::from_utf8_lossy(&said).into_owned())
    }

    /// A file of this system.
    pub fn file(&self, name: &str) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
    }

    /// Posts JSON to the API, and returns the status and the answer.
    pub async fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        self.post_to(&self.api, path, body).await
    }

    async fn post_to(&self, api: &str, path: &str, body: &Value) -> (u16, Value) {
        let answer = self.client.post(format!("{api}{path}")).json(body).send().await;
        let answer = answer.unwrap_or_else(|error| panic!("the API does not answer: {error}"));
        let status = answer.status().as_u16();
        (status, answer.json().await.unwrap_or_default())
    }

    /// Sends a signal of a new intent whose first attempt the exchange treats so, and returns the intent.
    pub async fn signal(&self, conduct: Conduct) -> Uuid {
        self.signal_at(&self.api, conduct).await
    }

    /// The same at another API.
    pub async fn signal_at(&self, api: &str, conduct: Conduct) -> Uuid {
        let id = Uuid::new_v4();
        self.direct(&format!("/conduct/{}", identifier(intent_id(id), 1)), &json!(conduct)).await;
        self.send(api, id).await
    }

    /// Sends a signal of a new intent of whose order the exchange executes nothing yet.
    pub async fn signal_without_fill(&self) -> Uuid {
        let id = Uuid::new_v4();
        self.execute(intent_id(id), 0).await;
        self.send(&self.api, id).await
    }

    /// The exchange has executed so much of the order of an intent by now.
    pub async fn execute(&self, intent: Uuid, volume: i64) {
        self.direct(&format!("/executed/{}", identifier(intent, 1)), &json!(volume)).await;
    }

    async fn send(&self, api: &str, id: Uuid) -> Uuid {
        let intent = intent_id(id);
        let body = json!({
            "id": id, "ownerId": "OWNER", "strategyKey": "EXTREME_FLIP", "market": "KRW-BTC", "side": "BUY",
            "price": 50_000_000, "volume": VOLUME,
        });
        let (status, answer) = self.post_to(api, "/signals", &body).await;
        assert_eq!((status, &answer["intentId"]), (202, &json!(intent)));
        intent
    }

    /// Tells the exchange what to do.
    pub async fn direct(&self, path: &str, body: &Value) {
        let told = self.client.put(format!("{}{path}", self.exchange)).json(body).send().await;
        if let Err(error) = told {
            panic!("the exchange does not answer: {error}");
        }
    }

    /// Reads JSON.
    pub async fn get(&self, url: &str) -> Value {
        let answer = self.client.get(url).send().await;
        let answer = answer.unwrap_or_else(|error| panic!("{url} does not answer: {error}"));
        answer.json().await.unwrap_or_default()
    }

    /// The exchange's book.
    pub async fn book(&self) -> Book {
        serde_json::from_value(self.get(&format!("{}/book", self.exchange)).await).unwrap_or_default()
    }

    /// The attempts of an intent by state, the newest first.
    pub async fn attempts(&self, intent: Uuid) -> Vec<String> {
        let answer = self.get(&format!("{}/intents/{intent}", self.api)).await;
        let attempts = answer["attempts"].as_array().cloned().unwrap_or_default();
        attempts.iter().map(|attempt| attempt["status"].as_str().unwrap_or_default().to_owned()).collect()
    }

    /// Waits until the last attempt of each of these intents is settled, and no command is queued.
    pub async fn settled(&self, intents: &[Uuid]) {
        until("every attempt is settled", async || {
            for intent in intents {
                let last = self.attempts(*intent).await.first().cloned().unwrap_or_default();
                if !matches!(last.as_str(), "ACKED" | "REJECTED" | "THROTTLED") {
                    return false;
                }
            }
            self.database.count("select count(*) from outbox_event where status <> 'DONE' and stream = 'everbit.trade.command'").await == 0
        })
        .await;
    }

    /// Asks for another attempt of each intent that has no order, as a strategy would, until each has one.
    pub async fn see_through(&self, intents: &[Uuid]) {
        self.settled(intents).await;
        for intent in intents {
            if self.attempts(*intent).await.first().is_some_and(|state| state != "ACKED") {
                let (status, answer) = self.post(&format!("/intents/{intent}/attempts"), &Value::Null).await;
                assert_eq!(status, 202, "{answer}");
            }
        }
        until("every intent has its order", async || {
            for intent in intents {
                if self.attempts(*intent).await.first().is_none_or(|state| state != "ACKED") {
                    return false;
                }
            }
            true
        })
        .await;
    }
}
