//! Findings for people: a line each, wrapped where the terminal ends, with what to do under it.

use postrider::store::Severity;
use unicode_width::UnicodeWidthStr;

use super::finding::Finding;
use crate::output;

/// How wide it is where nobody says.
pub(super) const USUAL: usize = 80;
/// Below this the text is not made narrower.
const LEAST: usize = 30;
const VERDICT: usize = 6;
const GAP: usize = 2;

/// All findings, and how many there are of each kind.
pub(super) fn text(findings: &[Finding], width: usize) -> String {
    let widest = findings.iter().map(|finding| finding.about.width()).max().unwrap_or(0);
    // A long name has a line of its own, so that there is room for what is said of it.
    let about = widest.min((width / 3).max(10));
    let indent = VERDICT + about + GAP;
    let room = width.saturating_sub(indent).max(LEAST);
    let mut text = String::new();
    for finding in findings {
        let head = format!("{:<VERDICT$}{}", finding.severity.as_str(), plain(&finding.about));
        let mut lines = wrapped(&finding.what, room);
        lines.extend(finding.remedy.iter().flat_map(|remedy| wrapped(&format!("-> {remedy}"), room)));
        let mut lines = lines.into_iter();
        if head.width() + GAP <= indent {
            let first = lines.next().unwrap_or_default();
            text.push_str(&format!("{head}{}{first}\n", " ".repeat(indent - head.width())));
        } else {
            text.push_str(&format!("{head}\n"));
        }
        for line in lines {
            text.push_str(&format!("{}{line}\n", " ".repeat(indent)));
        }
    }
    let count = |verdict| findings.iter().filter(|finding| finding.severity == verdict).count();
    let (good, warn, bad) = (count(Severity::Good), count(Severity::Warn), count(Severity::Bad));
    let all = output::count((good + warn + bad) as u64, "finding");
    text.push_str(&match (warn, bad) {
        (0, 0) => format!("\n{all}: no problems\n"),
        (warn, 0) => format!("\n{all}: {warn} with warnings, none bad\n"),
        (warn, bad) => format!("\n{all}: {bad} bad, {warn} with warnings\n"),
    });
    text
}

/// Without anything that a terminal would obey.
fn plain(text: &str) -> String {
    text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect()
}

/// A text in lines of this width; a word that is longer has a line of its own.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in plain(text).split_whitespace() {
        let line = lines.last_mut();
        match line {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) if line.width() + 1 + word.width() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_fit_and_say_what_to_do() {
        let findings = [
            Finding::good("schema", "it is at version 3"),
            Finding::warn(
                "long transactions",
                "one is open for 400 s: its events wait, and dead rows stay",
                "end it",
            ),
            Finding::bad(
                "topic a-very-long-name-of-a-topic-that-needs-a-line",
                "it does not exist",
                "create it",
            ),
        ];
        let text = text(&findings, 60);
        assert!(text.lines().all(|line| line.width() <= 60), "{text}");
        assert!(text.contains("ok    schema                it is at version 3\n"), "{text}");
        assert!(text.contains("                            -> end it\n"), "{text}");
        assert!(text.contains("bad   topic a-very-long-name-of-a-topic-that-needs-a-line\n"), "{text}");
        assert!(text.ends_with("\n3 findings: 1 bad, 1 with warnings\n"), "{text}");
        assert!(text.replace('\n', " ").contains("dead rows"), "nothing is cropped");
    }
}
