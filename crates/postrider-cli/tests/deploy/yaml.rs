//! A YAML file as JSON values.

use std::collections::HashMap;

use saphyr_parser::{Event, Parser, ScalarStyle};
use serde_json::{Map, Value};

/// What is being read: a list, or a table with the key whose value comes next.
enum Open {
    List(usize, Vec<Value>),
    Table(usize, Map<String, Value>, Option<String>),
}

/// Reads one document, in which every scalar is text; or says what is wrong with it.
pub(crate) fn parse(text: &str) -> Result<Value, String> {
    let mut documents = read(text, |text, _| Value::String(text.to_owned()))?;
    match (documents.pop(), documents.is_empty()) {
        (Some(document), true) => Ok(document),
        (Some(_), false) => Err("more than one document".to_owned()),
        (None, _) => Err("nothing".to_owned()),
    }
}

/// Reads all documents, with numbers and truths as such where they are not quoted, as Kubernetes does.
pub(crate) fn parse_typed(text: &str) -> Result<Vec<Value>, String> {
    read(text, |text, plain| match text {
        "true" if plain => Value::Bool(true),
        "false" if plain => Value::Bool(false),
        "null" | "~" | "" if plain => Value::Null,
        text if plain => text.parse::<i64>().map_or_else(|_| Value::String(text.to_owned()), Value::from),
        text => Value::String(text.to_owned()),
    })
}

fn read(text: &str, scalar: impl Fn(&str, bool) -> Value) -> Result<Vec<Value>, String> {
    let (mut open, mut anchors, mut documents) = (Vec::new(), HashMap::new(), Vec::new());
    for event in Parser::new_from_str(text) {
        let (event, _) = event.map_err(|error| error.to_string())?;
        let (anchor, value) = match event {
            Event::SequenceStart(anchor, _) => {
                open.push(Open::List(anchor, Vec::new()));
                continue;
            }
            Event::MappingStart(anchor, _) => {
                open.push(Open::Table(anchor, Map::new(), None));
                continue;
            }
            Event::SequenceEnd | Event::MappingEnd => match open.pop() {
                Some(Open::List(anchor, values)) => (anchor, Value::Array(values)),
                Some(Open::Table(anchor, table, _)) => (anchor, Value::Object(table)),
                None => return Err("an end without a beginning".to_owned()),
            },
            Event::Scalar(text, style, anchor, _) => {
                // A key is a name, whatever it looks like.
                let is_key = matches!(open.last(), Some(Open::Table(_, _, None)));
                let value = match is_key {
                    true => Value::String(text.into_owned()),
                    false => scalar(&text, matches!(style, ScalarStyle::Plain)),
                };
                (anchor, value)
            }
            Event::DocumentStart(_) => {
                anchors.clear();
                continue;
            }
            Event::Alias(anchor) => (0, anchors.get(&anchor).cloned().ok_or("an alias of nothing")?),
            _ => continue,
        };
        if anchor != 0 {
            anchors.insert(anchor, value.clone());
        }
        match open.last_mut() {
            None => documents.push(value),
            Some(Open::List(_, values)) => values.push(value),
            Some(Open::Table(_, table, key)) => match (key.take(), value) {
                (None, Value::String(name)) => *key = Some(name),
                (None, _) => return Err("a key that is no text".to_owned()),
                (Some(name), _) if table.contains_key(&name) => return Err(format!("{name} is there twice")),
                (Some(name), value) => {
                    table.insert(name, value);
                }
            },
        }
    }
    Ok(documents)
}
