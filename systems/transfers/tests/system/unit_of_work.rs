//! A transfer is one transaction: two balances, the transfer, its event.

use postrider::postgres::Outbox;
use transfers::acts::stage::Stage;
use transfers::adapters::postgres::{PgUnit, PgUnits};
use transfers::application::ports::{Fault, Origin, Unit, Units};
use transfers::application::transfer::{TransferCommand, TransferError, TransferService};
use transfers::domain::{Account, Refusal, Transaction, TransferCompleteEvent};
use uuid::Uuid;

use crate::support::stage;

/// The steps of a unit of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    Lock,
    Accounts,
    Transaction,
    Event,
    Commit,
    /// The commit is done, and its answer is lost.
    Answer,
}

/// Units of work that fail at a step, after it was done.
#[derive(Clone)]
pub(crate) struct Faulty(pub(crate) PgUnits, pub(crate) Option<Step>);

pub(crate) struct FaultyUnit(PgUnit, Option<Step>);

impl FaultyUnit {
    fn after<T>(&self, step: Step, done: T) -> Result<T, Fault> {
        if self.1 == Some(step) { Err(format!("a fault at {step:?}").into()) } else { Ok(done) }
    }
}

impl Units for Faulty {
    type Unit = FaultyUnit;

    async fn begin(&self) -> Result<FaultyUnit, Fault> {
        Ok(FaultyUnit(self.0.begin().await?, self.1))
    }
}

impl Unit for FaultyUnit {
    async fn lock(&mut self, ids: [&str; 2]) -> Result<Vec<Account>, Fault> {
        let done = self.0.lock(ids).await?;
        self.after(Step::Lock, done)
    }

    async fn save_accounts(&mut self, accounts: [&Account; 2]) -> Result<(), Fault> {
        self.0.save_accounts(accounts).await?;
        self.after(Step::Accounts, ())
    }

    async fn find(&mut self, id: Uuid) -> Result<Option<(Transaction, Uuid)>, Fault> {
        self.0.find(id).await
    }

    async fn save_transaction(&mut self, transaction: &Transaction, event: Uuid) -> Result<bool, Fault> {
        let saved = self.0.save_transaction(transaction, event).await?;
        self.after(Step::Transaction, saved)
    }

    async fn publish(&mut self, event: &TransferCompleteEvent, origin: &Origin) -> Result<Uuid, Fault> {
        let id = self.0.publish(event, origin).await?;
        self.after(Step::Event, id)
    }

    async fn commit(self) -> Result<(), Fault> {
        self.after(Step::Commit, ())?;
        let Self(unit, fault) = self;
        unit.commit().await?;
        if fault == Some(Step::Answer) { Err("the connection broke in COMMIT".into()) } else { Ok(()) }
    }
}

fn command(from: &str, to: &str, amount: i64) -> TransferCommand {
    let (from, to) = (from.to_owned(), to.to_owned());
    let (id, memo) = (Uuid::now_v7(), String::new());
    TransferCommand { id, from, to, amount, memo, origin: Origin::default() }
}

pub(crate) async fn bank(stage: &Stage) -> PgUnits {
    let units = PgUnits::new(Outbox::connect(&stage.db).await.expect("an outbox"));
    for id in ["a", "b"] {
        assert!(units.open_account(&Account { id: id.to_owned(), balance: 1000 }).await.expect("opened"));
    }
    units
}

pub(crate) async fn balances(units: &PgUnits) -> [i64; 2] {
    let mut balances = [0; 2];
    for (id, balance) in ["a", "b"].iter().zip(&mut balances) {
        *balance = units.account(id).await.expect("an answer").expect("an account").balance;
    }
    balances
}

/// Transfers and events.
pub(crate) async fn counts(stage: &Stage) -> [i64; 2] {
    [stage.transfers().await, stage.number("select count(*) from transfer_events").await]
}

/// T1, T11: after a fault at any step there is no debit, no credit, no transfer and no event; without one there are all four.
#[tokio::test(flavor = "multi_thread")]
async fn a_fault_at_any_step_leaves_nothing() {
    let stage = stage().await;
    let units = bank(&stage).await;
    for step in [Step::Lock, Step::Accounts, Step::Transaction, Step::Event, Step::Commit] {
        let service = TransferService::new(Faulty(units.clone(), Some(step)));
        let failed = service.transfer(command("a", "b", 300), 7).await;
        assert!(matches!(&failed, Err(TransferError::Failed(_))), "{step:?}: {failed:?}");
        assert_eq!((balances(&units).await, counts(&stage).await), ([1000, 1000], [0, 0]), "{step:?}");
    }
    let service = TransferService::new(Faulty(units.clone(), None));
    let done = service.transfer(command("a", "b", 300), 7).await.expect("nothing is in its way");
    assert_eq!((balances(&units).await, counts(&stage).await), ([700, 1300], [1, 1]));
    let sql = "select aggregate_type, aggregate_id, event_type, payload::json ->> 'amount', payload::json ->> 'completedAt'
        from transfer_events where event_id = $1";
    let row: (String, String, String, String, String) =
        sqlx::query_as(sql).bind(done.event_id).fetch_one(&stage.db).await.expect("its event");
    let id = done.transaction.id.to_string();
    assert_eq!(row, ("Transfer".into(), id, "TransferCompleted".into(), "300".into(), "7".into()));
}

/// T11: what is refused changes nothing, and transfers in both directions at once lose no won.
#[tokio::test(flavor = "multi_thread")]
async fn no_won_is_made_or_lost() {
    let stage = stage().await;
    let units = bank(&stage).await;
    let service = TransferService::new(units.clone());
    for (from, to, amount, wanted) in [
        ("a", "b", 1001, Refusal::TooLittle),
        ("a", "b", 0, Refusal::NoAmount),
        ("a", "a", 1, Refusal::SameAccount),
        ("a", "c", 1, Refusal::NoSuchAccount("c".into())),
    ] {
        let refused = service.transfer(command(from, to, amount), 7).await;
        assert!(
            matches!(&refused, Err(TransferError::Refused(refusal)) if *refusal == wanted),
            "{refused:?}"
        );
    }
    assert_eq!((balances(&units).await, counts(&stage).await), ([1000, 1000], [0, 0]));
    let mut tasks = tokio::task::JoinSet::new();
    for task in 0..8 {
        let service = service.clone();
        let (from, to) = if task % 2 == 0 { ("a", "b") } else { ("b", "a") };
        let amount = if task % 2 == 0 { 3 } else { 1 };
        tasks.spawn(async move {
            for _ in 0..10 {
                service.transfer(command(from, to, amount), 7).await.expect("it is covered");
            }
        });
    }
    tasks.join_all().await;
    assert_eq!((balances(&units).await, counts(&stage).await), ([920, 1080], [80, 80]));
}
