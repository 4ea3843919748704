//! A transfer that has happened: one debit and one credit.

use uuid::Uuid;

use super::{Account, Refusal};

/// A transfer between two accounts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transaction {
    /// Its id.
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
        Ok(Self { id: Uuid::now_v7(), from_account, to_account, amount, memo, completed_at: now })
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
        let done = Transaction::between(&mut from, &mut to, 500, String::new(), 7).expect("it is covered");
        assert_eq!((from.balance, to.balance, done.amount, done.completed_at), (0, 510, 500, 7));
        let refused = Transaction::between(&mut from, &mut to, 1, String::new(), 7);
        assert_eq!(refused, Err(Refusal::TooLittle));
        for amount in [0, -5] {
            let refused = Transaction::between(&mut from, &mut to, amount, String::new(), 7);
            assert_eq!(refused, Err(Refusal::NoAmount));
        }
        assert_eq!((from.balance, to.balance), (0, 510));
    }
}
