//! The topics of a system: a file that its script and its tests read. The programs never create a topic.

/// A line of `topics.txt`: `NAME PARTITIONS [SETTING=VALUE …]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Topic {
    /// Its name.
    pub name: String,
    /// How many partitions it has.
    pub partitions: u16,
    /// Its settings.
    pub settings: Vec<(String, String)>,
}

/// Reads the file. Empty lines and lines that begin with `#` are skipped.
pub fn parse(text: &str) -> Result<Vec<Topic>, String> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(topic).collect()
}

fn topic(line: &str) -> Result<Topic, String> {
    let wrong = || format!("{line:?} must be NAME PARTITIONS [SETTING=VALUE …]");
    let mut words = line.split_whitespace();
    let name = words.next().ok_or_else(wrong)?.to_owned();
    let partitions = words.next().and_then(|word| word.parse().ok()).ok_or_else(wrong)?;
    let setting = |word: &str| word.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned()));
    let settings = words.map(|word| setting(word).ok_or_else(wrong)).collect::<Result<_, _>>()?;
    Ok(Topic { name, partitions, settings })
}

/// Creates the topics on a broker of this machine, each name with a prefix, and waits until they have leaders.
pub fn create(port: u16, topics: &[Topic], prefix: &str) {
    for topic in topics {
        let name = format!("{prefix}{}", topic.name);
        // `min.insync.replicas` of 2 would stop the one broker of a demonstration.
        let settings: Vec<(&str, &str)> = topic
            .settings
            .iter()
            .filter(|(name, _)| name != "min.insync.replicas")
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        xtask::kafka::topics::create(port, &[(&name, topic.partitions)], &settings)
            .unwrap_or_else(|error| panic!("{error}"));
        xtask::kafka::topics::wait_until_complete(port, &[&name]).unwrap_or_else(|error| panic!("{error}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_and_a_wrong_one_is_refused() {
        let topics = parse("# ours\n\norder-events 3 min.insync.replicas=2\n").expect("topics");
        let settings = vec![("min.insync.replicas".to_owned(), "2".to_owned())];
        assert_eq!(topics, [Topic { name: "order-events".into(), partitions: 3, settings }]);
        assert!(parse("order-events three").expect_err("no number").contains("must be NAME PARTITIONS"));
    }
}
