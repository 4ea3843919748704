//! The envelope, field for field as the document has it.

use postrider::{CloudEvents, Envelope, Recorded, Result};

/// The template: the same fields are in `everbit.toml`, for sinks.
pub fn template() -> Result<Envelope> {
    Envelope::builder()
        .field("schemaVersion", "{schema_version}")
        .field("eventId", "{id}")
        .field("type", "{event_type}")
        .field("occurredAt", "{time}")
        .field("traceId", "{trace_id}")
        .field("ownerId", "{header.owner}")
        .field("strategyKey", "{header.strategy}")
        .field("market", "{header.market}")
        .field("payload", "{payload}")
        .build()
}

/// An event in its envelope, as JSON.
pub fn render(event: &Recorded) -> Result<String> {
    Ok(template()?.to_json(&CloudEvents::default(), event))
}
