//! Texts that others chose (names, reasons, errors, payloads) without what a terminal would obey.

use std::borrow::Cow;

/// Whether a terminal does something else with a letter than to show it: control characters, and those without a width or that change the
/// direction of a text, as an [`Excerpt`](postrider::store::Excerpt) leaves them out.
fn is_obeyed(letter: char) -> bool {
    letter.is_control()
        || matches!(letter, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

/// A text on one line, without anything that a terminal would obey.
pub(crate) fn plain(text: &str) -> String {
    text.chars().map(|letter| if is_obeyed(letter) { ' ' } else { letter }).collect()
}

/// The same of a text that may have several lines.
pub(super) fn plain_lines(text: &str) -> String {
    text.chars().map(|letter| if letter != '\n' && is_obeyed(letter) { ' ' } else { letter }).collect()
}

/// JSON that means the same, with everything escaped that a terminal would obey.
pub(super) fn escaped(json: &str) -> Cow<'_, str> {
    if !json.chars().any(|letter| letter != '\n' && is_obeyed(letter)) {
        return json.into();
    }
    let mut text = String::with_capacity(json.len());
    for letter in json.chars() {
        if letter != '\n' && is_obeyed(letter) {
            text.push_str(&format!("\\u{:04x}", u32::from(letter)));
        } else {
            text.push(letter);
        }
    }
    text.into()
}

#[cfg(test)]
mod tests {
    use postrider::store::Excerpt;

    use super::*;

    #[test]
    fn a_terminal_gets_no_letter_that_it_would_obey() {
        let mut obeyed = 0;
        for letter in '\0'..=char::MAX {
            let around = format!("a{letter}b");
            let kept = Excerpt::new(around.as_bytes()).is_some_and(|excerpt| excerpt.as_str() == around);
            if !kept && (!letter.is_whitespace() || letter.is_control()) {
                assert_eq!(plain(&around), "a b", "{:x}", u32::from(letter));
                obeyed += 1;
            } else {
                assert_eq!(plain(&around), around, "{:x}", u32::from(letter));
            }
        }
        assert!(obeyed > 65 + 5, "{obeyed}");
        assert_eq!(plain_lines("a\x1b[2J\nb\u{202e}c\r"), "a [2J\nb c ");
    }

    #[test]
    fn json_keeps_its_meaning_and_commands_nothing() {
        let json = "{\n  \"who\": \"a\u{9b}2J\u{202e}b\"\n}";
        let shown = escaped(json);
        assert_eq!(shown, "{\n  \"who\": \"a\\u009b2J\\u202eb\"\n}");
        let read = |text: &str| serde_json::from_str::<serde_json::Value>(text).expect("JSON");
        assert_eq!(read(&shown), read(json));
        assert_eq!(escaped("{\n}"), "{\n}");
    }
}
