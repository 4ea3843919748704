//! One transaction of the ledger as one transaction of the database, tried again when others were faster.

use time::OffsetDateTime;

use crate::application::port::{LedgerPort, UnitOfWork};
use crate::application::problem::{Answer, Problem};
use crate::application::service::outbox_event_recorder::OutboxEventRecorder;
use crate::domain::TransactionId;
use crate::domain::refusal::Refusal;
use crate::domain::transaction::Transaction;

/// How often a posting is tried when others change the same balance meanwhile.
pub const TRIES: u32 = 3;

/// What became of a posting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Receipt {
    /// The transaction.
    pub transaction: TransactionId,
    /// How often it was tried: one more than others were faster.
    pub tries: u32,
    /// Whether an earlier request had posted it.
    pub repeated: bool,
}

/// What is to be posted.
pub(super) enum Draft {
    /// This.
    Ready(Transaction),
    /// The reversal of a transaction, which must be read first.
    Reversal { id: TransactionId, of: TransactionId, now: OffsetDateTime },
}

/// Posts it: all of it, or nothing.
pub(super) async fn post<L: LedgerPort>(ledger: &L, draft: &Draft) -> Answer<Receipt> {
    let mut tries = 1;
    loop {
        match attempt(ledger, draft).await {
            Ok(transaction) => return Ok(Receipt { transaction, tries, repeated: false }),
            Err(Stop::Repeated(transaction)) => return Ok(Receipt { transaction, tries, repeated: true }),
            Err(Stop::Problem(Problem::Conflict)) if tries < TRIES => tries += 1,
            Err(Stop::Problem(problem)) => return Err(problem),
        }
    }
}

/// One try, in a unit of work of its own: whatever stops it takes back all of it, also the events.
async fn attempt<L: LedgerPort>(ledger: &L, draft: &Draft) -> Result<TransactionId, Stop> {
    let mut unit = ledger.begin().await?;
    let transaction = book(&mut unit, draft).await?;
    unit.commit().await?;
    Ok(transaction.id)
}

/// Why a posting ends before its commit.
enum Stop {
    /// An earlier request had posted it.
    Repeated(TransactionId),
    Problem(Problem),
}

impl From<Problem> for Stop {
    fn from(problem: Problem) -> Self {
        Self::Problem(problem)
    }
}

impl From<Refusal> for Stop {
    fn from(refusal: Refusal) -> Self {
        Self::Problem(refusal.into())
    }
}

async fn book<U: UnitOfWork>(unit: &mut U, draft: &Draft) -> Result<Transaction, Stop> {
    let transaction = drafted(unit, draft).await?;
    let mut balances = Vec::new();
    for leg in transaction.legs() {
        balances.push(unit.balance(leg.account).await?.after(leg)?);
    }
    unit.save_transaction(&transaction).await?;
    unit.save_entries(&transaction).await?;
    if let Some(original) = transaction.reverses {
        unit.mark_reversed(original, transaction.id).await?;
    }
    for balance in &balances {
        unit.save_balance(balance).await?;
    }
    OutboxEventRecorder::record(unit, &transaction).await?;
    Ok(transaction)
}

/// The transaction to post. One that is posted already is not posted again.
async fn drafted<U: UnitOfWork>(unit: &mut U, draft: &Draft) -> Result<Transaction, Stop> {
    match draft {
        Draft::Ready(transaction) => match unit.find_transaction(transaction.id).await? {
            Some(known) if known.is_repeated_by(transaction) => Err(Stop::Repeated(known.id)),
            Some(known) => Err(Refusal::IdTaken(known.id).into()),
            None => Ok(transaction.clone()),
        },
        Draft::Reversal { id, of, now } => match unit.find_transaction(*id).await? {
            Some(known) if known.reverses == Some(*of) => Err(Stop::Repeated(*id)),
            Some(known) => Err(Refusal::IdTaken(known.id).into()),
            None => {
                let original = unit.find_transaction(*of).await?;
                let original = original.ok_or(Refusal::UnknownTransaction(*of))?;
                Ok(original.reversal(*id, *now)?)
            }
        },
    }
}
