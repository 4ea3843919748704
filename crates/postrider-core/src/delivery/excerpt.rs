//! The excerpt of a destination's answer that is stored with a failed attempt.

use std::fmt;

/// The start of a destination's response, on one line.
///
/// A destination may echo the data that it was sent. So a response is stored with its [attempt](crate::PastAttempt) and shown only
/// with that delivery. It is never logged and never part of an error message; its `Debug` form shows only its length.
#[derive(Clone, PartialEq, Eq)]
pub struct Excerpt(String);

impl Excerpt {
    /// Maximum number of characters.
    pub const MOST: usize = 500;
    /// Maximum number of bytes to read from a response; more are never needed.
    pub const BYTES: usize = 4096;

    /// The start of a response body; `None` if it is blank. Invalid UTF-8 is replaced; control characters and runs of white space
    /// become one space.
    pub fn new(body: &[u8]) -> Option<Self> {
        let body = &body[..body.len().min(Self::BYTES)];
        let text = one_line(&String::from_utf8_lossy(body), Self::MOST);
        (!text.is_empty()).then_some(Self(text))
    }

    /// Its text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Excerpt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Excerpt({} characters)", self.0.chars().count())
    }
}

/// A text on one line, of at most so many characters: control characters, those that change the direction of a text, and runs of white
/// space are one space.
pub(crate) fn one_line(text: &str, most: usize) -> String {
    let gap = |letter: char| {
        letter.is_whitespace()
            || letter.is_control()
            || matches!(letter, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
    };
    let (mut line, mut count) = (String::new(), 0);
    for word in text.split(gap).filter(|word| !word.is_empty()) {
        for letter in (count > 0).then_some(' ').into_iter().chain(word.chars()) {
            if count == most {
                // The last one says that there is more.
                line.pop();
                line.push('…');
                return line;
            }
            line.push(letter);
            count += 1;
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(body: &[u8]) -> Option<String> {
        Excerpt::new(body).map(|answer| answer.as_str().to_owned())
    }

    #[test]
    fn an_answer_is_one_harmless_line() {
        assert_eq!(answer(b"{\r\n\t\"error\":  \"no\"\n}\n").as_deref(), Some("{ \"error\": \"no\" }"));
        assert_eq!(answer(b"a\x1b[31mred\0b \xff\xfe").as_deref(), Some("a [31mred b \u{fffd}\u{fffd}"));
        assert_eq!(answer("a\u{202e}b".as_bytes()).as_deref(), Some("a b"));
        assert_eq!(answer(b""), None);
        assert_eq!(answer(b" \n\0 "), None);
    }

    #[test]
    fn a_long_answer_is_cut_between_characters() {
        let exact = "é".repeat(Excerpt::MOST);
        assert_eq!(answer(exact.as_bytes()).as_deref(), Some(exact.as_str()));
        let long = answer("é".repeat(Excerpt::MOST + 1).as_bytes()).expect("an answer");
        assert_eq!(long.chars().count(), Excerpt::MOST);
        assert!(long.ends_with("é…"));
        let endless = answer("😀".repeat(100_000).as_bytes()).expect("an answer");
        assert_eq!(endless.chars().count(), Excerpt::MOST);
    }

    #[test]
    fn a_debug_line_does_not_say_what_was_answered() {
        let answer = Excerpt::new(b"card 4711 was refused").expect("an answer");
        assert_eq!(format!("{answer:?}"), "Excerpt(21 characters)");
    }
}
