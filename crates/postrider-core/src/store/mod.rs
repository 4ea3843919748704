//! The contract with a database, by who calls it, and the words of that contract.
//!
//! | trait | who calls it |
//! |---|---|
//! | [`EventLog`] | the engine: claim a lane, read, settle |
//! | [`Inspect`] | people who look: the command line, a console, metrics |
//! | [`Operate`] | people who act, and retention |
//! | [`Coordinate`] | relays, about each other |

mod audit;
mod batch;
mod bell;
mod check;
mod clock;
mod coordinate;
mod event_log;
mod figures;
mod history;
mod inbox_key;
mod inspect;
mod leader_lease;
mod lease;
mod operate;
mod overview;
mod position;
mod relay_info;
mod replace;
mod replay;
mod search;
mod source;
mod state;
mod subscription_state;

pub use audit::{Audit, AuditEntry};
pub use batch::{BATCH_BYTES, Batch, ByteBudget, ReadEvent, Witness};
pub use bell::Bell;
pub use check::{Check, Severity};
pub use clock::{Clock, ManualClock};
pub use coordinate::Coordinate;
pub use event_log::{EventLog, Subscribed};
pub use figures::Figures;
pub use history::History;
pub use inbox_key::inbox_key;
pub use inspect::Inspect;
pub use leader_lease::LeaderLease;
pub use lease::{Lease, LeaseStatus};
pub use operate::{Operate, Relane};
pub use overview::{LaneInfo, Pause, Paused, SubscriptionInfo};
pub use position::Position;
pub use relay_info::{RelayAway, RelayInfo, RelayReport, RelayRun, refuse_to_remove};
pub use replace::ReplaceDead;
pub use replay::{Replay, ReplayFrom, ReplayRefusal, Replayed};
pub use search::{Chain, EventPage, EventQuery, LoggedEvent, Search};
pub use source::{Effect, OutboxSource};
pub use state::{EventState, State, StateQuery};
pub use subscription_state::{Away, SubscriptionState};

/// A database that keeps a log: all of its traits together.
///
/// Every guarantee of the four traits is a named test in `postrider-conformance`, which runs against every store. A type that
/// implements the four traits implements this one.
pub trait Store: EventLog + Inspect + Operate + Coordinate {}

impl<S: EventLog + Inspect + Operate + Coordinate> Store for S {}
