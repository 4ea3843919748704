//! Names with placeholders that are filled in from an event: topics, types.

use crate::{Error, ErrorKind, Recorded, Result};

/// A text with placeholders for fields of an event.
///
/// The placeholders are `{stream}`, `{event_type}`, `{aggregate_type}`, `{version}` and `{domain}`, each optionally with `:kebab`,
/// `:snake`, `:lower` or `:upper`: `{event_type:kebab}-events` turns `LEDGER_POSTED` into `ledger-posted-events`. The domain is
/// the second part of a type like `loopers.order.paid.v1`, otherwise the aggregate's type in kebab case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    parts: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Text(String),
    Place(Place, Spelling),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Stream,
    EventType,
    AggregateType,
    Version,
    Domain,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Spelling {
    AsItIs,
    Kebab,
    Snake,
    Lower,
    Upper,
}

impl Template {
    /// Parses a template.
    pub fn parse(text: &str) -> Result<Self> {
        let invalid = |message: String| Err(Error::new(ErrorKind::Invalid, "template", message));
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some(at) = rest.find(['{', '}']) {
            if at > 0 {
                parts.push(Part::Text(rest[..at].to_owned()));
            }
            let Some(end) = rest[at..].find('}').filter(|_| rest[at..].starts_with('{')) else {
                return invalid(format!("{text:?} has an unmatched brace"));
            };
            parts.push(place(&rest[at + 1..at + end], text)?);
            rest = &rest[at + end + 1..];
        }
        if !rest.is_empty() {
            parts.push(Part::Text(rest.to_owned()));
        }
        if parts.is_empty() {
            return invalid("a template must not be empty".to_owned());
        }
        Ok(Self { parts })
    }

    /// Fills the template with the fields of an event.
    pub fn fill(&self, event: &Recorded) -> String {
        let mut name = String::new();
        for part in &self.parts {
            match part {
                Part::Text(text) => name.push_str(text),
                Part::Place(place, spelling) => name.push_str(&spelling.spell(&place.value(event))),
            }
        }
        name
    }
}

fn place(name: &str, text: &str) -> Result<Part> {
    let (place, spelling) = name.split_once(':').unwrap_or((name, ""));
    let place = match place {
        "stream" => Place::Stream,
        "event_type" => Place::EventType,
        "aggregate_type" => Place::AggregateType,
        "version" => Place::Version,
        "domain" => Place::Domain,
        _ => {
            let message = format!(
                "{text:?} has an unknown placeholder {{{name}}}; the known ones are {{stream}}, {{event_type}}, {{aggregate_type}}, {{version}} and {{domain}}"
            );
            return Err(Error::new(ErrorKind::Invalid, "template", message));
        }
    };
    let spelling = match spelling {
        "" if !name.contains(':') => Spelling::AsItIs,
        "kebab" => Spelling::Kebab,
        "snake" => Spelling::Snake,
        "lower" => Spelling::Lower,
        "upper" => Spelling::Upper,
        _ => {
            let message = format!(
                "{text:?} has an unknown format {spelling:?}; the known ones are kebab, snake, lower and upper"
            );
            return Err(Error::new(ErrorKind::Invalid, "template", message));
        }
    };
    Ok(Part::Place(place, spelling))
}

impl Place {
    fn value(self, event: &Recorded) -> String {
        match self {
            Self::Stream => event.stream.to_string(),
            Self::EventType => event.event_type.to_string(),
            Self::AggregateType => event.aggregate_type.to_string(),
            Self::Version => event.headers.schema_version().to_string(),
            Self::Domain => {
                let parts: Vec<&str> = event.event_type.split('.').collect();
                match parts.as_slice() {
                    [_, domain, _, ..] => (*domain).to_owned(),
                    _ => words(&event.aggregate_type).join("-"),
                }
            }
        }
    }
}

impl Spelling {
    fn spell(self, name: &str) -> String {
        match self {
            Self::AsItIs => name.to_owned(),
            Self::Kebab => words(name).join("-"),
            Self::Snake => words(name).join("_"),
            Self::Lower => name.to_lowercase(),
            Self::Upper => name.to_uppercase(),
        }
    }
}

/// The words of a name, in lower case: `LEDGER_POSTED`, `LedgerPosted` and `ledger-posted` have the same ones.
fn words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let characters: Vec<char> = name.chars().collect();
    let mut word = String::new();
    for (index, &character) in characters.iter().enumerate() {
        if !character.is_alphanumeric() {
            words.extend((!word.is_empty()).then(|| std::mem::take(&mut word)));
            continue;
        }
        let before = index.checked_sub(1).map(|before| characters[before]);
        let after = characters.get(index + 1);
        let begins = character.is_uppercase()
            && (before.is_some_and(|before| before.is_lowercase() || before.is_numeric())
                || (before.is_some_and(char::is_uppercase)
                    && after.is_some_and(|after| after.is_lowercase())));
        if begins && !word.is_empty() {
            words.push(std::mem::take(&mut word));
        }
        word.extend(character.to_lowercase());
    }
    words.extend((!word.is_empty()).then_some(word));
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::cloud_event::tests::event;

    fn filled(template: &str, event_type: &str, aggregate_type: &str) -> String {
        let mut event = event();
        event.event_type = event_type.into();
        event.aggregate_type = aggregate_type.into();
        Template::parse(template).expect("a template").fill(&event)
    }

    /// C3, L12.
    #[test]
    fn a_topic_follows_from_an_event_by_convention() {
        assert_eq!(filled("{domain}-events", "loopers.order.paid.v1", "Order"), "order-events");
        assert_eq!(filled("{domain}-events", "OrderPaid", "PurchaseOrder"), "purchase-order-events");
        assert_eq!(filled("{event_type:kebab}-events", "LEDGER_POSTED", "Ledger"), "ledger-posted-events");
        assert_eq!(filled("{stream}", "OrderPaid", "Order"), "orders");
        assert_eq!(filled("all", "OrderPaid", "Order"), "all");
        assert_eq!(
            filled("loopers.{domain}.{event_type:snake}.v{version}", "OrderPaid", "Order"),
            "loopers.order.order_paid.v2"
        );
    }

    #[test]
    fn words_are_found_in_every_spelling() {
        for name in ["LedgerPosted", "LEDGER_POSTED", "ledger-posted", "ledger posted", "ledgerPosted"] {
            assert_eq!(words(name), ["ledger", "posted"], "{name}");
        }
        assert_eq!(words("HTTPRequestV2Sent"), ["http", "request", "v2", "sent"]);
    }

    #[test]
    fn a_template_that_means_nothing_is_refused() {
        for (template, says) in [
            ("{topic}", "the known ones are {stream}"),
            ("{stream", "brace"),
            ("stream}", "brace"),
            ("{stream:camel}", "kebab, snake"),
            ("{stream:}", "kebab, snake"),
            ("", "empty"),
        ] {
            let error = Template::parse(template).expect_err(template).to_string();
            assert!(error.contains(says), "{error}");
        }
    }
}
