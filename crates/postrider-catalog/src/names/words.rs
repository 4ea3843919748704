//! The words of a name, however it is written, and names made of words.

/// The words of a name, each as it was written: `HTTPRequestSent`, `payment_failed` and `order.paid.v1` have three each.
pub(super) fn split(name: &str) -> Vec<&str> {
    let mut words = Vec::new();
    for part in name.split(|character: char| !character.is_alphanumeric()) {
        let mut start = 0;
        let letters: Vec<(usize, char)> = part.char_indices().collect();
        for (index, pair) in letters.windows(2).enumerate() {
            let [(_, before), (at, here)] = *pair else { continue };
            let after = letters.get(index + 2).map(|(_, letter)| *letter);
            let begins =
                here.is_uppercase() && (!before.is_uppercase() || after.is_some_and(char::is_lowercase));
            if begins {
                words.push(&part[start..at]);
                start = at;
            }
        }
        words.extend(Some(&part[start..]).filter(|word| !word.is_empty()));
    }
    words
}

/// The same words in lower case.
pub(super) fn lower(name: &str) -> Vec<String> {
    split(name).into_iter().map(str::to_lowercase).collect()
}

/// Whether it is written like `PaymentFailed`.
pub(super) fn is_pascal(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_uppercase())
        && name.chars().all(|character| character.is_ascii_alphanumeric())
        && (name.len() == 1 || name.contains(|character: char| character.is_ascii_lowercase()))
}

/// The words in PascalCase; `None` if none of them is left, or if they have letters that no name may have.
pub(super) fn pascal<Word: AsRef<str>>(words: &[Word]) -> Option<String> {
    let shouted = !words.iter().any(|word| word.as_ref().contains(|letter: char| letter.is_lowercase()));
    let mut name = String::new();
    for word in words {
        let word = if shouted { word.as_ref().to_lowercase() } else { word.as_ref().to_owned() };
        let mut letters = word.chars();
        name.extend(letters.next().into_iter().flat_map(char::to_uppercase));
        name.push_str(letters.as_str());
    }
    let digits = name.chars().take_while(char::is_ascii_digit).count();
    if digits == 1 {
        let number: usize = name[..1].parse().ok()?;
        name.replace_range(..1, NUMBERS[number]);
    }
    is_pascal(&name).then_some(name)
}

const NUMBERS: [&str; 10] = ["Zero", "One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine"];

/// Words that begin what is said about the deed: by whom, to whom, when.
pub(super) fn is_preposition(word: &str) -> bool {
    PREPOSITIONS.contains(&word)
}

/// Whether a word after the deed only says how it was: `Final`, `Again`, `Automatically`, `ViaWebJoin`.
pub(super) fn says_how(word: &str) -> bool {
    is_preposition(word) || ADVERBS.contains(&word) || word.ends_with("ly") || is_version(word)
}

/// Whether it is a version, such as `v2`.
pub(super) fn is_version(word: &str) -> bool {
    word.strip_prefix(['v', 'V']).is_some_and(|number| {
        !number.is_empty() && number.chars().all(|digit| digit.is_ascii_digit()) && !number.starts_with('0')
    })
}

const PREPOSITIONS: &[&str] = &[
    "about", "after", "against", "as", "at", "back", "because", "before", "behind", "below", "between", "by",
    "down", "due", "during", "for", "from", "in", "into", "of", "off", "on", "out", "outside", "over", "per",
    "through", "to", "under", "until", "up", "via", "when", "with", "within", "without",
];

const ADVERBS: &[&str] = &[
    "again",
    "away",
    "conflict",
    "early",
    "event",
    "ever",
    "final",
    "first",
    "forever",
    "here",
    "last",
    "late",
    "manual",
    "not",
    "once",
    "partial",
    "permanent",
    "temporary",
    "twice",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_in_every_spelling() {
        for (name, words) in [
            ("PaymentFailed", vec!["Payment", "Failed"]),
            ("payment_failed", vec!["payment", "failed"]),
            ("PAYMENT-FAILED", vec!["PAYMENT", "FAILED"]),
            ("loopers.order.paid.v1", vec!["loopers", "order", "paid", "v1"]),
            ("HTTPRequestV2Sent", vec!["HTTP", "Request", "V2", "Sent"]),
            ("Http2Enabled", vec!["Http2", "Enabled"]),
            (" two words ", vec!["two", "words"]),
            ("…", vec![]),
        ] {
            assert_eq!(split(name), words, "{name}");
        }
    }

    #[test]
    fn words_become_one_name() {
        for (name, pascal_name) in [
            ("payment_failed", Some("PaymentFailed")),
            ("LEDGER_POSTED", Some("LedgerPosted")),
            ("SMSSent", Some("SMSSent")),
            ("2FAEnabled", Some("TwoFAEnabled")),
            ("2024Closed", None),
            ("결제완료", None),
            ("", None),
        ] {
            assert_eq!(pascal(&split(name)).as_deref(), pascal_name, "{name}");
        }
    }
}
