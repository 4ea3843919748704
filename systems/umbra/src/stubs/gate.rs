//! A gate in front of an answer: a stub that is held has done its work and answers later.

use tokio::sync::watch;

/// A gate. Clones share its state.
#[derive(Debug, Clone)]
pub struct Gate(watch::Sender<bool>);

impl Default for Gate {
    fn default() -> Self {
        Self(watch::Sender::new(false))
    }
}

impl Gate {
    /// Closes it, or opens it for everybody who waits.
    pub fn hold(&self, held: bool) {
        self.0.send_replace(held);
    }

    /// Waits until it is open.
    pub async fn pass(&self) {
        let mut held = self.0.subscribe();
        // The sender lives as long as this does.
        let _ = held.wait_for(|held| !held).await;
    }
}
