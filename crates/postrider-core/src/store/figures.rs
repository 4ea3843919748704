//! How a subscription is doing, in numbers.

/// How many of a subscription's events of one stream are where.
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
    /// Failed and to be tried again, or waiting behind one that is.
    pub retrying: u64,
    /// Of those, how many have not failed themselves: they wait behind one that did.
    pub waiting: u64,
    /// Given up, until an operator acts.
    pub dead: u64,
    /// How long ago the oldest undelivered one was recorded, in seconds by the store's clock; 0 if there is none.
    pub oldest_seconds: f64,
    /// In how many seconds the next of those that failed is tried again, by the store's clock; nothing if none is to be. It may be due
    /// already.
    pub retry_in: Option<f64>,
    /// How often the undelivered ones were tried, taken together.
    pub attempts: u64,
}

impl Figures {
    /// Pending, processing and retrying together.
    pub fn undelivered(&self) -> u64 {
        self.pending + self.processing + self.retrying
    }
}
