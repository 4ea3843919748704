//! Suggests the known name that is most similar to an unknown one.

/// The nearest of several words, if one is near enough to be meant.
#[doc(hidden)]
pub fn nearest<'a>(word: &str, words: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let near = word.chars().count() / 3 + 1;
    let found = words.into_iter().map(|each| (strsim::levenshtein(word, each), each)).min()?;
    (found.0 <= near).then_some(found.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_with_a_slip_in_it_is_recognised_and_another_is_not() {
        let words = ["lease", "poll_interval", "shutdown_grace"];
        assert_eq!(nearest("leese", words), Some("lease"));
        assert_eq!(nearest("pol_interval", words), Some("poll_interval"));
        assert_eq!(nearest("grace", words), None);
        assert_eq!(nearest("", []), None);
    }
}
