//! The shop itself: its customers and its events.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use postrider::NewEvent;
use serde::{Deserialize, Serialize};

use super::demo_store::DemoStore;
use super::fault::CUSTOMER;
use crate::Failure;

/// Where every mail fails.
pub(crate) const NOWHERE: &str = "nobody@nowhere.invalid";

/// How many tills record at once, and how long each pauses.
const TILLS: u64 = 4;
const PAUSE: Duration = Duration::from_millis(45);
/// As many as the database has.
const CUSTOMERS: u64 = 16;

/// What a customer did, as the events say it: `OrderPlaced`, then `OrderPaid`.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Change {
    pub(crate) customer: String,
    /// Counts the customer's changes, from 1 on: what the order of events is compared with.
    pub(crate) number: i64,
    pub(crate) address: String,
}

impl Change {
    fn event(&self) -> postrider::Result<NewEvent> {
        let (stream, event_type) =
            if self.number % 2 == 1 { ("orders", "OrderPlaced") } else { ("payments", "OrderPaid") };
        NewEvent::of(stream, event_type, "Customer", &self.customer, self)
    }
}

/// What a customer is about to do.
pub(crate) struct Sale {
    pub(crate) customer: String,
    pub(crate) address: String,
    /// Whether the transaction is rolled back.
    pub(crate) regretted: bool,
}

impl Sale {
    /// What it is recorded as, being the customer's change of that number.
    pub(crate) fn event(&self, number: i64) -> postrider::Result<NewEvent> {
        let (customer, address) = (self.customer.clone(), self.address.clone());
        Change { customer, number, address }.event()
    }
}

/// The shop, as the process has it that sells.
#[derive(Clone)]
pub(crate) struct Shop<P> {
    pub(crate) store: P,
    doors: Arc<Doors>,
}

/// What the tills look at before each sale.
#[derive(Default)]
struct Doors {
    closed: AtomicBool,
    stranger: AtomicBool,
}

impl<P: DemoStore> Shop<P> {
    pub(crate) fn new(store: P) -> Self {
        Self { store, doors: Arc::default() }
    }

    /// Lets the tills sell until the shop is closed.
    pub(crate) fn sell(&self) -> tokio::task::JoinSet<Result<(), Failure>> {
        (0..TILLS).map(|till| self.clone().sell_at(till)).collect()
    }

    /// No more sales.
    pub(crate) fn close(&self) {
        self.doors.closed.store(true, Ordering::Release);
    }

    /// The next customer's address does not exist.
    pub(crate) fn let_a_stranger_in(&self) {
        self.doors.stranger.store(true, Ordering::Release);
    }

    async fn sell_at(self, till: u64) -> Result<(), Failure> {
        let mut sale = 0;
        while !self.doors.closed.load(Ordering::Acquire) {
            let customer = format!("customer-{}", (sale * 7 + till * 5) % CUSTOMERS);
            let regretted = (sale + till) % 10 == 9;
            let is_stranger =
                !regretted && customer != CUSTOMER && self.doors.stranger.swap(false, Ordering::AcqRel);
            let address = if is_stranger { NOWHERE.to_owned() } else { format!("{customer}@shop.example") };
            self.store.sell(Sale { customer, address, regretted }).await?;
            sale += 1;
            tokio::time::sleep(PAUSE).await;
        }
        Ok(())
    }
}
