//! The read model of balances: what it does with a leg of a transaction.

use std::future::Future;

use crate::application::problem::Answer;
use crate::domain::{AccountId, TransactionId};

/// A leg of a transaction, as a consumer sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leg {
    /// The transaction.
    pub transaction: TransactionId,
    /// Whose leg it is.
    pub account: AccountId,
    /// What it does to the balance.
    pub change: i64,
    /// The currency.
    pub currency: String,
    /// Its number among the events of the account.
    pub sequence: i64,
}

impl Leg {
    /// What tells it from every other leg, whatever event it came in. The transaction alone would not do: a transfer has two legs.
    pub fn key(&self) -> String {
        format!("{}:{}", self.transaction, self.account)
    }
}

/// The read model of balances.
pub trait BalanceView: Send {
    /// Whether this key comes for the first time; it is known from now on.
    fn first_time(&mut self, key: &str) -> impl Future<Output = Answer<bool>> + Send;
    /// Adds a leg to the balance of its account.
    fn add(&mut self, leg: &Leg) -> impl Future<Output = Answer<()>> + Send;
}

/// Adds a leg to the read model once; whether it was new.
pub async fn project(leg: &Leg, view: &mut impl BalanceView) -> Answer<bool> {
    if !view.first_time(&leg.key()).await? {
        return Ok(false);
    }
    view.add(leg).await?;
    Ok(true)
}
