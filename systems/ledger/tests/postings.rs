//! The four operations: what they write, what they refuse, and what stays of one that fails.

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use ledger::adapters::outbox::event_id;
use ledger::adapters::persistence::{MySqlLedger, Unit};
use ledger::adapters::schema;
use ledger::application::port::{LedgerPort, OutboxEventPort, UnitOfWork};
use ledger::application::problem::{Answer, Problem};
use ledger::domain::balance::Balance;
use ledger::domain::event::LedgerEvent;
use ledger::domain::transaction::Transaction;
use ledger::domain::{AccountId, TransactionId};
use postrider::Uuid;
use support::{World, deposit, deposit_with, insist, refused, reverse, transfer, withdraw};

/// At the commit, others were faster.
const CONFLICT: &str = "a conflict at the commit";

/// A ledger that breaks before one of its steps.
struct Faulty<'a>(&'a MySqlLedger, &'static str);

struct FaultyUnit(Unit, &'static str);

impl FaultyUnit {
    fn reaches(&self, step: &str) -> Answer<()> {
        match self.1 {
            CONFLICT if step == "the commit" => Err(Problem::Conflict),
            fault if fault == step => Err(Problem::broken(format!("it breaks before {step}"))),
            _ => Ok(()),
        }
    }
}

impl LedgerPort for Faulty<'_> {
    type Unit = FaultyUnit;

    async fn begin(&self) -> Answer<FaultyUnit> {
        Ok(FaultyUnit(self.0.begin().await?, self.1))
    }
}

impl UnitOfWork for FaultyUnit {
    async fn find_transaction(&mut self, id: TransactionId) -> Answer<Option<Transaction>> {
        self.0.find_transaction(id).await
    }

    async fn balance(&mut self, account: AccountId) -> Answer<Balance> {
        self.0.balance(account).await
    }

    async fn save_transaction(&mut self, transaction: &Transaction) -> Answer<()> {
        self.0.save_transaction(transaction).await
    }

    async fn save_entries(&mut self, transaction: &Transaction) -> Answer<()> {
        self.reaches("the entries")?;
        self.0.save_entries(transaction).await
    }

    async fn mark_reversed(&mut self, id: TransactionId, by: TransactionId) -> Answer<()> {
        self.0.mark_reversed(id, by).await
    }

    async fn save_balance(&mut self, balance: &Balance) -> Answer<()> {
        self.reaches("the balance")?;
        self.0.save_balance(balance).await
    }

    async fn commit(self) -> Answer<()> {
        self.reaches("the commit")?;
        self.0.commit().await
    }
}

impl OutboxEventPort for FaultyUnit {
    async fn save_event(&mut self, event: &dyn LedgerEvent) -> Answer<()> {
        self.reaches("the event")?;
        self.0.save_event(event).await
    }
}

/// L1, L2: transaction, entries, balance and event are one transaction of MariaDB: a fault after each of them leaves nothing of it.
#[tokio::test]
async fn a_fault_at_any_step_leaves_nothing() {
    let world = World::new().await;
    deposit(&world.ledger, 1, 10, 500).await.expect("posted");
    let before = world.counts().await;
    assert_eq!(before, [1, 2, 500, 1], "one event for the one leg of a deposit");
    for step in ["the entries", "the balance", "the event", "the commit"] {
        let faulty = Faulty(&world.ledger, step);
        for (what, answer) in [
            ("deposit", deposit(&faulty, 2, 10, 100).await),
            ("withdrawal", withdraw(&faulty, 2, 10, 100).await),
            ("transfer", transfer(&faulty, 2, 10, 20, 100).await),
            ("reversal", reverse(&faulty, 2, 1).await),
        ] {
            let broken = answer.expect_err(what).to_string();
            assert!(broken.contains(step), "{what}: {broken}");
            assert_eq!(world.counts().await, before, "a {what} that broke before {step}");
        }
    }
    let status = "select count(*) from transactions where status = 'POSTED' and reversed_by is null";
    assert_eq!(world.number(status).await, 1, "nor is anything marked as reversed");
    let server: String =
        sqlx::query_scalar("select version()").fetch_one(world.pool()).await.expect("a name");
    assert!(!server.contains("PostgreSQL") && world.database.url().starts_with("mysql://"), "{server}");
}

