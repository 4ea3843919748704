//! Steps of fraud detection: nothing in production, and a stop where a test wants to kill the process.

use std::env;

/// The step at which the risk logs of a batch are written, and its offsets are not committed.
pub const LOGGED: &str = "Logged";

/// Stops for ever at the step that `TRANSFERS_HALT_AT` names, and says so on stdout: `halted at Logged`. Without it, nothing happens at
/// any step.
#[derive(Debug, Clone, Default)]
pub struct Halt(Option<String>);

impl Halt {
    /// As the environment says.
    pub fn from_environment() -> Self {
        Self(env::var("TRANSFERS_HALT_AT").ok())
    }

    /// A step is reached.
    pub async fn reach(&self, step: &str) {
        if self.0.as_deref() == Some(step) {
            println!("halted at {step}");
            std::future::pending::<()>().await;
        }
    }
}
