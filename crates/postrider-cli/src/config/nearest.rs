//! The word that somebody meant.

/// The nearest of several words, if one is near enough to be meant.
pub(crate) fn nearest<'a>(word: &str, words: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let near = word.chars().count() / 3 + 1;
    let found = words.into_iter().map(|each| (distance(word, each), each)).min()?;
    (found.0 <= near).then_some(found.1)
}

/// How many letters have to be changed, added or left out to make one word of another.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (i, letter) in one.chars().enumerate() {
        let mut corner = std::mem::replace(&mut row[0], i + 1);
        for (j, another) in other.iter().enumerate() {
            let changed = corner + usize::from(letter != *another);
            corner = row[j + 1];
            row[j + 1] = changed.min(corner + 1).min(row[j] + 1);
        }
    }
    row[other.len()]
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
