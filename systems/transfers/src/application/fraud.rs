//! Fraud detection: analyses each transfer once, however often its event comes.

use std::collections::{HashMap, HashSet};

use uuid::Uuid;

use super::ports::{Fault, RiskLogs};
use crate::domain::risk::{Observed, WINDOW, analyze_transfer};
use crate::domain::{RiskLog, TransferCompleteEvent};

/// What became of a batch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Analysed {
    /// How many were analysed and kept.
    pub new: usize,
    /// How many of those somebody has to look at.
    pub flagged: usize,
    /// Those that had been analysed before. Nothing was done for them.
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
        let known: HashSet<Uuid> = self.logs.known(&ids).await?.into_iter().collect();
        let fresh: Vec<Observed> =
            events.into_iter().filter(|event| !known.contains(&event.event_id)).collect();
        let mut analysed = Analysed { known: known.into_iter().collect(), ..Analysed::default() };
        let Some(oldest) = fresh.iter().map(|event| event.transfer.completed_at).min() else {
            return Ok(analysed);
        };
        let senders: HashSet<&str> = fresh.iter().map(|event| event.transfer.from_account.as_str()).collect();
        let senders: Vec<&str> = senders.into_iter().collect();
        let recent = self.logs.recent(&senders, oldest - WINDOW).await?;
        let logs = analyse_all(fresh, recent);
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

fn analyse_all(events: Vec<Observed>, mut recent: HashMap<String, u32>) -> Vec<RiskLog> {
    let analyse = |event: Observed| {
        let TransferCompleteEvent { from_account, .. } = &event.transfer;
        let count = recent.entry(from_account.clone()).or_default();
        let before = *count;
        *count += 1;
        analyze_transfer(event, before)
    };
    events.into_iter().map(analyse).collect()
}
