//! Verbs: whether a word is one, whether it is past, and from one form to the other. Words are in lower case.

use super::irregular;
use super::verb_lists::{
    DOUBLING, ENDS_IN_EE, HAPPEN_BY_THEMSELVES, IRREGULAR_NOUNS, NOT_PAST, NOUNS_TOO, ONLY_VERBS, PREFIXES,
    RARE_PASTS,
};

/// Whether it is a verb as it is in a command, such as `pay`.
pub(super) fn is_verb(word: &str) -> bool {
    is_known(word) || without_prefix(word).is_some_and(is_known)
}

/// Whether it is a verb and hardly ever a noun: `send` is, `order` is not.
pub(super) fn is_only_a_verb(word: &str) -> bool {
    let alone = |word: &str| {
        is_listed(ONLY_VERBS, word)
            || (irregular::of_base(word).is_some() && !is_listed(IRREGULAR_NOUNS, word))
    };
    alone(word) || without_prefix(word).is_some_and(alone)
}

/// Whether it says that something has happened: `paid`, `went`, `created`.
pub(super) fn is_past(word: &str) -> bool {
    // `Created2` says it a second time.
    let word = word.trim_end_matches(|digit: char| digit.is_ascii_digit());
    let of_past = |word: &str| irregular::of_past(word).is_some();
    // `unpaid` and `overdrawn`, `rebought` and `outspent`; not `outset`, whose end is no past alone.
    let after = |prefixes: &[&str], fits: &dyn Fn(&str) -> bool| {
        prefixes.iter().filter_map(|prefix| word.strip_prefix(prefix)).any(fits)
    };
    of_past(word)
        || RARE_PASTS.contains(&word)
        || after(&["un", "over", "under", "mis"], &of_past)
        || (!["present", "relent"].contains(&word)
            && after(&["re", "pre", "out"], &|rest| {
                irregular::of_past(rest).is_some_and(|verb| verb.base != rest)
            }))
        || is_regular_past(word)
}

/// Whether it is past and the base as well, as `set` and `read` are.
pub(super) fn is_past_and_base(word: &str) -> bool {
    irregular::of_past(word).is_some_and(|verb| verb.base == word)
}

/// How a name says that it has happened: of `pay` it is `paid`, of `begin` it is `began`.
pub(super) fn past_of(base: &str) -> String {
    match irregular::of_base(base) {
        Some(verb) if HAPPEN_BY_THEMSELVES.contains(&base) => verb.past.to_owned(),
        Some(verb) => verb.participle.to_owned(),
        None => regular_past(base),
    }
}

/// The base of a word that is past, if the verb is known: of `paid` it is `pay`.
pub(super) fn base_of(past: &str) -> Option<String> {
    if let Some(verb) = irregular::of_past(past) {
        return Some(verb.base.to_owned());
    }
    known_among(bases_by_ending(past, "ed"))
}

/// The base of a word like `pay`, `paying` or `pays`, if the verb is known.
pub(super) fn base_of_present(word: &str) -> Option<String> {
    if is_verb(word) {
        return Some(word.to_owned());
    }
    let third = ["s", "es"].into_iter().filter_map(|ending| word.strip_suffix(ending)).map(str::to_owned);
    known_among(bases_by_ending(word, "ing").into_iter().chain(third).collect())
}

fn known_among(bases: Vec<String>) -> Option<String> {
    bases.into_iter().find(|base| is_verb(base))
}

/// What the base may be if the ending is taken off: `shipped` may come of `shipp`, `shippe` and `ship`.
fn bases_by_ending(word: &str, ending: &str) -> Vec<String> {
    let Some(stem) = word.strip_suffix(ending) else { return Vec::new() };
    let mut bases = vec![stem.to_owned(), format!("{stem}e")];
    let mut letters = stem.chars().rev();
    if let (Some(last), Some(before)) = (letters.next(), letters.next())
        && last == before
    {
        bases.push(stem[..stem.len() - last.len_utf8()].to_owned());
    }
    bases.extend(stem.strip_suffix('i').map(|stem| format!("{stem}y")));
    bases
}

