//! Which convention the names of a stream follow.

use postrider_core::Pattern;
use serde::{Deserialize, Serialize};

use super::{Convention, NameRefusal};
use crate::CatalogFile;

/// The conventions of a system, by stream. The first whose pattern matches a stream counts; without one, any name of a length that an event may have is right.
///
/// Its own form as data is a list, `[{ "stream": "everbit.*.command", "convention": "Commands" }]`, because the order counts. The
/// table `[catalog.names]` of `postrider.toml` has no order: the binary sorts it by the number of letters in each pattern.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Conventions {
    rules: Vec<Rule>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Rule {
    stream: String,
    convention: Convention,
}

impl Conventions {
    /// The same convention for every stream.
    pub fn everywhere(convention: Convention) -> Self {
        Self::default().with("*", convention)
    }

    /// Adds a convention for the streams that match; `*` matches any characters.
    #[must_use]
    pub fn with(mut self, stream: impl Into<String>, convention: Convention) -> Self {
        self.rules.push(Rule { stream: stream.into(), convention });
        self
    }

    /// The convention of a stream.
    pub fn of(&self, stream: &str) -> Option<&Convention> {
        let rule = self.rules.iter().find(|rule| Pattern::new(rule.stream.as_str()).matches(stream))?;
        Some(&rule.convention)
    }

    /// Checks the name of an event of a stream. Without a convention, only its length.
    pub fn check(&self, stream: &str, name: &str) -> Result<(), NameRefusal> {
        super::length(name)?;
        self.of(stream).map_or(Ok(()), |convention| convention.check(name))
    }

    /// The names of a catalog that are refused, in the order of its events, each once.
    pub fn refusals(&self, catalog: &CatalogFile) -> Vec<NameRefusal> {
        let mut known = std::collections::HashSet::new();
        let events = catalog.events.iter().filter(|event| known.insert((&event.stream, &event.name)));
        events.filter_map(|event| self.check(&event.stream, &event.name).err()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_pattern_that_matches_a_stream_counts() {
        let conventions = Conventions::default()
            .with("everbit.*.command", Convention::Commands)
            .with("ledger", Convention::ScreamingSnake)
            .with("everbit.*", Convention::PascalPastTense);
        for (stream, name, right) in [
            ("everbit.trade.command", "CreateOrderAttempt", true),
            ("everbit.trade.command", "OrderAccepted", false),
            ("everbit.trade.event", "OrderAccepted", true),
            ("everbit.trade.event", "CreateOrderAttempt", false),
            ("ledger", "LEDGER_POSTED", true),
            ("elsewhere", "any name", true),
        ] {
            assert_eq!(conventions.check(stream, name).is_ok(), right, "{name} of {stream}");
        }
    }

    #[test]
    fn settings_name_a_convention() {
        let settings = r#"[{"stream":"commerce.*","convention":"loopers.domain.action.vN"},{"stream":"*","convention":"PascalPastTense"}]"#;
        let conventions: Conventions = serde_json::from_str(settings).expect("conventions");
        assert!(conventions.check("commerce.orders", "loopers.order.paid.v1").is_ok());
        assert!(conventions.check("guild", "BotKicked").is_ok());
        assert_eq!(serde_json::to_string(&conventions).expect("JSON"), settings);
        let unknown = serde_json::from_str::<Conventions>(r#"[{"stream":"*","convention":"camel"}]"#);
        assert!(unknown.expect_err("unknown").to_string().contains("must be `PascalPastTense`"));
    }
}
