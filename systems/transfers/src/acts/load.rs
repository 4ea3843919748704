//! A measured load: transfers at a rate, two relays and fraud detection on the same machine, one relay killed halfway.

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use postrider::postgres::Outbox;
use sqlx::PgPool;
use story::testkit::until;
use story::{Story, process};
use tokio::time::Instant;
use uuid::Uuid;
use xtask::kafka::{self, Broker};
use xtask::postgres::Cluster;

use super::latency;
use super::stage::Stage;
use crate::adapters::http::now;
use crate::adapters::postgres::PgUnits;
use crate::application::ports::Origin;
use crate::application::transfer::{TransferCommand, TransferService};

/// How many transfers are made at a time, at most.
const WRITERS: usize = 32;
/// Among how many accounts.
const ACCOUNTS: usize = 10_000;
/// The relay that is killed halfway.
pub const KILLED: &str = "relay-0";

/// What was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Transfers a second.
    pub rate: usize,
    /// For how many seconds.
    pub seconds: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { rate: 1000, seconds: 30 }
    }
}

impl Options {
    /// Reads them. An unknown one is refused with a sentence.
    pub fn parse(arguments: impl IntoIterator<Item = String>) -> Result<Self, String> {
        let (mut options, mut arguments) = (Self::default(), arguments.into_iter());
        while let Some(argument) = arguments.next() {
            let place = match argument.as_str() {
                "--rate" => &mut options.rate,
                "--seconds" => &mut options.seconds,
                other => return Err(format!("{other} is unknown; the options are --rate N and --seconds N")),
            };
            let number = arguments.next().and_then(|text| text.parse().ok()).filter(|number| *number > 0);
            *place =
                number.ok_or_else(|| format!("{argument} must be followed by a number greater than 0"))?;
        }
        Ok(options)
    }
}

/// Measures it on servers of its own. The exit code is 1 if something was lost or analysed twice; a time that is missed is only said.
pub async fn run(options: Options) -> ExitCode {
    let sentence = "a measured load, with a relay killed halfway";
    let mut story = Story::begin("transfers", sentence, story::Options::default());
    let servers = tokio::task::spawn_blocking(|| {
        // Commits wait for the disk, and the database keeps when each of them was.
        let cluster = Cluster::create(&[("fsync", "on"), ("track_commit_timestamp", "on")])?;
        Ok::<_, xtask::TaskError>((cluster, Broker::create(&kafka::Options::new())?))
    });
    let (cluster, broker) = match servers.await {
        Ok(Ok(servers)) => servers,
        other => {
            eprintln!("transfers: no servers: {other:?}");
            return ExitCode::FAILURE;
        }
    };
    let own = process::own().get_program().to_owned();
    let stage = Stage::on(own.as_ref(), cluster.url("postgres"), None, broker.port()).await;
    story.tell(format!("{} transfers a second for {} s", options.rate, options.seconds));
    let done = act(&stage, options).await;
    story.tell(format!(
        "{} transfers in {:.1} s, {:.0} a second",
        done.transfers,
        done.seconds,
        done.transfers as f64 / done.seconds
    ));
    let word = if done.is_in_time(options) { "met" } else { "missed" };
    println!("    {word:<8} {} transfers a second were asked for", options.rate);
    let transfers = stage.transfers().await;
    story.equal("nothing is lost, and each is analysed once", stage.analysed().await, (transfers, transfers));
    story.figure(
        "repetitions in the topic, of the batches that were open at the kill",
        stage.records().await - transfers,
    );
    latency::tell(&story, &stage, &done.killed_at, KILLED).await;
    story.figure(
        "the documents",
        "polling every second (transfers); CDC from 1,000 a second or below 500 ms (ledger)",
    );
    let code = story.end().await;
    drop((stage, broker, cluster));
    code
}

/// What was done.
#[derive(Debug, Clone)]
pub struct Done {
    /// How many transfers were made.
    pub transfers: usize,
    /// In how many seconds.
    pub seconds: f64,
    /// When the relay was killed, by the database's clock.
    pub killed_at: String,
}

impl Done {
    /// Whether the transfers were made at the rate that was asked for. The last one is due one step before the end, and takes its own time.
    pub fn is_in_time(&self, options: Options) -> bool {
        self.seconds <= options.seconds as f64 + 1.0
    }
}

/// Makes the load on a stage, and waits until fraud detection has analysed all of it.
pub async fn act(stage: &Stage, options: Options) -> Done {
    let outbox = Outbox::connect(&stage.db).await.unwrap_or_else(|error| panic!("no outbox: {error}"));
    open_accounts(&stage.db).await;
    let mut relays = [stage.relay(KILLED, &[]), stage.relay("relay-1", &[])];
    let _fraud = stage.fraud("fraud");
    stage.until_shared_by(2).await;
    let service = TransferService::new(PgUnits::new(outbox));
    // The first one finds everybody awake.
    transfer(&service, 0).await;
    stage.until_analysed().await;

    let count = options.rate * options.seconds;
    let (next, made) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let began = Instant::now();
    let mut writers = tokio::task::JoinSet::new();
    for _ in 0..WRITERS {
        let (service, next, made) = (service.clone(), Arc::clone(&next), Arc::clone(&made));
        writers.spawn(async move {
            loop {
                let number = next.fetch_add(1, Ordering::AcqRel);
                if number >= count {
                    break;
                }
                let due = Duration::from_secs_f64(number as f64 / options.rate as f64);
                tokio::time::sleep_until(began + due).await;
                made.fetch_add(usize::from(transfer(&service, number).await), Ordering::AcqRel);
            }
        });
    }
    until("half of the transfers are made", async || next.load(Ordering::Acquire) >= count / 2).await;
    let killed_at = clock(&stage.db).await;
    relays[0].process.kill();
    writers.join_all().await;
    let seconds = began.elapsed().as_secs_f64();
    stage.until_analysed().await;
    Done { transfers: made.load(Ordering::Acquire), seconds, killed_at }
}

/// Makes the transfer of a number; whether it happened.
async fn transfer(service: &TransferService<PgUnits>, number: usize) -> bool {
    // Spread without order: the step shares no factor with the number of accounts.
    let (from, to) = (number * 7919 % ACCOUNTS, (number * 7919 + 1 + number % 97) % ACCOUNTS);
    let command = TransferCommand {
        id: Uuid::now_v7(),
        from: format!("account-{from}"),
        to: format!("account-{to}"),
        amount: 1,
        memo: String::new(),
        origin: Origin::default(),
    };
    match service.transfer(command, now()).await {
        Ok(_) => true,
        Err(error) => {
            tracing::warn!(%error, "a transfer failed");
            false
        }
    }
}

async fn open_accounts(db: &PgPool) {
    let sql = "insert into accounts select 'account-' || n, 1000000 from generate_series(0, $1 - 1) n on conflict do nothing";
    let opened = sqlx::query(sql).bind(ACCOUNTS as i32).execute(db).await;
    opened.unwrap_or_else(|error| panic!("no accounts: {error}"));
}

async fn clock(db: &PgPool) -> String {
    let now = sqlx::query_scalar("select clock_timestamp()::text").fetch_one(db).await;
    now.unwrap_or_else(|error| panic!("the database has no clock: {error}"))
}
