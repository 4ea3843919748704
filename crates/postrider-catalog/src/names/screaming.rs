//! Names like `LEDGER_POSTED`.

use super::{NameRefusal, words};

/// Refuses what is not in capital letters, with `_` between the words.
pub(super) fn check(name: &str) -> Result<(), NameRefusal> {
    if fits(name) {
        return Ok(());
    }
    let suggested = words::lower(name).join("_").to_uppercase();
    let message = format!("`{name}` must be in capital letters, with `_` between its words");
    Err(NameRefusal::new(message, Some(suggested).filter(|name| fits(name))))
}

fn fits(name: &str) -> bool {
    let is_word = |word: &str| {
        !word.is_empty() && word.chars().all(|letter| letter.is_ascii_uppercase() || letter.is_ascii_digit())
    };
    name.starts_with(|first: char| first.is_ascii_uppercase()) && name.split('_').all(is_word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capital_letters_are_accepted_and_all_else_comes_with_what_would_be_right() {
        for name in ["LEDGER_POSTED", "LEDGER_REVERSED", "POSTED", "SHA256_COMPUTED"] {
            assert!(check(name).is_ok(), "{name}");
        }
        for (name, right) in [
            ("LedgerPosted", Some("LEDGER_POSTED")),
            ("ledger_posted", Some("LEDGER_POSTED")),
            ("LEDGER-POSTED", Some("LEDGER_POSTED")),
            ("LEDGER__POSTED", Some("LEDGER_POSTED")),
            ("_LEDGER", Some("LEDGER")),
            ("2_LEDGERS", None),
            ("", None),
        ] {
            assert_eq!(check(name).expect_err(name).suggestion(), right, "{name}");
        }
        assert_eq!(
            check("LedgerPosted").expect_err("refused").to_string(),
            "`LedgerPosted` must be in capital letters, with `_` between its words: use `LEDGER_POSTED`."
        );
    }
}
