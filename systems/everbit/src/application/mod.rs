//! What everbit does, by ports of its own. It knows neither the database nor the exchange nor how messages travel.

pub mod backtests;
pub mod executor;
pub mod notices;
pub mod operations;
pub mod ports;
pub mod reconciler;
pub mod trading;

pub use backtests::Backtests;
pub use executor::{Executed, Executor};
pub use notices::Notices;
pub use operations::Operations;
pub use ports::{Answer, EventBus, Exchange, Fault, Push, Step, Steps, Transactions, Work};
pub use reconciler::{Reconciled, Reconciler};
pub use trading::Trading;
