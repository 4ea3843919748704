//! The counts and ages of a subscription's events.

/// Counts of a subscription's events in one stream, by state.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Figures {
    /// The subscription.
    pub subscription: String,
    /// The stream.
    pub stream: String,
    /// Not read yet.
    pub pending: u64,
    /// Read by the holder of a lane and not settled yet, or running.
    pub processing: u64,
    /// Failed and will be retried, or waiting for one that will.
    pub retrying: u64,
    /// Of those, the ones that have not failed themselves, and wait for one that did.
    pub waiting: u64,
    /// Of the waiting ones, those with no earlier event in front of them, as after a relay gave them back. They are delivered next, then
    /// those behind them.
    pub due: u64,
    /// Dead, until an operator acts.
    pub dead: u64,
    /// Age of the oldest undelivered event in seconds, by the store's clock; 0 if there is none.
    pub oldest_seconds: f64,
    /// Age of the oldest pending event in seconds, by the store's clock; 0 if there is none. Until it is read, retention keeps it and all
    /// newer ones.
    pub oldest_pending_seconds: f64,
    /// Seconds until the next retry, by the store's clock; `None` if there is none. It may already be due.
    pub retry_in: Option<f64>,
    /// Attempts of all undelivered events together.
    pub attempts: u64,
}

impl Figures {
    /// Pending, processing and retrying together.
    pub fn undelivered(&self) -> u64 {
        self.pending + self.processing + self.retrying
    }

    /// Attempts of an undelivered event, on average; 0 if there is none.
    pub fn mean_attempts(&self) -> f64 {
        match self.undelivered() {
            0 => 0.0,
            undelivered => self.attempts as f64 / undelivered as f64,
        }
    }
}
