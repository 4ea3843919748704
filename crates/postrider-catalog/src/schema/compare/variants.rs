//! Objects that may be variants of an enum.

use serde_json::{Value, json};

use super::objects::with;
use super::{Comparison, Mismatch};
use crate::schema::object::Field;
use crate::schema::words::{list, named};
use crate::schema::{Kind, Object};

/// The most objects that are taken apart in one comparison.
const MOST_SPLITS: usize = 64;

impl Comparison {
    /// An object against the reader's: the variant of its name, if both are enums; otherwise the one that fits best.
    pub(super) fn variant<'s>(&mut self, written: &Object<'s>, readable: &[Kind<'s>]) -> Vec<Mismatch> {
        let whole = Value::Object(written.sample());
        let mut unnamed = |kind: &Kind<'_>| match kind {
            Kind::OtherVariant { tag, known, beside } => {
                let name = written.constant(tag)?;
                (!known.contains(&name)).then(|| self.objects(written, beside))
            }
            _ => None,
        };
        if let Some(found) = readable.iter().find_map(&mut unnamed) {
            return found;
        }
        if let Some(found) = self.by_tag(written, readable) {
            return found;
        }
        let objects: Vec<&Object<'_>> = readable
            .iter()
            .filter_map(|kind| if let Kind::Object(object) = kind { Some(object) } else { None })
            .collect();
        if objects.is_empty() {
            let reason = format!("may hold an object, but the reader takes {}", list(readable));
            return Mismatch::new(reason, whole);
        }
        let variant = written.variant();
        let tagged: Vec<&Object<'_>> = match variant {
            Some(variant) => {
                objects.iter().copied().filter(|object| object.variant() == Some(variant)).collect()
            }
            None => Vec::new(),
        };
        let all_variants = objects.iter().all(|object| object.variant().is_some());
        if let (Some(variant), true, true) = (variant, tagged.is_empty(), all_variants) {
            let known: Vec<String> = objects
                .iter()
                .filter_map(|object| object.variant())
                .map(|known| format!("`{}`", known.name))
                .collect();
            let reason =
                format!("may hold the variant `{}`, but the reader knows {}", variant.name, known.join(", "));
            return Mismatch::new(reason, whole);
        }
        let candidates = if tagged.is_empty() { objects } else { tagged };
        let found = candidates.iter().map(|object| self.objects(written, object)).min_by_key(Vec::len);
        let found = found.unwrap_or_default();
        if candidates.len() < 2 {
            return found;
        }
        match self.split(written, &found) {
            Some(parts) => parts.iter().flat_map(|part| self.variant(part, readable)).collect(),
            None => found,
        }
    }

    /// An object in parts, one for each kind of a field that is not read as a whole: each may have a variant of its own that reads it.
    fn split<'s>(&mut self, written: &Object<'s>, found: &[Mismatch]) -> Option<Vec<Object<'s>>> {
        let is_split = |field: &Field<'_>| {
            let is_unread = found.iter().any(|mismatch| mismatch.field.starts_with(field.name));
            is_unread && field.schema.kinds().len() > 1
        };
        let place = written.fields.iter().position(is_split)?;
        if self.splits == MOST_SPLITS {
            return None;
        }
        self.splits += 1;
        let kinds = written.fields[place].schema.kinds().len();
        let part = |kind: usize| {
            let mut part = written.clone();
            part.fields[place].schema = part.fields[place].schema.only(kind);
            part
        };
        Some((0..kinds).map(part).collect())
    }

    /// An object with a tag that may hold several names, against an enum: every variant that it may be must read it.
    fn by_tag<'s>(&mut self, written: &Object<'s>, readable: &[Kind<'s>]) -> Option<Vec<Mismatch>> {
        let (tag, variants, other) = tagged(readable)?;
        let field = written.field(tag).filter(|field| field.required && written.constant(tag).is_none())?;
        let names: Vec<&str> = variants.iter().filter_map(|variant| variant.constant(tag)).collect();
        let mut found = Vec::new();
        for kind in field.schema.kinds() {
            match kind {
                Kind::Constant(Value::String(name)) => {
                    match variants.iter().find(|variant| variant.constant(tag) == Some(name)) {
                        Some(variant) => found.extend(self.named(written, tag, variant)),
                        None => {
                            found.extend(self.unnamed_variant(written, field, json!(name), &names, other));
                        }
                    }
                }
                Kind::Text(_) | Kind::Any => {
                    for variant in &variants {
                        found.extend(self.named(written, tag, variant));
                    }
                    found.extend(self.unnamed_variant(written, field, json!("text"), &names, other));
                }
                kind => {
                    let reason = format!("may hold {}, but the reader takes a name", named(&kind));
                    let wrong = Mismatch::new(reason, kind.sample()).into_iter();
                    found.extend(wrong.map(|wrong| wrong.under(tag, |value| with(written, tag, value))));
                }
            }
        }
        let mut said: Vec<(String, String)> = Vec::new();
        found.retain(|mismatch| {
            let says = (mismatch.field.clone(), mismatch.reason.clone());
            let is_new = !said.contains(&says);
            said.push(says);
            is_new
        });
        Some(found)
    }

    /// The object when its tag names this variant.
    fn named<'s>(&mut self, written: &Object<'s>, tag: &str, variant: &Object<'s>) -> Vec<Mismatch> {
        let mut narrowed = written.clone();
        narrowed.fields.retain(|field| field.name != tag);
        narrowed.fields.extend(variant.field(tag));
        self.objects(&narrowed, variant)
    }

    /// The object when its tag names none of the variants.
    fn unnamed_variant(
        &mut self,
        written: &Object<'_>,
        field: &Field<'_>,
        name: Value,
        known: &[&str],
        other: Option<&Object<'_>>,
    ) -> Vec<Mismatch> {
        if let Some(other) = other {
            return self.objects(written, other);
        }
        let known: Vec<String> = known.iter().map(|name| format!("`{name}`")).collect();
        let reason = format!("may hold {name}, but the reader knows the variants {}", known.join(", "));
        let wrong = Mismatch::new(reason, name).into_iter();
        wrong.map(|wrong| wrong.under(field.name, |value| with(written, field.name, value))).collect()
    }
}

/// The tag of an enum, its variants, and what stands for all others, if all objects are variants of it.
fn tagged<'k, 's>(
    readable: &'k [Kind<'s>],
) -> Option<(&'s str, Vec<&'k Object<'s>>, Option<&'k Object<'s>>)> {
    let mut tag = None;
    let mut variants = Vec::new();
    let mut other = None;
    for kind in readable {
        let own = match kind {
            Kind::Object(object) => {
                variants.push(object);
                object.variant()?.tag?
            }
            Kind::OtherVariant { tag, beside, .. } => {
                other = Some(beside);
                tag
            }
            _ => continue,
        };
        if tag.is_some_and(|tag| tag != own) {
            return None;
        }
        tag = Some(own);
    }
    Some((tag?, variants, other))
}
