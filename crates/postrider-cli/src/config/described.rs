//! Every setting with its kind, its default and a sentence: what the file is checked against, and what the
//! reference is made of. A setting that is read but not described here, or the other way round, ends every test that reads it.

mod tables;
mod usual;

pub(crate) use tables::TABLES;
pub(crate) use usual::Usual;

/// A table of the file.
pub(crate) struct Described {
    /// Where it is: `store`, `sink.*`, `subscription.retry`.
    pub(crate) place: &'static str,
    /// The `type` that these settings are for, where there are several.
    pub(crate) kind: Option<&'static str>,
    /// How it is written in the file.
    pub(crate) head: &'static str,
    /// What it is about.
    pub(crate) what: &'static str,
    /// Whether its settings can be given in the environment.
    pub(crate) environment: bool,
    /// Its settings.
    pub(crate) settings: &'static [Setting],
}

/// A setting.
pub(crate) struct Setting {
    /// Its name.
    pub(crate) name: &'static str,
    /// What is expected.
    pub(crate) kind: &'static str,
    /// Its default; nothing if that can't be written.
    pub(crate) usual: Option<Usual>,
    /// What it does.
    pub(crate) what: &'static str,
}

/// The settings of a table, by where it is and its `type`.
pub(crate) fn settings(place: &str, kind: Option<&str>) -> &'static [Setting] {
    let of_kind = |table: &&Described| table.kind.is_none() || table.kind == kind;
    let mut there = TABLES.iter().filter(|table| table.place == place);
    there.find(of_kind).map_or(&[], |table| table.settings)
}

/// The names in a table: of its settings, or, in the file as a whole, of its tables.
pub(crate) fn names(place: &str, kind: Option<&str>) -> Vec<&'static str> {
    if !place.is_empty() {
        return settings(place, kind).iter().map(|setting| setting.name).collect();
    }
    let mut names: Vec<&str> =
        TABLES.iter().map(|table| table.place.split('.').next().unwrap_or_default()).collect();
    names.dedup();
    names
}

/// The settings that can be given in the environment: table and name.
pub(crate) fn in_environment() -> impl Iterator<Item = (&'static str, &'static str)> {
    let tables = TABLES.iter().filter(|table| table.environment);
    tables.flat_map(|table| table.settings.iter().map(|setting| (table.place, setting.name)))
}

#[cfg(test)]
pub(crate) use tests::every_table;

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::{Config, Origins, Section};
    use super::*;

    /// A file with every table in its smallest form, and with what is said to hold unless it is set.
    fn file(written_out: bool) -> String {
        let mut text = String::new();
        for table in TABLES {
            let kind = table.kind.map(|kind| format!("type = {kind:?}\n")).unwrap_or_default();
            let (head, least) = match table.place {
                "subscription" => ("[[subscription]]".to_owned(), "name = \"s\"\nsink = \"stdout\"\n"),
                "subscription.retry" => ("[subscription.retry]".to_owned(), "max_attempts = 7\n"),
                "sink.*" => (format!("[sink.{}]", table.kind.unwrap_or_default()), ""),
                "notify.*" => (format!("[notify.{}]", table.kind.unwrap_or_default()), ""),
                "retention" => ("[retention]".to_owned(), "archive = true\n"),
                "retention.target" => {
                    ("[retention.target]".to_owned(), "table = \"t\"\ncolumns = { id = \"event_id\" }\n")
                }
                "alert" => ("[[alert]]".to_owned(), "when = \"dead > 1\"\n"),
                place => (format!("[{place}]"), ""),
            };
            let needed = match table.kind {
                Some("kafka") => "brokers = \"b:1\"\n",
                Some("http") => "url = \"http://h/\"\n",
                Some("slack" | "webhook") => "url = \"https://h/\"\n",
                Some("pagerduty") => "key = \"k\"\n",
                _ => "",
            };
            text.push_str(&format!("{head}\n{kind}{least}{needed}"));
            let usual = table.settings.iter().filter_map(|setting| Some((setting.name, setting.usual?)));
            for (name, usual) in usual.filter(|(name, _)| written_out && !least.contains(*name)) {
                text.push_str(&format!("{name} = {usual}\n"));
            }
        }
        text
    }

    /// The settings of a file with every table.
    pub(crate) fn every_table() -> Config {
        let secrets = super::super::Secrets::new(BTreeMap::new());
        let table = file(false).parse().unwrap_or_else(|error| panic!("{error}"));
        Config::understand(Section::root(table, &secrets)).unwrap_or_else(|problem| panic!("{problem}"))
    }

    fn understood(text: &str) -> String {
        let secrets = super::super::Secrets::new(BTreeMap::new());
        let table = text.parse().unwrap_or_else(|error| panic!("{error}\n{text}"));
        let config = Config::understand(Section::root(table, &secrets));
        format!("{:#?}", config.unwrap_or_else(|problem| panic!("{problem}\n{text}")))
    }

    #[test]
    fn what_is_said_to_hold_unless_set_does() {
        assert_eq!(understood(&file(false)), understood(&file(true)));
        assert_ne!(file(false), file(true));
    }

    #[test]
    fn a_default_in_a_sentence_is_the_one_of_the_library() {
        use postrider::kafka::Kafka;
        use postrider::store::{Limits, Subscription};

        let sentence = |place: &str, name: &str| {
            let setting = settings(place, None).iter().find(|setting| setting.name == name);
            setting.expect("described").what
        };
        let batch = format!("Default: {}, or {} for Kafka.", Subscription::BATCH, Kafka::BATCH);
        assert!(sentence("subscription", "batch").ends_with(&batch));
        let limit = format!("which is {} (1 MiB) in a new log.", Limits::PAYLOAD);
        assert!(sentence("store", "max_payload").ends_with(&limit));
    }

    #[test]
    fn a_subscription_that_says_nothing_is_the_one_of_the_library() {
        let config = every_table();
        let usual = postrider::store::Subscription::new("s").streams(["*"]).types(["*"]);
        assert_eq!(config.readers[0].subscription(), usual);
        assert_eq!(config.readers[0].while_unavailable, postrider::WhileUnavailable::default());
    }

    #[test]
    fn a_described_setting_can_be_given_in_the_environment() {
        let variables = [("POSTRIDER_RELAY_LEASE", "12s"), ("POSTRIDER_LOG_LEVEL", "debug")];
        let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let config = Config::load(&Origins::default(), variables.into()).expect("good settings");
        assert_eq!((config.relay.lease.as_secs(), config.log.level.as_str()), (12, "debug"));
    }
}
