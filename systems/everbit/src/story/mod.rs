//! Acts everbit out: the processes, what happens to them, and what is counted at the end.

pub mod cast;
pub mod counts;
pub mod kills;
mod script;
pub mod ticker;

pub use script::tell;
