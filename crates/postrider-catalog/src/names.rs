//! How events are named: conventions, and what would be right where a name breaks one.

mod command;
mod conventions;
mod dotted;
mod irregular;
mod nouns;
mod past_tense;
mod screaming;
mod verb_lists;
mod verbs;
mod words;

use std::fmt::{self, Display, Formatter};
use std::str::FromStr;

use postrider_core::Limits;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

pub use conventions::Conventions;

/// How the names of events must be written.
///
/// ```
/// use postrider_catalog::Convention;
///
/// let refusal = Convention::PascalPastTense.check("PaymentSuccess").unwrap_err();
/// assert_eq!(refusal.suggestion(), Some("PaymentSucceeded"));
///
/// let commerce: Convention = "loopers.domain.action.vN".parse()?;
/// assert!(commerce.check("loopers.order.paid.v1").is_ok());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Convention {
    /// `PascalPastTense`: what has happened, such as `PaymentSucceeded` or `PaymentFailedFinal`. English verbs, regular or not.
    PascalPastTense,
    /// `Commands`: what is to be done, such as `PayInvoice`.
    Commands,
    /// `loopers.domain.action.vN`: a company, or none, then domain, action and version, such as `loopers.order.paid.v1`.
    Dotted {
        /// What every name begins with, such as `loopers`.
        company: Option<String>,
    },
    /// `SCREAMING_SNAKE`: capital letters, such as `LEDGER_POSTED`.
    ScreamingSnake,
}

impl Convention {
    /// Checks a name. A refusal says the rule, and what would be right if that can be told.
    pub fn check(&self, name: &str) -> Result<(), NameRefusal> {
        length(name)?;
        let result = match self {
            Self::PascalPastTense => past_tense::check(name),
            Self::Commands => command::check(name),
            Self::Dotted { company } => dotted::check(company.as_deref(), name),
            Self::ScreamingSnake => screaming::check(name),
        };
        result.map_err(|refusal| NameRefusal { example: self.example(), ..refusal })
    }

    /// A name as it must be.
    fn example(&self) -> String {
        match self {
            Self::PascalPastTense => "OrderPaid".to_owned(),
            Self::Commands => "PayOrder".to_owned(),
            Self::Dotted { company: None } => "order.paid.v1".to_owned(),
            Self::Dotted { company: Some(company) } => format!("{company}.order.paid.v1"),
            Self::ScreamingSnake => "ORDER_PAID".to_owned(),
        }
    }
}

/// Refuses a name that no event can be recorded with.
fn length(name: &str) -> Result<(), NameRefusal> {
    if name.len() <= Limits::NAME {
        return Ok(());
    }
    let beginning: String = name.chars().take(32).collect();
    let (bytes, most) = (name.len(), Limits::NAME);
    let message = format!("`{beginning}…` has {bytes} bytes, and a name must have at most {most}");
    Err(NameRefusal::new(message, None))
}

/// The name of the convention in settings.
impl Display for Convention {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::PascalPastTense => formatter.write_str("PascalPastTense"),
            Self::Commands => formatter.write_str("Commands"),
            Self::Dotted { company: None } => formatter.write_str(dotted::FORM),
            Self::Dotted { company: Some(company) } => write!(formatter, "{company}.{}", dotted::FORM),
            Self::ScreamingSnake => formatter.write_str("SCREAMING_SNAKE"),
        }
    }
}

/// A text that names no [`Convention`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownConvention(String);

impl Display for UnknownConvention {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "{:?} is no naming convention: it must be `PascalPastTense`, `Commands`, `SCREAMING_SNAKE`, or `{}` with a \
             company before it, such as `example.{}`",
            self.0,
            dotted::FORM,
            dotted::FORM
        )
    }
}

impl std::error::Error for UnknownConvention {}

impl FromStr for Convention {
    type Err = UnknownConvention;

    fn from_str(text: &str) -> Result<Self, UnknownConvention> {
        let unknown = || UnknownConvention(text.to_owned());
        Ok(match text {
            "PascalPastTense" => Self::PascalPastTense,
            "Commands" => Self::Commands,
            "SCREAMING_SNAKE" => Self::ScreamingSnake,
            dotted::FORM => Self::Dotted { company: None },
            other => {
                let company = other.strip_suffix(dotted::FORM).and_then(|company| company.strip_suffix('.'));
                let company = company.filter(|company| dotted::is_company(company)).ok_or_else(unknown)?;
                Self::Dotted { company: Some(company.to_owned()) }
            }
        })
    }
}

impl Serialize for Convention {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Convention {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// Why a name is refused, in a sentence, and what would be right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NameRefusal {
    message: String,
    suggestion: Option<String>,
    example: String,
}

impl NameRefusal {
    fn new(message: String, suggestion: Option<String>) -> Self {
        Self { message, suggestion, example: String::new() }
    }

    /// A name that says the same and is right, if it can be told.
    pub fn suggestion(&self) -> Option<&str> {
        self.suggestion.as_deref()
    }
}

impl Display for NameRefusal {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)?;
        match &self.suggestion {
            Some(suggestion) => write!(formatter, ": use `{suggestion}`."),
            None if self.example.is_empty() => formatter.write_str("."),
            None => write!(formatter, "; for example `{}`.", self.example),
        }
    }
}

impl std::error::Error for NameRefusal {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_convention_is_known_by_its_name_in_settings() {
        for name in [
            "PascalPastTense",
            "Commands",
            "SCREAMING_SNAKE",
            "domain.action.vN",
            "com.loopers.domain.action.vN",
        ] {
            let convention: Convention = name.parse().expect(name);
            assert_eq!(convention.to_string(), name);
        }
        for name in ["", "pascal", ".domain.action.vN", "Loopers.domain.action.vN", "loopersdomain.action.vN"]
        {
            assert!(name.parse::<Convention>().is_err(), "{name}");
        }
    }

    #[test]
    fn a_name_that_no_event_can_have_is_refused_with_and_without_a_convention() {
        let (fits, long) = (format!("A{}Paid", "a".repeat(195)), format!("A{}Paid", "ä".repeat(98)));
        assert_eq!((fits.len(), long.len(), long.chars().count()), (200, 201, 103));
        assert!(Convention::PascalPastTense.check(&fits).is_ok());
        let refusal = Convention::ScreamingSnake.check(&long).expect_err("too long");
        let said = format!("`A{}…` has 201 bytes, and a name must have at most 200.", "ä".repeat(31));
        assert_eq!(refusal.to_string(), said);
        assert_eq!(Conventions::default().check("orders", &long), Err(refusal));
        assert!(Conventions::default().check("orders", &fits).is_ok());
    }

    #[test]
    fn a_refusal_offers_a_name_or_shows_a_good_one() {
        let refusal =
            |convention: Convention, name: &str| convention.check(name).expect_err(name).to_string();
        assert_eq!(
            refusal(Convention::PascalPastTense, "PaymentSuccess"),
            "`PaymentSuccess` must say in the past tense what has happened: use `PaymentSucceeded`."
        );
        assert_eq!(
            refusal(Convention::PascalPastTense, "NewsFeed"),
            "`NewsFeed` must say in the past tense what has happened; for example `OrderPaid`."
        );
        assert_eq!(
            refusal(Convention::PascalPastTense, ""),
            "An event name must not be empty; for example `OrderPaid`."
        );
        assert_eq!(
            refusal(Convention::Commands, "Customer"),
            "`Customer` must begin with a verb that says what to do; for example `PayOrder`."
        );
    }
}
