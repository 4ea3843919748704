//! What JSON Schema can't express, so the type itself is asked: it gets payloads to read, and the answers are marked in the schema.

mod denied;
mod keys;
mod objects;
mod reached;
mod repair;
mod values;
mod variants;

use serde_json::{Value, json};

use super::{PROBED, Schema, UNASKED, probes};

/// What a type writes after it read a payload, if that could be told, or why it did not read it.
pub(crate) type Answer = Result<Option<Value>, Unread>;

/// A payload that a type did not read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Unread {
    /// The error.
    pub(crate) said: String,
    /// How many bytes were left.
    pub(crate) left: usize,
}

/// A type that can be asked.
type Asked<'a> = &'a dyn Fn(&Value) -> Answer;

/// Marks in the schema of what a type writes what the schema does not tell.
pub(crate) fn mark_written(schema: &mut Value, asked: Asked<'_>) {
    if mark_values(schema, asked, false) {
        objects::mark_nulls(schema, asked);
    }
}

/// Marks in the schema of what a type reads what the schema does not tell.
pub(crate) fn mark_read(schema: &mut Value, asked: Asked<'_>) {
    if mark_values(schema, asked, true) {
        variants::mark(schema, asked);
        objects::mark_lost(schema, asked);
        denied::mark(schema, asked);
    }
}

/// Marks the schema of what a type writes if the type writes something else: it is read from a payload and written again, once for
/// each kind of each place of both schemas.
pub(crate) fn mark_otherwise(writes: &mut Value, reads: &Value, asked: Asked<'_>) {
    let otherwise = |payload: &Value| {
        let written = asked(payload).ok().flatten()?;
        (!Schema::new(writes).accepts(&written)).then_some(written)
    };
    let written = [&*writes, reads].into_iter().find_map(|schema| {
        otherwise(&Schema::new(schema).sample()).or_else(|| {
            reached::all(schema).iter().find_map(|(pointer, reached)| {
                let node = schema.pointer(pointer)?.clone();
                let kinds = reached.kinds(schema, pointer, node);
                kinds.iter().find_map(|value| otherwise(&reached.with(value)))
            })
        })
    });
    if let Some(written) = written {
        set(writes, "", UNASKED, json!({ "written": written }));
    }
}

/// Notes how many values the type was asked about: a later version may try more.
pub(crate) fn mark_probed(schema: &mut Value) {
    set(schema, "", PROBED, probes::counts());
}

/// What is the same on both sides of a type. Whether it could be asked: a type that reads no payload that was thought of tells nothing.
fn mark_values(schema: &mut Value, asked: Asked<'_>, is_read: bool) -> bool {
    if !repair::repair(schema, asked, is_read) {
        set(schema, "", UNASKED, json!(true));
        return false;
    }
    if is_read {
        objects::mark_required(schema, asked);
    }
    // Values of a map are found under a key that it reads.
    keys::mark(schema, asked);
    values::mark(schema, asked, is_read);
    true
}

/// Sets a keyword at a place.
fn set(schema: &mut Value, pointer: &str, keyword: &str, value: Value) {
    if let Some(Value::Object(node)) = schema.pointer_mut(pointer) {
        node.insert(keyword.to_owned(), value);
    }
}
