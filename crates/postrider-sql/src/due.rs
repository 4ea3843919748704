//! The deliveries of a lane that are to be tried now, as they are read.

use std::time::Duration;

use postrider_core::{ByteBudget, DeliveryState, Due, DueBatch, Lease, PastAttempt, Result};

use crate::clock::time_of;
use crate::columns::Columns;
use crate::event::Decoded;

/// What was read of them so far.
pub struct DueRows {
    now: i64,
    fill: ByteBudget,
    deliveries: Vec<Due>,
}

impl DueRows {
    /// Nothing yet; of so many bytes as the lease allows.
    pub fn new(lease: &Lease, now: i64) -> Self {
        Self { now, fill: ByteBudget::new(lease.bytes), deliveries: Vec::new() }
    }

    /// Takes a row of due.sql, whose first columns are the event; whether it fits.
    pub fn take(&mut self, row: &impl Columns, decoded: Decoded, op: &'static str) -> Result<bool> {
        let Decoded { event, unreadable } = decoded;
        let past = row.maybe_text("past", op)?;
        if !self.fill.takes(event.size() + past.as_ref().map_or(0, |past| past.len() as u64)) {
            return Ok(false);
        }
        self.deliveries.push(Due {
            event,
            state: row.text("state", op)?.parse::<DeliveryState>()?,
            attempts: row.small("attempts", op)?,
            first_failed_at: row.maybe_time("first_failed_at", op)?,
            error_code: row.maybe_text("error_code", op)?,
            past: past.as_deref().map(PastAttempt::decode).unwrap_or_default(),
            now: time_of(self.now),
            unreadable,
        });
        Ok(true)
    }

    /// All of them, from the row of due_next.sql: when to look again, and whether any of them holds.
    pub fn batch(self, next: &impl Columns, op: &'static str) -> Result<DueBatch> {
        let next_in = next.maybe_number("next_at", op)?.and_then(|next| u64::try_from(next - self.now).ok());
        Ok(DueBatch {
            deliveries: self.deliveries,
            next_in: next_in.map(Duration::from_micros),
            holds: next.flag("holds", op)?,
        })
    }
}
