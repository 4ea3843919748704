//! A transfer that has happened: one debit and one credit.

use uuid::Uuid;

use super::{Account, Refusal};

/// A transfer between two accounts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transaction {
    /// Its id, chosen by who asks for it: the same id is the same transfer.
    pub id: Uuid,
    /// The sender's account.
    pub from_account: String,
    /// The receiver's account.
    pub to_account: String,
    /// In won.
    pub amount: i64,
    /// What the sender wrote to the receiver.
    pub memo: String,
    /// When, in milliseconds since 1970.
    pub completed_at: i64,
}

impl Transaction {
    /// Moves the amount from one account to the other.
    pub fn between(
        id: Uuid,
        from: &mut Account,
        to: &mut Account,
        amount: i64,
        memo: String,
        now: i64,
    ) -> Result<Self, Refusal> {
        if amount <= 0 {
            return Err(Refusal::NoAmount);
        }
        from.debit(amount)?;
        to.credit(amount)?;
        let (from_account, to_account) = (from.id.clone(), to.id.clone());
        Ok(Self { id, from_account, to_account, amount, memo, completed_at: now })
    }

    /// Whether somebody who asks for this transfer, asks for the same once more.
    pub fn is_repeated_by(&self, from: &str, to: &str, amount: i64, memo: &str) -> bool {
        (self.from_account.as_str(), self.to_account.as_str(), self.amount, self.memo.as_str())
            == (from, to, amount, memo)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account(id: &str, balance: i64) -> Account {
        Account { id: id.to_owned(), balance }
    }

    /// T11: what one loses the other gets.
    #[test]
    fn an_amount_leaves_one_account_and_reaches_the_other() {
        let (mut from, mut to) = (account("a", 500), account("b", 10));
        let id = Uuid::now_v7();
        let mut moved = |amount| Transaction::between(id, &mut from, &mut to, amount, String::new(), 7);
        let done = moved(500).expect("it is covered");
        assert_eq!((done.id, done.amount, done.completed_at), (id, 500, 7));
        assert_eq!(moved(1), Err(Refusal::TooLittle));
        for amount in [0, -5] {
            assert_eq!(moved(amount), Err(Refusal::NoAmount));
        }
        assert_eq!((from.balance, to.balance), (0, 510));
    }
}
