//! A transaction: entries whose debits equal their credits.

use time::OffsetDateTime;

use super::journal::{JournalEntry, Side};
use super::refusal::{LONGEST_MEMO, Refusal};
use super::{AccountId, CASH, TransactionId};

/// What a transaction is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransactionType {
    /// Cash comes in.
    Deposit,
    /// Cash goes out.
    Withdrawal,
    /// From one customer to another.
    Transfer,
    /// Takes an earlier one back.
    Reversal,
}

impl TransactionType {
    const ALL: [Self; 4] = [Self::Deposit, Self::Withdrawal, Self::Transfer, Self::Reversal];

    /// As it is stored and sent.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Deposit => "DEPOSIT",
            Self::Withdrawal => "WITHDRAWAL",
            Self::Transfer => "TRANSFER",
            Self::Reversal => "REVERSAL",
        }
    }

    /// The type with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|each| each.as_str() == name)
    }
}

/// A transaction of the ledger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transaction {
    /// Its id.
    pub id: TransactionId,
    /// What it is.
    pub kind: TransactionType,
    /// What it takes back, if it is a reversal.
    pub reverses: Option<TransactionId>,
    /// What took it back.
    pub reversed_by: Option<TransactionId>,
    /// Its entries: debits equal credits.
    pub entries: Vec<JournalEntry>,
    /// What the customer wrote.
    pub memo: Option<String>,
    /// When it happened.
    pub occurred_at: OffsetDateTime,
}

impl Transaction {
    /// Cash for an account.
    pub fn deposit(
        id: TransactionId,
        to: AccountId,
        amount: i64,
        now: OffsetDateTime,
    ) -> Result<Self, Refusal> {
        customer(to)?;
        Self::new(id, TransactionType::Deposit, CASH, to, amount, now)
    }

    /// Cash from an account.
    pub fn withdrawal(
        id: TransactionId,
        from: AccountId,
        amount: i64,
        now: OffsetDateTime,
    ) -> Result<Self, Refusal> {
        customer(from)?;
        Self::new(id, TransactionType::Withdrawal, from, CASH, amount, now)
    }

    /// From one account to another.
    pub fn transfer(
        id: TransactionId,
        from: AccountId,
        to: AccountId,
        amount: i64,
        now: OffsetDateTime,
    ) -> Result<Self, Refusal> {
        customer(from)?;
        customer(to)?;
        if from == to {
            return Err(Refusal::SameAccount(from));
        }
        Self::new(id, TransactionType::Transfer, from, to, amount, now)
    }

    fn new(
        id: TransactionId,
        kind: TransactionType,
        from: AccountId,
        to: AccountId,
        amount: i64,
        occurred_at: OffsetDateTime,
    ) -> Result<Self, Refusal> {
        if amount <= 0 {
            return Err(Refusal::AmountNotPositive);
        }
        let entries = vec![
            JournalEntry { account: from, side: Side::Debit, amount },
            JournalEntry { account: to, side: Side::Credit, amount },
        ];
        Ok(Self { id, kind, reverses: None, reversed_by: None, entries, memo: None, occurred_at })
    }

    /// The same with what the customer wrote.
    pub fn with_memo(mut self, memo: Option<String>) -> Result<Self, Refusal> {
        if memo.as_ref().is_some_and(|memo| memo.len() > LONGEST_MEMO) {
            return Err(Refusal::MemoTooLong);
        }
        if memo.as_ref().is_some_and(|memo| memo.contains('\0')) {
            return Err(Refusal::MemoHasNul);
        }
        self.memo = memo;
        Ok(self)
    }

    /// The transaction that takes this one back, with mirrored entries. It exists once.
    pub fn reversal(&self, id: TransactionId, now: OffsetDateTime) -> Result<Self, Refusal> {
        if self.kind == TransactionType::Reversal {
            return Err(Refusal::ReversalOfReversal(self.id));
        }
        if let Some(by) = self.reversed_by {
            return Err(Refusal::AlreadyReversed(self.id, by));
        }
        let entries = self.entries.iter().map(JournalEntry::mirrored).collect();
        let (kind, reverses) = (TransactionType::Reversal, Some(self.id));
        Ok(Self { id, kind, reverses, reversed_by: None, entries, memo: None, occurred_at: now })
    }

    /// The entries of customers, by account: each is one event.
    pub fn legs(&self) -> Vec<&JournalEntry> {
        let mut legs: Vec<_> = self.entries.iter().filter(|entry| entry.account != CASH).collect();
        // Always in this order, so that two transfers in opposite directions don't wait for each other.
        legs.sort_by_key(|entry| entry.account);
        legs
    }

    /// Whether a request asks for this transaction once more.
    pub fn is_repeated_by(&self, other: &Self) -> bool {
        (self.id, self.kind, self.reverses, &self.entries, &self.memo)
            == (other.id, other.kind, other.reverses, &other.entries, &other.memo)
    }
}

fn customer(account: AccountId) -> Result<(), Refusal> {
    if account > CASH { Ok(()) } else { Err(Refusal::NoCustomer(account)) }
}
