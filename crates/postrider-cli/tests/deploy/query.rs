//! The words of PromQL, as far as it takes to tell which metrics and labels a query uses.

use std::collections::{BTreeMap, BTreeSet};

/// Functions and keywords that our queries use.
const WORDS: [&str; 12] = [
    "sum",
    "max",
    "min",
    "by",
    "rate",
    "increase",
    "absent",
    "histogram_quantile",
    "min_over_time",
    "label_values",
    "or",
    "unless",
];

/// A metric as METRICS.md has it.
#[derive(Debug)]
pub(crate) struct Metric {
    histogram: bool,
    labels: BTreeSet<String>,
}

/// The tables of METRICS.md.
pub(crate) fn metrics(text: &str) -> BTreeMap<String, Metric> {
    let rows = text.lines().filter(|line| line.starts_with("| `postrider_"));
    rows.map(|row| {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let labels = cells[3].split(", ").map(ToOwned::to_owned).collect();
        (cells[1].trim_matches('`').to_owned(), Metric { histogram: cells[2] == "histogram", labels })
    })
    .collect()
}

/// The metrics that a query uses, each with its labels; or what is wrong with it.
pub(crate) fn used(query: &str, metrics: &BTreeMap<String, Metric>) -> Result<BTreeSet<String>, String> {
    balanced(query)?;
    let mut names = BTreeSet::new();
    let mut allowed = BTreeSet::from(["instance".to_owned(), "job".to_owned()]);
    for word in words(query).iter().filter(|word| word.starts_with("postrider_")) {
        let (name, metric) = find(word, metrics).ok_or_else(|| format!("there is no metric {word}"))?;
        allowed.extend(metric.labels.iter().cloned());
        if metric.histogram {
            allowed.insert("le".to_owned());
        }
        names.insert(name.to_owned());
    }
    if names.is_empty() {
        return Err("it uses no metric of ours".to_owned());
    }
    for word in words(query) {
        let known =
            word.starts_with("postrider_") || WORDS.contains(&word.as_str()) || allowed.contains(&word);
        if !known {
            return Err(format!("{word} is neither a label of its metrics nor a function"));
        }
    }
    Ok(names)
}

/// A histogram is used by its parts, anything else by its name.
fn find<'a>(word: &'a str, metrics: &'a BTreeMap<String, Metric>) -> Option<(&'a str, &'a Metric)> {
    let part = ["_bucket", "_sum", "_count"].iter().find_map(|part| word.strip_suffix(part));
    match part.and_then(|name| metrics.get_key_value(name)).filter(|(_, metric)| metric.histogram) {
        Some((name, metric)) => Some((name, metric)),
        None => metrics
            .get_key_value(word)
            .filter(|(_, metric)| !metric.histogram)
            .map(|(name, metric)| (name.as_str(), metric)),
    }
}

/// The words outside of strings, ranges and variables.
fn words(query: &str) -> Vec<String> {
    let (mut words, mut word, mut skipped) = (Vec::new(), String::new(), None);
    for letter in query.chars().chain([' ']) {
        match (skipped, letter) {
            (Some(end), letter) if letter == end => skipped = None,
            (Some(_), _) => {}
            (None, '"') => skipped = Some('"'),
            (None, '[') => skipped = Some(']'),
            (None, letter) if letter.is_ascii_alphanumeric() || letter == '_' => {
                word.push(letter);
                continue;
            }
            _ => {}
        }
        let whole = std::mem::take(&mut word);
        if whole.starts_with(|first: char| first.is_ascii_alphabetic()) {
            words.push(whole);
        }
    }
    words
}

fn balanced(query: &str) -> Result<(), String> {
    let mut open = Vec::new();
    for letter in query.chars() {
        match letter {
            '(' | '[' | '{' => open.push(letter),
            ')' | ']' | '}' => {
                let wanted = match letter {
                    ')' => '(',
                    ']' => '[',
                    _ => '{',
                };
                if open.pop() != Some(wanted) {
                    return Err(format!("{letter} closes nothing"));
                }
            }
            _ => {}
        }
    }
    if open.is_empty() { Ok(()) } else { Err("something is left open".to_owned()) }
}
