//! Decodes a payload into the type that a handler takes.

use postrider_core::{Payload, Recorded};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::Failure;

/// A type that a handler can receive: anything that `serde` can deserialize from JSON, or [`Raw`] for the raw payload.
#[diagnostic::on_unimplemented(
    message = "`{Self}` can't be received by a handler: it does not implement `serde::Deserialize`",
    label = "no `serde::Deserialize`",
    note = "derive it: `#[derive(serde::Deserialize)]`; or receive the payload as it is, as `Received<Raw>`"
)]
pub trait Decode: Sized + Send + 'static {
    /// Decodes the payload; `newer` is the result of upcasters, if there was one.
    fn decode(event: &Recorded, newer: Option<Value>) -> Result<Self, Failure>;
}

impl<T: DeserializeOwned + Send + 'static> Decode for T {
    fn decode(event: &Recorded, newer: Option<Value>) -> Result<Self, Failure> {
        if let Some(value) = newer {
            return serde_path_to_error::deserialize(value).map_err(|error| refused(event, &error));
        }
        let Some(json) = event.payload.as_json() else {
            return Err(undecodable(event, "its payload is not JSON; receive it as Raw"));
        };
        let mut runtime = serde_json::Deserializer::from_str(json);
        // Twice in the rare case: keeping track of the path costs more than reading does.
        match T::deserialize(&mut runtime).and_then(|value| runtime.end().map(|()| value)) {
            Ok(value) => Ok(value),
            Err(plain) => {
                let mut runtime = serde_json::Deserializer::from_str(json);
                match serde_path_to_error::deserialize::<_, T>(&mut runtime) {
                    Err(error) => Err(refused(event, &error)),
                    Ok(_) => Err(undecodable(event, &reason(&plain))),
                }
            }
        }
    }
}

/// A raw payload: JSON text, or bytes with their content type. It fits handlers of many types, or of none that Rust knows.
///
/// ```
/// use postrider::{Failure, Raw, Received, Relay, testing::Outbox};
///
/// async fn audit(event: Received<Raw>) -> Result<(), Failure> {
///     println!("{}: {} bytes", event.event().event_type, event.0.as_bytes().len());
///     Ok(())
/// }
///
/// let relay = Relay::new(&Outbox::new()).subscribe("audit", |s| s.on_other(audit));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Raw(pub Payload);

impl Decode for Raw {
    fn decode(event: &Recorded, newer: Option<Value>) -> Result<Self, Failure> {
        Ok(Self(match newer {
            Some(value) => Payload::Json(value.to_string()),
            None => event.payload.clone(),
        }))
    }
}

fn refused(event: &Recorded, error: &serde_path_to_error::Error<serde_json::Error>) -> Failure {
    let path = error.path().to_string();
    let reason = reason(error.inner());
    if path == "." {
        undecodable(event, &reason)
    } else {
        undecodable(event, &format!("field {path}: {reason}"))
    }
}

fn undecodable(event: &Recorded, reason: &str) -> Failure {
    let message =
        format!("can't decode {} (version {}): {reason}", event.event_type, event.headers.schema_version());
    Failure::reject(message).code("undecodable")
}

/// What is wrong, without what the payload says: the text of an error may quote it.
fn reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let place = text.rfind(" at line ").map_or("", |at| &text[at..]);
    let core = &text[..text.len() - place.len()];
    if core.starts_with("missing field")
        || core.starts_with("duplicate field")
        || core.starts_with("unknown field")
    {
        return core.split(", expected").next().unwrap_or(core).to_owned();
    }
    if let Some(at) = core.rfind(", expected ") {
        return format!("expected {}", &core[at + ", expected ".len()..]);
    }
    if error.is_syntax() || error.is_eof() {
        format!("it is not valid JSON{place}")
    } else {
        "its type rejects it".to_owned()
    }
}
