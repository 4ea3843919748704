//! The JSON object that a sink writes: `[sink.NAME.envelope]`.

use postrider::Envelope;
use postrider::store::EnvelopeBuilder;
use toml::{Table, Value};

use super::{Problem, Section};

/// The key of the table, and the word for it in `format`.
pub(crate) const KEY: &str = "envelope";

/// The fields of an envelope.
#[derive(Debug, Clone)]
pub(crate) struct EnvelopeTable {
    /// As they are in the file.
    pub(crate) fields: Table,
    /// Ready to be filled.
    pub(crate) envelope: Envelope,
}

impl EnvelopeTable {
    /// Reads the table, which must be there where the format asks for it, and only there.
    pub(crate) fn read(section: &mut Section<'_>, asked: bool) -> Result<Option<Self>, Problem> {
        let fields = match (section.table(KEY)?, asked) {
            (None, false) => return Ok(None),
            (Some(fields), true) => fields,
            (None, true) => {
                let what = "it is required with format = \"envelope\"; for example envelope = { id = \"{id}\", payload = \"{payload}\" }";
                return Err(section.problem(KEY, what));
            }
            (Some(_), false) => {
                return Err(section.problem(KEY, "it works only with format = \"envelope\"; set that, too"));
            }
        };
        let envelope = builder(&fields, KEY).and_then(|builder| {
            builder.build().map_err(|error| (KEY.to_owned(), error.message().to_owned()))
        });
        match envelope {
            Ok(envelope) => Ok(Some(Self { fields, envelope })),
            Err((key, what)) => Err(section.problem(&key, what)),
        }
    }
}

/// The fields in their order. *On failure*: the key, and what is wrong with it.
fn builder(fields: &Table, path: &str) -> Result<EnvelopeBuilder, (String, String)> {
    let mut builder = Envelope::builder();
    for (name, value) in fields {
        let path = format!("{path}.{name}");
        builder = match value {
            Value::String(text) => builder.field(name, text),
            Value::Table(inner) => builder.object(name, self::builder(inner, &path)?),
            Value::Integer(number) => builder.constant(name, number),
            Value::Float(number) if number.is_finite() => builder.constant(name, number),
            Value::Boolean(flag) => builder.constant(name, flag),
            Value::Float(_) | Value::Datetime(_) | Value::Array(_) => {
                let what = "it must be text, a number, true or false, or a table of such";
                return Err((path, what.to_owned()));
            }
        };
    }
    Ok(builder)
}
