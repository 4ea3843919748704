//! Fraud detection: analyses each transfer once, however often its event comes.

use std::collections::{HashMap, HashSet};

use uuid::Uuid;

use super::ports::{Fault, RiskLogs};
use crate::domain::RiskLog;
use crate::domain::risk::{Observed, analyze_transfer, since};

/// What became of a batch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Analysed {
    /// How many were analysed and kept.
    pub new: usize,
    /// How many of those somebody has to look at.
    pub flagged: usize,
    /// Those that had been analysed before, once for each time they came. Nothing was done for them.
    pub known: Vec<Uuid>,
}

/// Analyses batches of events.
#[derive(Debug, Clone)]
pub struct FraudService<R> {
    logs: R,
}

impl<R: RiskLogs> FraudService<R> {
    /// A service that keeps its results here.
    pub fn new(logs: R) -> Self {
        Self { logs }
    }

    /// Analyses events that come together, in their order. All of their results are kept, or none.
    pub async fn analyse(&self, events: Vec<Observed>) -> Result<Analysed, Fault> {
        let ids: Vec<Uuid> = events.iter().map(|event| event.event_id).collect();
        let mut seen: HashSet<Uuid> = self.logs.known(&ids).await?.into_iter().collect();
        let (mut fresh, mut analysed) = (Vec::new(), Analysed::default());
        for event in events {
            // An event may also come twice in one batch.
            if seen.insert(event.event_id) {
                fresh.push(event);
            } else {
                analysed.known.push(event.event_id);
            }
        }
        if fresh.is_empty() {
            return Ok(analysed);
        }
        let logged = self.logs.recent(&fresh).await?;
        let logs = analyse_all(fresh, &logged);
        // Another process may have been faster, while partitions moved from one to the other.
        let kept: HashSet<Uuid> = self.logs.keep(&logs).await?.into_iter().collect();
        for log in &logs {
            let id = log.observed.event_id;
            if kept.contains(&id) {
                analysed.new += 1;
                analysed.flagged += usize::from(log.is_flagged());
            } else {
                analysed.known.push(id);
            }
        }
        Ok(analysed)
    }
}

/// Counts for each event what its sender did within the window before it, in the logs and earlier in the batch: a batch may be a backlog
/// of hours.
fn analyse_all(events: Vec<Observed>, logged: &HashMap<Uuid, u32>) -> Vec<RiskLog> {
    let mut earlier: HashMap<String, Vec<i64>> = HashMap::new();
    let analyse = |event: Observed| {
        let at = event.transfer.completed_at;
        let times = earlier.entry(event.transfer.from_account.clone()).or_default();
        let within = times.iter().filter(|time| (since(at)..=at).contains(*time)).count();
        times.push(at);
        let logged = logged.get(&event.event_id).copied().unwrap_or_default();
        analyze_transfer(event, logged.saturating_add(u32::try_from(within).unwrap_or(u32::MAX)))
    };
    events.into_iter().map(analyse).collect()
}
