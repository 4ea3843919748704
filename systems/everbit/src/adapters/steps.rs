//! Steps of the executor: nothing in production, and a stop where a test wants to kill the process.

use std::env;

use crate::application::{Step, Steps};

/// Stops for ever at the step that `EVERBIT_HALT_AT` names, and says so on stdout: `halted at Requested`. Without it, nothing
/// happens at any step.
#[derive(Debug, Clone, Default)]
pub struct Halt(Option<String>);

impl Halt {
    /// As the environment says.
    pub fn from_environment() -> Self {
        Self(env::var("EVERBIT_HALT_AT").ok())
    }
}

impl Steps for Halt {
    async fn reach(&self, step: Step) {
        let name = format!("{step:?}");
        if self.0.as_ref() == Some(&name) {
            println!("halted at {name}");
            std::future::pending::<()>().await;
        }
    }
}
