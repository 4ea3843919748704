//! Times as people write them: `5m`, `1h30m`, `500ms`.

use std::time::Duration;

const UNITS: [(&str, u64); 5] = [("ms", 1), ("s", 1000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];

/// A year for retention: it is never written, because it is not always as long.
const YEAR: (&str, u64) = ("y", 365 * 86_400_000);

/// Reads a time; nothing if it is none.
pub(crate) fn parse(text: &str) -> Option<Duration> {
    let mut rest = text.trim();
    let (mut total, mut last) = (0_u64, u64::MAX);
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let digits = rest.find(|letter: char| !letter.is_ascii_digit())?;
        let number: u64 = rest[..digits].parse().ok()?;
        let unit = &rest[digits..];
        let end = unit.find(|letter: char| letter.is_ascii_digit()).unwrap_or(unit.len());
        let (_, millis) = UNITS.iter().chain([&YEAR]).find(|(name, _)| *name == unit[..end].trim())?;
        // From large to small, each once.
        if *millis >= last {
            return None;
        }
        last = *millis;
        total = total.checked_add(number.checked_mul(*millis)?)?;
        rest = &unit[end..];
    }
    Some(Duration::from_millis(total))
}

/// Writes a time as it would be read.
pub(crate) fn show(duration: Duration) -> String {
    let mut left = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    if left == 0 {
        return "0s".to_owned();
    }
    let mut text = String::new();
    for (unit, millis) in UNITS.iter().rev() {
        let count = left / millis;
        left %= millis;
        if count > 0 {
            text.push_str(&format!("{count}{unit}"));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_people_write_them_and_written_the_same_way() {
        for (text, millis) in [
            ("500ms", 500),
            ("2s", 2000),
            ("1h30m", 5_400_000),
            ("7d", 604_800_000),
            ("0s", 0),
            ("90s", 90_000),
            ("5y", 157_680_000_000),
        ] {
            assert_eq!(parse(text), Some(Duration::from_millis(millis)), "{text}");
            assert_eq!(parse(&show(Duration::from_millis(millis))), Some(Duration::from_millis(millis)));
        }
        for text in ["", "5", "m", "5 minutes", "-1s", "1m1h", "1s1s", "1.5s", "99999999999999999999s"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
