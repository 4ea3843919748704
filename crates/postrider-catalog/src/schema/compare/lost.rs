//! Fields that no reader knows any more, or that no writer writes any more: nothing fails, and what they held is lost.

use std::collections::HashSet;

use serde_json::Value;

use crate::schema::object::Rest;
use crate::schema::{Identity, Kind, Object, Schema};

/// The paths of the fields that one writes and the other does not know, nor denies.
pub(crate) fn unknown(writes: &Value, reads: &Value) -> Vec<String> {
    let mut walk = Walk::default();
    walk.schemas(Schema::new(writes), Schema::new(reads), "");
    walk.unknown
}

/// The paths of the optional fields that one reads and the other does not write.
pub(crate) fn unwritten(writes: &Value, reads: &Value) -> Vec<String> {
    let mut walk = Walk::default();
    walk.schemas(Schema::new(writes), Schema::new(reads), "");
    walk.unwritten
}

#[derive(Default)]
struct Walk {
    met: HashSet<(Identity, Identity)>,
    unknown: Vec<String>,
    unwritten: Vec<String>,
}

impl Walk {
    fn schemas(&mut self, writes: Schema<'_>, reads: Schema<'_>, path: &str) {
        if !self.met.insert((writes.identity(), reads.identity())) {
            return;
        }
        let readable = reads.kinds();
        for kind in &writes.kinds() {
            match kind {
                Kind::Object(written) => {
                    if let Some(read) = counterpart(written, &readable) {
                        self.objects(written, read, path);
                    }
                }
                Kind::Array(written) => {
                    let read = readable.iter().find_map(|kind| match kind {
                        Kind::Array(read) => read.items,
                        _ => None,
                    });
                    if let (Some(from), Some(to)) = (written.items, read) {
                        self.schemas(from, to, &format!("{path}[]"));
                    }
                }
                _ => {}
            }
        }
    }

    fn objects(&mut self, written: &Object<'_>, read: &Object<'_>, path: &str) {
        let below = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
        for field in &written.fields {
            match read.read_from(field.name) {
                Some(reader) => self.schemas(field.schema, reader.schema, &below(field.name)),
                None if matches!(read.rest, Rest::Ignored) => self.unknown.push(below(field.name)),
                None => {}
            }
        }
        if let (Some((_, from)), Some((_, to))) = (written.rest.written(), read.rest.written()) {
            self.schemas(from, to, &below("*"));
        }
        // A map may write it under any name.
        if written.rest.written().is_none() {
            let is_written = |name: &str| {
                written
                    .fields
                    .iter()
                    .any(|field| read.read_from(field.name).is_some_and(|reader| reader.name == name))
            };
            let optional = read.fields.iter().filter(|field| !field.required && !is_written(field.name));
            self.unwritten.extend(optional.map(|field| below(field.name)));
        }
    }
}

/// The object that reads another: the variant of its name, or the only one. Of several others it is not known which.
fn counterpart<'k, 's>(written: &Object<'_>, readable: &'k [Kind<'s>]) -> Option<&'k Object<'s>> {
    let objects: Vec<&Object<'s>> = readable
        .iter()
        .filter_map(|kind| if let Kind::Object(object) = kind { Some(object) } else { None })
        .collect();
    match (objects.as_slice(), written.variant()) {
        ([only], _) => Some(only),
        (several, Some(variant)) => {
            let mut same = several.iter().copied().filter(|object| object.variant() == Some(variant));
            same.next().filter(|_| same.next().is_none())
        }
        _ => None,
    }
}
