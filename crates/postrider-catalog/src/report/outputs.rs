//! A report for programs: JSON, annotations of GitHub Actions, and JUnit.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde::Serialize;

use super::{Finding, Report, exact};
use crate::problems::Severity;

impl Report {
    /// The report as JSON.
    pub fn to_json(&self) -> String {
        #[derive(Serialize)]
        struct Shown<'r> {
            passed: bool,
            #[serde(flatten)]
            report: &'r Report,
        }
        let mut text =
            serde_json::to_string_pretty(&Shown { passed: self.passed(), report: self }).unwrap_or_default();
        text.push('\n');
        text
    }

    /// The report as commands of GitHub Actions: each finding becomes an annotation of `file`.
    pub fn to_github(&self, file: &str) -> String {
        let mut text = String::new();
        for finding in &self.findings {
            let word = match finding.severity {
                Severity::Error => "error",
                Severity::Warning => "warning",
                Severity::Information => "notice",
            };
            let (file, title) = (property(file), property(&finding.subject()));
            let _ = writeln!(text, "::{word} file={file},title={title}::{}", data(&body(finding)));
        }
        text
    }

    /// The report as a file of JUnit: a test case for each event.
    pub fn to_junit(&self, events: &[&str]) -> String {
        let mut cases: BTreeMap<&str, Vec<&Finding>> =
            events.iter().map(|name| (*name, Vec::new())).collect();
        for finding in &self.findings {
            cases.entry(&finding.event).or_default().push(finding);
        }
        let failed =
            |findings: &&Vec<&Finding>| findings.iter().any(|finding| finding.severity == Severity::Error);
        let failures = cases.values().filter(failed).count();
        let mut text = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
        let _ = writeln!(
            text,
            "<testsuite name=\"postrider catalog check\" tests=\"{}\" failures=\"{failures}\">",
            cases.len()
        );
        for (name, findings) in cases {
            let _ = writeln!(text, "  <testcase classname=\"catalog\" name=\"{}\">", xml(name));
            for finding in findings {
                let (open, close) = match finding.severity {
                    Severity::Error => {
                        (format!("<failure message=\"{}\">", xml(&finding.sentence())), "</failure>")
                    }
                    Severity::Warning | Severity::Information => ("<system-out>".to_owned(), "</system-out>"),
                };
                let _ = writeln!(text, "    {open}{}{close}", xml(&body(finding)));
            }
            text.push_str("  </testcase>\n");
        }
        text.push_str("</testsuite>\n");
        text
    }
}

fn body(finding: &Finding) -> String {
    let example =
        finding.counterexample.as_ref().map(|example| format!("\ncounterexample: {}", exact::text(example)));
    let advice = if finding.advice.is_empty() { String::new() } else { format!("\n{}", finding.advice) };
    format!("{}{}{advice}", finding.sentence(), example.unwrap_or_default())
}

/// Text after the `::` of a command.
fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// A property of a command.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

fn xml(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            // XML has no way to write these.
            control if control.is_control() && !matches!(control, '\n' | '\t') => escaped.push('\u{fffd}'),
            '\u{fffe}' | '\u{ffff}' => escaped.push('\u{fffd}'),
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::ReaderVersion;

    fn report() -> Report {
        let finding = Finding {
            severity: Severity::Error,
            event: "OrderPaid".into(),
            version: Some(1),
            locked_version: Some(1),
            reader: Some(ReaderVersion::New),
            field: "total".into(),
            reason: "is not written, but the reader needs it".into(),
            advice: "Raise it, 100 %.".into(),
            counterexample: Some(serde_json::json!({ "note": "a < b" })),
        };
        Report { compared: 1, findings: vec![finding] }
    }

    #[test]
    fn an_annotation_is_one_line() {
        assert_eq!(
            report().to_github("events.lock.json"),
            "::error file=events.lock.json,title=OrderPaid version 1::OrderPaid version 1: a new program can't read old events: \
             field `total` is not written, but the reader needs it%0Acounterexample: {\"note\":\"a < b\"}%0ARaise it, 100 %25.\n"
        );
    }

    #[test]
    fn each_event_is_a_test_case() {
        let junit = report().to_junit(&["OrderPaid", "OrderPlaced"]);
        assert!(junit.contains("tests=\"2\" failures=\"1\""), "{junit}");
        assert!(
            junit.contains("<testcase classname=\"catalog\" name=\"OrderPlaced\">\n  </testcase>"),
            "{junit}"
        );
        assert!(junit.contains("a &lt; b"), "{junit}");
    }

    #[test]
    fn what_a_command_or_xml_can_not_hold_is_written_otherwise() {
        let mut report = report();
        report.findings[0].event = "a:b,c\r\n100 %".into();
        report.findings[0].reason = "\"x\" & <y> \u{1}\u{fffe}\u{ffff}".into();
        let github = report.to_github("C:\\a,b");
        assert!(
            github
                .starts_with("::error file=C%3A\\a%2Cb,title=a%3Ab%2Cc%0D%0A100 %25 version 1::a:b,c%0D%0A"),
            "{github}"
        );
        assert_eq!(github.lines().count(), 1, "{github}");
        let junit = report.to_junit(&[]);
        assert!(junit.contains("&quot;x&quot; &amp; &lt;y&gt; \u{fffd}\u{fffd}\u{fffd}"), "{junit}");
        assert!(!junit.contains(['\u{1}', '\u{fffe}', '\u{ffff}', '\r']), "{junit}");
    }
}