/// L2: deposit, withdrawal, transfer and reversal, each with its event, and debits = credits in each; no broker is there at all.
#[tokio::test]
async fn the_four_operations_balance_and_tell_one_event_per_leg() {
    let World { ledger, .. } = &World::new().await;
    deposit(ledger, 1, 10, 1000).await.expect("posted");
    withdraw(ledger, 2, 10, 300).await.expect("posted");
    transfer(ledger, 3, 10, 20, 200).await.expect("posted");
    reverse(ledger, 4, 3).await.expect("reversed");
    let balances: Vec<(i64, i64)> =
        sqlx::query_as("select account_id, amount from balances order by account_id")
            .fetch_all(ledger.pool())
            .await
            .expect("balances");
    assert_eq!(balances, [(10, 700), (20, 0)]);
    let uneven: i64 = sqlx::query_scalar(
        "select count(*) from (select transaction_id from journal_entries group by transaction_id
         having sum(if(side = 'DEBIT', amount, -amount)) <> 0) as uneven",
    )
    .fetch_one(ledger.pool())
    .await
    .expect("a count");
    assert_eq!(uneven, 0, "debits = credits in each transaction");
    let events: Vec<(String, String, String, i64, Uuid)> = sqlx::query_as(
        "select event_type, aggregate_id, ordering_key, sequence, event_id from postrider_event order by id",
    )
    .fetch_all(ledger.pool())
    .await
    .expect("events");
    let event = |kind: &str, transaction: i64, account: i64, sequence: i64| {
        let id = event_id(transaction, account);
        (kind.to_owned(), transaction.to_string(), account.to_string(), sequence, id)
    };
    let wanted = [
        event("LEDGER_POSTED", 1, 10, 1),
        event("LEDGER_POSTED", 2, 10, 2),
        event("LEDGER_POSTED", 3, 10, 3),
        event("LEDGER_POSTED", 3, 20, 1),
        event("LEDGER_REVERSED", 4, 10, 4),
        event("LEDGER_REVERSED", 4, 20, 2),
    ];
    assert_eq!(events, wanted, "a reversal comes after its posting, for each account");
}

/// L2: what the rules don't allow leaves nothing, and a repeated request is no second posting.
#[tokio::test]
async fn refusals_leave_nothing_and_a_repeated_request_posts_once() {
    let world = World::new().await;
    let ledger = &world.ledger;
    deposit(ledger, 1, 10, 100).await.expect("posted");
    reverse(ledger, 2, 1).await.expect("reversed");
    deposit(ledger, 3, 10, 50).await.expect("posted");
    let before = world.counts().await;
    for (answer, says) in [
        (withdraw(ledger, 9, 10, 51).await, "balance of account 10 does not allow"),
        (transfer(ledger, 9, 10, 20, 51).await, "balance of account 10 does not allow"),
        (deposit(ledger, 9, 10, 0).await, "greater than 0"),
        (deposit(ledger, 9, 10, i64::MAX).await, "balance of account 10 does not allow"),
        (deposit(ledger, 9, 0, 5).await, "belongs to no customer"),
        (transfer(ledger, 9, 10, 10, 5).await, "needs two accounts"),
        (deposit_with(ledger, 9, 10, 5, Some("x".repeat(60_001))).await, "at most 60000 bytes"),
        (reverse(ledger, 9, 7).await, "no transaction 7"),
        (reverse(ledger, 9, 1).await, "transaction 1 was reversed by 2"),
        (reverse(ledger, 9, 2).await, "a reversal can't be reversed"),
        (deposit(ledger, 3, 10, 51).await, "another transaction has the id 3"),
        (
            deposit_with(ledger, 3, 10, 50, Some("another memo".into())).await,
            "another transaction has the id 3",
        ),
    ] {
        let sentence = refused(answer);
        assert!(sentence.contains(says), "{sentence}");
    }
    assert!(deposit(ledger, 3, 10, 50).await.expect("known").repeated);
    assert!(reverse(ledger, 2, 1).await.expect("known").repeated);
    assert_eq!(world.counts().await, before);
    transfer(ledger, 4, 10, 20, 50).await.expect("posted");
    withdraw(ledger, 5, 20, 50).await.expect("posted");
    let sentence = refused(reverse(ledger, 6, 4).await);
    assert!(sentence.contains("balance of account 20"), "a reversal takes no balance below zero: {sentence}");
}

/// L5: eight writers on one account: those who were slower begin again, and each committed transaction has one event per leg.
#[tokio::test(flavor = "multi_thread")]
async fn writers_that_begin_again_leave_one_event_per_leg() {
    const WRITERS: i64 = 8;
    const EACH: i64 = 10;
    let world = World::new().await;
    deposit(&world.ledger, 1, 10, 1).await.expect("posted");
    let conflicts = AtomicU32::new(0);
    let write = async |writer: i64| {
        for number in 0..EACH {
            let transaction = 1000 * (writer + 1) + number;
            let again = insist(|| transfer_or_deposit(&world.ledger, transaction, writer)).await;
            conflicts.fetch_add(again, Ordering::SeqCst);
        }
    };
    let [a, b, c, d, e, f, g, h] = [0, 1, 2, 3, 4, 5, 6, 7].map(&write);
    tokio::join!(a, b, c, d, e, f, g, h);
    let conflicts = conflicts.into_inner();
    assert!(conflicts > 0, "others were faster now and then");
    let legs = world.number("select count(*) from journal_entries where account_id > 0").await;
    assert_eq!(world.number("select count(*) from transactions").await, 1 + WRITERS * EACH);
    assert_eq!(world.number("select count(*) from postrider_event").await, legs, "{conflicts} conflicts");
    let numbers = "select count(*) from postrider_event where ordering_key = '10' and sequence between 1 and
        (select count(*) from journal_entries where account_id = 10)";
    let of_account = world.number("select count(*) from journal_entries where account_id = 10").await;
    assert_eq!(world.number(numbers).await, of_account, "the numbers of the account have no gaps");
    let uneven = "select count(*) from balances b where b.amount <> (select sum(if(side = 'CREDIT', j.amount, -j.amount))
        from journal_entries j where j.account_id = b.account_id)";
    assert_eq!(world.number(uneven).await, 0, "balances are the sums of their entries");
}

