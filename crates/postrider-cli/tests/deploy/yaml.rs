//! A YAML file as a JSON value, in which every scalar is text.

use std::collections::HashMap;

use saphyr_parser::{Event, Parser};
use serde_json::{Map, Value};

/// What is being read: a list, or a table with the key whose value comes next.
enum Open {
    List(usize, Vec<Value>),
    Table(usize, Map<String, Value>, Option<String>),
}

/// Reads one document; or says what is wrong with it.
pub(crate) fn parse(text: &str) -> Result<Value, String> {
    let (mut open, mut anchors, mut root) = (Vec::new(), HashMap::new(), None);
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
            Event::Scalar(text, _, anchor, _) => (anchor, Value::String(text.into_owned())),
            Event::Alias(anchor) => (0, anchors.get(&anchor).cloned().ok_or("an alias of nothing")?),
            _ => continue,
        };
        if anchor != 0 {
            anchors.insert(anchor, value.clone());
        }
        match open.last_mut() {
            None if root.is_some() => return Err("more than one document".to_owned()),
            None => root = Some(value),
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
    root.ok_or_else(|| "nothing".to_owned())
}
