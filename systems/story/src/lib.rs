//! What the five systems share when somebody runs them: the story in the terminal, stubs of the outside world, the programs, and the
//! check that domain code imports ports of its own alone.
//!
//! The processes of a system use it for their set-up (`logs`, `serve`, `metrics`). The domain of a system must not know it.

pub mod imports;
pub mod kept;
pub mod metrics;
pub mod narrator;
pub mod options;
pub mod process;
pub mod stub;
pub mod topics;

pub use kept::Kept;
pub use narrator::Story;
pub use options::Options;
pub use postrider_testkit as testkit;
pub use stub::{Request, Stub};