/// A ledger that is slower than others until its commit, so often.
struct Slow<'a>(&'a MySqlLedger, Arc<AtomicU32>);

impl LedgerPort for Slow<'_> {
    type Unit = FaultyUnit;

    async fn begin(&self) -> Answer<FaultyUnit> {
        let left = self.1.load(Ordering::SeqCst);
        self.1.store(left.saturating_sub(1), Ordering::SeqCst);
        Ok(FaultyUnit(self.0.begin().await?, if left > 0 { CONFLICT } else { "nothing" }))
    }
}

/// L5: a conflict that shows after the events were recorded takes them back with all the rest: one event per leg in the end, and none
/// where every try was in vain.
#[tokio::test]
async fn a_conflict_at_the_commit_takes_the_events_back() {
    let world = World::new().await;
    deposit(&world.ledger, 1, 10, 500).await.expect("posted");
    let slow = Slow(&world.ledger, Arc::new(AtomicU32::new(2)));
    let receipt = transfer(&slow, 2, 10, 20, 100).await.expect("posted");
    assert_eq!((receipt.tries, receipt.repeated), (3, false));
    assert_eq!(world.counts().await, [2, 4, 500, 3], "one event for each of the three legs");
    slow.1.store(3, Ordering::SeqCst);
    assert!(matches!(transfer(&slow, 3, 10, 20, 100).await, Err(Problem::Conflict)), "three tries");
    assert_eq!(world.counts().await, [2, 4, 500, 3]);
}

/// Every other one is a transfer to an account of the writer's own.
async fn transfer_or_deposit(
    ledger: &MySqlLedger,
    transaction: i64,
    writer: i64,
) -> Answer<ledger::application::service::Receipt> {
    if transaction % 2 == 0 {
        deposit(ledger, transaction, 10, 5).await
    } else {
        transfer(ledger, transaction, 10, 100 + writer, 1).await
    }
}

/// X1: the document's table is there with its columns, and an event that no relay has seen yet is PENDING in it.
#[tokio::test]
async fn the_documents_table_has_its_columns_and_states() {
    let world = World::new().await;
    let columns: Vec<String> = sqlx::query_scalar(
        "select cast(column_name as char) from information_schema.columns
         where table_schema = database() and table_name = 'outbox_event' order by ordinal_position",
    )
    .fetch_all(world.pool())
    .await
    .expect("columns");
    let wanted = [
        "id",
        "aggregate_type",
        "aggregate_id",
        "event_type",
        "payload",
        "status",
        "retry_count",
        "created_at",
        "processed_at",
    ];
    assert_eq!(columns, wanted);
    transfer(&world.ledger, 7, 10, 20, 5).await.expect_err("no money");
    deposit(&world.ledger, 8, 10, 5).await.expect("posted");
    let row: (String, i64, String, String, i64) = sqlx::query_as(
        "select aggregate_type, aggregate_id, event_type, status, cast(retry_count as signed) from outbox_event
         where created_at is not null and processed_at is null and json_valid(payload)",
    )
    .fetch_one(world.pool())
    .await
    .expect("one row");
    let text = str::to_owned;
    assert_eq!(row, (text("TRANSACTION"), 8, text("LEDGER_POSTED"), text("PENDING"), 0));
}

/// Where consumers share the ledger's database, what one of them has processed is in the document's table before the audit feed has it;
/// the read model's second mark, by the text of the leg, is no leg of its own.
#[tokio::test]
async fn what_a_consumer_has_processed_is_seen_before_the_audit_feed_has_it() {
    let world = World::new().await;
    let outbox = schema::migrate_consumers(world.pool()).await.expect("the tables of the consumers");
    deposit(&world.ledger, 8, 10, 5).await.expect("posted");
    let (inbox, mut connection) =
        (outbox.inbox("ledger-read-model"), world.pool().acquire().await.expect("one"));
    assert!(inbox.first_time(&mut connection, event_id(8, 10)).await.expect("marked"));
    assert!(inbox.first_time_by_key(&mut connection, "8:10").await.expect("marked"));
    let sql = "select transaction_id, account_id, consumer from processed_events";
    let rows: Vec<(i64, i64, String)> = sqlx::query_as(sql).fetch_all(world.pool()).await.expect("rows");
    assert_eq!(rows, [(8, 10, "ledger-read-model".to_owned())]);
    assert_eq!(world.number("select count(*) from audit_feed").await, 0);
}
