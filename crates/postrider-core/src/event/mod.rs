//! What an event is, and the forms it has on its way.

mod bus;
pub(crate) mod cloud_event;
mod data_schemas;
mod envelope;
mod headers;
mod incoming_event;
mod info;
mod limits;
mod mapping;
mod new_event;
mod optional_attribute;
mod payload;
mod placeholder;
mod record_options;
pub(crate) mod recorded;
mod template;
mod trace;
mod traits;

pub use bus::EventBus;
pub use cloud_event::{Attributes, CloudEvents};
pub use data_schemas::DataSchemas;
pub use envelope::{Envelope, EnvelopeBuilder};
pub use headers::Headers;
pub use incoming_event::IncomingEvent;
pub use info::EventInfo;
pub use limits::Limits;
pub use mapping::{EventMapping, EventMappings};
pub use new_event::NewEvent;
pub use optional_attribute::OptionalAttribute;
pub use payload::Payload;
pub use record_options::RecordOptions;
pub use recorded::Recorded;
pub use template::Template;
pub use trace::Trace;
pub use traits::{Event, Recordable};