fn is_regular_past(word: &str) -> bool {
    let Some(stem) = word.strip_suffix("ed") else { return false };
    if stem.ends_with('e') {
        // `agreed` is past; `feed`, `need` and `speed` are not, nor is any other word that ends so.
        return ENDS_IN_EE.iter().any(|base| base.strip_suffix('e') == Some(stem));
    }
    stem.contains(is_vowel_or_y) && !NOT_PAST.contains(&word)
}

fn regular_past(base: &str) -> String {
    let before_last = base.chars().rev().nth(1);
    match base.strip_suffix('y') {
        Some(stem) if !before_last.is_some_and(is_vowel) => format!("{stem}ied"),
        _ if base.ends_with('e') => format!("{base}d"),
        _ if doubles(base) => format!("{base}{}ed", base.chars().last().unwrap_or_default()),
        _ => format!("{base}ed"),
    }
}

/// Whether the last letter is doubled, as in `shipped` and `submitted`.
fn doubles(base: &str) -> bool {
    if DOUBLING.contains(&base) {
        return true;
    }
    let letters: Vec<char> = base.chars().collect();
    let [.., before, vowel, last] = letters[..] else { return false };
    let one_vowel = letters.iter().filter(|letter| is_vowel_or_y(**letter)).count() == 1;
    one_vowel
        && is_vowel(vowel)
        && !is_vowel(before)
        && !matches!(last, 'a' | 'e' | 'i' | 'o' | 'u' | 'w' | 'x' | 'y')
}

fn is_known(word: &str) -> bool {
    is_listed(ONLY_VERBS, word) || is_listed(NOUNS_TOO, word) || irregular::of_base(word).is_some()
}

/// `reactivate` is as much a verb as `activate`.
fn without_prefix(word: &str) -> Option<&str> {
    PREFIXES.iter().find_map(|prefix| word.strip_prefix(prefix)).filter(|rest| rest.len() > 2)
}

fn is_listed(sorted: &[&str], word: &str) -> bool {
    sorted.binary_search(&word).is_ok()
}

fn is_vowel(letter: char) -> bool {
    matches!(letter, 'a' | 'e' | 'i' | 'o' | 'u')
}

fn is_vowel_or_y(letter: char) -> bool {
    is_vowel(letter) || letter == 'y'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lists_are_in_order_so_that_a_search_finds_every_word() {
        for list in [ONLY_VERBS, NOUNS_TOO, IRREGULAR_NOUNS] {
            assert!(list.is_sorted_by(|one, next| one < next));
        }
    }

    #[test]
    fn a_verb_has_its_past_and_the_past_its_verb() {
        for (base, past) in [
            ("pay", "paid"),
            ("send", "sent"),
            ("begin", "began"),
            ("create", "created"),
            ("ship", "shipped"),
            ("fail", "failed"),
            ("open", "opened"),
            ("submit", "submitted"),
            ("cancel", "canceled"),
            ("apply", "applied"),
            ("deploy", "deployed"),
            ("guarantee", "guaranteed"),
            ("transfer", "transferred"),
            ("fix", "fixed"),
            ("reactivate", "reactivated"),
            ("withdraw", "withdrawn"),
            ("reset", "reset"),
        ] {
            assert_eq!(past_of(base), past);
            assert!(is_past(past), "{past}");
            assert_eq!(base_of(past).as_deref(), Some(base));
        }
    }

    #[test]
    fn words_that_only_end_like_a_past_are_none() {
        for word in [
            "feed", "need", "speed", "seed", "bed", "embed", "shed", "red", "hundred", "newsfeed", "succeed",
            "sacred", "present",
        ] {
            assert!(!is_past(word), "{word}");
        }
        for word in ["agreed", "freed", "used", "owed", "tied", "cancelled", "learned", "unpaid", "resent"] {
            assert!(is_past(word), "{word}");
        }
    }

    #[test]
    fn the_present_has_its_base() {
        for (word, base) in [
            ("processing", Some("process")),
            ("shipping", Some("ship")),
            ("updating", Some("update")),
            ("pays", Some("pay")),
            ("pay", Some("pay")),
            ("processes", Some("process")),
            ("string", None),
        ] {
            assert_eq!(base_of_present(word).as_deref(), base, "{word}");
        }
    }
}
