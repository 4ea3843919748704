//! Eight writers that change accounts, each in transactions of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use postrider::Uuid;
use tokio::task::JoinSet;

use crate::dice::Dice;
use crate::test_store::{Change, TestStore};

const WRITERS: u64 = 8;
const ACCOUNTS: u64 = 12;

/// Writers at work.
pub struct Writers {
    stop: Arc<AtomicBool>,
    tasks: JoinSet<Vec<Uuid>>,
}

impl Writers {
    /// Eight writers that go on until they are told to stop. One in ten transactions is rolled back; one in five stays open
    /// for a while after it has recorded.
    pub fn start<G: TestStore>(test_store: &G) -> Self {
        Self::with_pause(test_store, 80)
    }

    /// The same, each resting for up to so many milliseconds between its transactions.
    pub fn with_pause<G: TestStore>(test_store: &G, pause: u64) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let mut tasks = JoinSet::new();
        for number in 0..WRITERS {
            let (test_store, stop) = (test_store.clone(), Arc::clone(&stop));
            tasks.spawn(async move {
                let mut dice = Dice::new(1 + number);
                let mut committed = Vec::new();
                while !stop.load(Ordering::Acquire) {
                    committed.extend(transaction(&test_store, &mut dice).await);
                    tokio::time::sleep(dice.millis(pause)).await;
                }
                committed
            });
        }
        Self { stop, tasks }
    }

    /// Lets them finish, and gives what they know to be committed.
    pub async fn stop(self) -> Vec<Uuid> {
        self.stop.store(true, Ordering::Release);
        self.tasks.join_all().await.into_iter().flatten().collect()
    }
}

async fn transaction<G: TestStore>(test_store: &G, dice: &mut Dice) -> Option<Uuid> {
    let hold = if dice.one_in(5) { dice.millis(test_store.longest_hold()) } else { Duration::ZERO };
    let account = format!("account {}", dice.below(ACCOUNTS));
    let change = Change { account, hold, give_up: dice.one_in(10), poison: false };
    // A transaction that fails, or whose commit is in doubt, is none that a writer knows of.
    test_store.change(&change).await.ok().flatten()
}
