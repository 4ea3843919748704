//! What the demo saw, and what it says of it.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use postrider::{Received, Uuid};

use super::shop::{Figures, OrderChanged};

/// What happened, as the demo itself saw it.
#[derive(Default)]
pub(crate) struct Tally {
    committed: Mutex<HashSet<Uuid>>,
    pub(crate) rolled_back: AtomicU64,
    mails: Mutex<Vec<(Uuid, String, i64)>>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Tally {
    pub(crate) fn committed(&self, event: Uuid) {
        locked(&self.committed).insert(event);
    }

    pub(crate) fn mailed(&self, event: &Received<OrderChanged>) {
        locked(&self.mails).push((event.event().event_id, event.order.clone(), event.version));
    }

    pub(crate) fn mails(&self) -> u64 {
        locked(&self.mails).len() as u64
    }
}

/// Prints the summary; whether every promise held.
pub(crate) fn print(tally: &Tally, figures: &Figures, file: &Path, took: Duration) -> bool {
    let committed = locked(&tally.committed);
    let mails = locked(&tally.mails);
    let mut seen: HashSet<Uuid> = HashSet::new();
    let mut last: HashMap<&str, i64> = HashMap::new();
    let mut out_of_order = figures.out_of_order;
    for (event, order, version) in mails.iter() {
        if seen.insert(*event) {
            let before = last.insert(order, *version).unwrap_or(0);
            out_of_order += i64::from(*version <= before);
        }
    }
    let recorded = committed.len();
    let missing = committed.difference(&seen).count();
    let lost = missing - figures.dead.len().min(missing);
    let invented = seen.difference(&committed).count();
    let twice = figures.receipts - figures.distinct_receipts;
    println!();
    println!(
        "  recorded      {recorded:>6}   events, {} transactions rolled back",
        tally.rolled_back.load(Ordering::Relaxed)
    );
    println!(
        "  receipts      {:>6}   {twice} of them twice, {} events that follow",
        figures.receipts, figures.follow_ups
    );
    println!(
        "  mails         {:>6}   {} of them again: what relay 1 had in its hands; {} after a retry",
        mails.len(),
        mails.len() - seen.len(),
        figures.retried
    );
    let why = figures.dead.first().map(|(order, why)| format!("{order}: {why}")).unwrap_or_default();
    println!("  dead          {:>6}   {why}", figures.dead.len());
    println!("  lost          {lost:>6}");
    println!("  invented      {invented:>6}   events of transactions that were rolled back");
    println!("  out of order  {out_of_order:>6}   within an order");
    let recorded = i64::try_from(recorded).unwrap_or(i64::MAX);
    let held = lost == 0 && invented == 0 && out_of_order == 0 && twice == 0;
    let held = held && figures.receipts == recorded && figures.follow_ups == recorded;
    println!();
    println!(
        "  {} in {:.1} s",
        if held { "Every promise held," } else { "A promise was BROKEN," },
        took.as_secs_f64()
    );
    println!(
        "  Look around: sqlite3 {} \"select subscription, state, count(*) from postrider_event_state group by 1, 2\"",
        file.display()
    );
    held
}
