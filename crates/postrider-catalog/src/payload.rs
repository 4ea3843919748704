//! The schemas of a payload type: what it writes, and what it reads.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::Value;

use crate::model::PayloadSchema;
use crate::schema::asked;

/// The schemas of a type. `reads` tries the type on a JSON text: what JSON Schema can't express is found that way.
pub(crate) fn of<T: JsonSchema>(reads: impl Fn(&str) -> bool) -> PayloadSchema {
    let settings = SchemaSettings::draft2020_12;
    let reads = |value: &Value| reads(&value.to_string());
    let mut writes = settings().for_serialize().into_generator().into_root_schema_for::<T>().to_value();
    let mut read = settings().for_deserialize().into_generator().into_root_schema_for::<T>().to_value();
    asked::mark_values(&mut writes, &reads);
    asked::mark(&mut read, reads);
    PayloadSchema { reads: (read != writes).then_some(read), writes }
}
