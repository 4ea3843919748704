//! The schemas of a payload type: what it writes, and what it reads.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::model::PayloadSchema;
use crate::quiet::quietly;
use crate::report::exact_text;
use crate::schema::asked::{self, Answer, Unread};

/// The schemas of a type that is asked what JSON Schema can't express.
pub(crate) fn of<T: JsonSchema + Serialize + DeserializeOwned>() -> PayloadSchema {
    let (mut writes, mut reads) = sides::<T>();
    asked::mark_written(&mut writes, &answer::<T>);
    asked::mark_read(&mut reads, &answer::<T>);
    asked::mark_otherwise(&mut writes, &reads, &answer::<T>);
    asked::mark_probed(&mut writes);
    asked::mark_probed(&mut reads);
    joined(writes, reads)
}

/// The schemas of a type that can't be asked, because it is only written.
pub(crate) fn written_only<T: JsonSchema>() -> PayloadSchema {
    let (writes, reads) = sides::<T>();
    joined(writes, reads)
}

fn sides<T: JsonSchema>() -> (Value, Value) {
    let settings = SchemaSettings::draft2020_12;
    let writes = settings().for_serialize().into_generator().into_root_schema_for::<T>().to_value();
    let reads = settings().for_deserialize().into_generator().into_root_schema_for::<T>().to_value();
    (writes, reads)
}

fn joined(writes: Value, reads: Value) -> PayloadSchema {
    PayloadSchema { reads: (reads != writes).then_some(reads), writes }
}

/// What the type does with a payload.
fn answer<T: Serialize + DeserializeOwned>(payload: &Value) -> Answer {
    let text = exact_text(payload);
    let read = quietly(|| serde_json::from_str::<T>(&text).map(|read| serde_json::to_value(read).ok()));
    match read {
        Some(Ok(written)) => Ok(written),
        Some(Err(error)) => {
            Err(Unread { said: error.to_string(), left: text.len().saturating_sub(error.column()) })
        }
        None => Err(Unread::default()),
    }
}
