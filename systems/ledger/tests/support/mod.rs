//! What the tests share: a ledger in a database of its own, and the four operations in one line each.

#![allow(dead_code, unreachable_pub)]

use std::path::PathBuf;

use ledger::adapters::persistence::MySqlLedger;
use ledger::adapters::schema;
use ledger::application::port::LedgerPort;
use ledger::application::problem::{Answer, Problem};
use ledger::application::service::deposit::DepositCommand;
use ledger::application::service::reversal::ReversalCommand;
use ledger::application::service::transfer::TransferCommand;
use ledger::application::service::withdrawal::WithdrawalCommand;
use ledger::application::service::{
    DepositService, Receipt, ReversalService, TransferService, WithdrawalService,
};
use ledger::story::stage::{Stage, TopicOption};
use postrider_testkit::address;
use postrider_testkit::mysql::Database;
use sqlx::MySqlPool;
use time::OffsetDateTime;

/// The binary.
pub fn program() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_ledger"))
}

/// A stage on the broker of the tests.
pub async fn stage(option: TopicOption) -> Stage {
    Stage::new(program(), &address::kafka(), option).await
}

/// A ledger without relays, topics and consumers.
pub struct World {
    pub ledger: MySqlLedger,
    pub database: Database,
}

impl World {
    pub async fn new() -> Self {
        let database = Database::new().await;
        let pool = schema::connect(&database.url()).await.expect("a connection");
        let outbox = schema::migrate(&pool).await.expect("tables");
        Self { ledger: MySqlLedger::new(pool, outbox), database }
    }

    pub fn pool(&self) -> &MySqlPool {
        self.ledger.pool()
    }

    pub async fn number(&self, sql: &'static str) -> i64 {
        sqlx::query_scalar(sql).fetch_one(self.pool()).await.expect(sql)
    }

    /// How many transactions, entries, balances and events there are.
    pub async fn counts(&self) -> [i64; 4] {
        [
            self.number("select count(*) from transactions").await,
            self.number("select count(*) from journal_entries").await,
            self.number("select cast(coalesce(sum(amount), 0) as signed) from balances").await,
            self.number("select count(*) from postrider_event").await,
        ]
    }
}

/// A ledger whose database believes that it is another time, on the database of a stage.
pub async fn ledger_at(url: &str, now: OffsetDateTime) -> MySqlLedger {
    let pool = schema::connect_at(url, now).await.expect("a connection");
    let outbox = postrider::mysql::Outbox::connect(&pool).await.expect("an outbox");
    MySqlLedger::new(pool, outbox)
}

pub fn now() -> OffsetDateTime {
    OffsetDateTime::now_utc()
}

pub async fn deposit(
    ledger: &impl LedgerPort,
    transaction: i64,
    account: i64,
    amount: i64,
) -> Answer<Receipt> {
    deposit_with(ledger, transaction, account, amount, None).await
}

pub async fn deposit_with(
    ledger: &impl LedgerPort,
    transaction: i64,
    account: i64,
    amount: i64,
    memo: Option<String>,
) -> Answer<Receipt> {
    let command = DepositCommand { transaction, account, amount, memo };
    DepositService(ledger).deposit(&command, now()).await
}

pub async fn withdraw(
    ledger: &impl LedgerPort,
    transaction: i64,
    account: i64,
    amount: i64,
) -> Answer<Receipt> {
    let command = WithdrawalCommand { transaction, account, amount, memo: None };
    WithdrawalService(ledger).withdraw(&command, now()).await
}

pub async fn transfer(
    ledger: &impl LedgerPort,
    transaction: i64,
    from: i64,
    to: i64,
    amount: i64,
) -> Answer<Receipt> {
    let command = TransferCommand { transaction, from, to, amount, memo: None };
    TransferService(ledger).transfer(&command, now()).await
}

pub async fn reverse(ledger: &impl LedgerPort, transaction: i64, of: i64) -> Answer<Receipt> {
    ReversalService(ledger).reverse(&ReversalCommand { transaction, of }, now()).await
}

/// Asks again while others are faster, as a client does; how often the ledger had to begin again.
pub async fn insist<F: Future<Output = Answer<Receipt>>>(ask: impl Fn() -> F) -> u32 {
    let mut conflicts = 0;
    loop {
        match ask().await {
            Ok(receipt) => return conflicts + receipt.tries - 1,
            Err(Problem::Conflict) => conflicts += ledger::application::service::TRIES,
            Err(problem) => panic!("{problem}"),
        }
    }
}

/// The sentence of a refusal.
#[track_caller]
pub fn refused(answer: Answer<Receipt>) -> String {
    match answer {
        Err(Problem::Refused(refusal)) => refusal.to_string(),
        other => panic!("it must be refused: {other:?}"),
    }
}
