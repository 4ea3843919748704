//! The words of Postrider, and nothing that does I/O.
//!
//! An [`Event`] is recorded once, in the transaction that changes the application's data, and is never
//! changed afterwards. A [`Subscription`] is a set of positions in that log, one per lane. A [`Store`]
//! keeps the log in a database, a [`Desk`] is its side for operators; each store crate (`postrider-postgres`, `postrider-sqlite`) implements it.
//!
//! The life of an event uses one word per stage everywhere: **record → read → deliver → settle → archive**.

mod audit;
mod batch;
mod bell;
mod bus;
mod catalog;
mod check;
mod clock;
mod cloud_event;
mod cloud_event_in;
mod condition;
mod delivery;
mod desk;
mod duty;
mod error;
mod event;
mod excerpt;
mod figures;
mod filing;
mod headers;
mod lease;
mod limits;
mod mask;
mod new_event;
mod outcome;
mod overview;
mod past_attempt;
mod payload;
mod position;
mod recorded;
mod relay_info;
mod replay;
mod retry;
mod search;
mod settlement;
mod sink;
mod source;
mod state;
mod stopped;
mod store;
mod stuck;
mod subscription;
mod sweep;
mod template;
mod trace;

pub use audit::{Audit, AuditEntry};
pub use batch::{BATCH_BYTES, Batch, Fill, ReadEvent};
pub use bell::Bell;
pub use bus::EventBus;
pub use catalog::{Catalog, Entry};
pub use check::{Check, Verdict};
pub use clock::{Clock, ManualClock};
pub use cloud_event::{Attributes, CloudEvents};
pub use cloud_event_in::Arrival;
pub use condition::{Away, Condition};
pub use delivery::{Amend, DeliveryChange, DeliveryFailure, DeliveryState, Due, DueBatch, EventRef};
pub use desk::Desk;
pub use duty::Duty;
pub use error::{Error, ErrorKind, Result};
pub use event::{Event, Recordable};
pub use excerpt::Excerpt;
pub use figures::Figures;
pub use filing::{Field, Filing, Target};
pub use headers::Headers;
pub use lease::{Lease, Standing};
pub use limits::Limits;
pub use mask::Mask;
pub use new_event::NewEvent;
pub use outcome::{Outcome, Unavailable};
pub use overview::{LaneInfo, Pause, Paused, SubscriptionInfo};
pub use past_attempt::{PastAttempt, PastAttempts};
pub use payload::Payload;
pub use position::Position;
pub use recorded::Recorded;
pub use relay_info::{RelayAway, RelayInfo, RelayReport, RelayRun, refuse_to_remove};
pub use replay::{Replay, ReplayFrom, ReplayRefusal, Replayed};
pub use retry::Retry;
pub use search::{Chain, EventQuery, Found, Logged, Search};
pub use settlement::{Settlement, UNWRITABLE};
pub use sink::{Attempt, Delivery, Report, Requests, Sink};
pub use source::{Effect, Source};
pub use state::{EventState, State, StateQuery};
pub use stopped::Stopped;
pub use store::{Relane, Store, Subscribed};
pub use stuck::{Stuck, StuckQuery};
pub use subscription::{Filter, OnDead, Order, Pattern, Start, Subscription};
pub use sweep::{Pacing, Sweep, Sweepable, Swept, month_of};
pub use template::Template;
pub use trace::Trace;

#[doc(no_inline)]
pub use time::OffsetDateTime;
#[doc(no_inline)]
pub use uuid::Uuid;
