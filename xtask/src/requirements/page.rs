//! The rows of the page: `| id | what it asks | tests | where we differ |`.

/// A row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Row {
    /// The requirement.
    pub(super) id: String,
    /// The tests that prove it: what stands between backticks in the third column.
    pub(super) tests: Vec<String>,
}

/// The rows of a page; other tables and lines are skipped.
pub(super) fn rows(text: &str) -> Vec<Row> {
    text.lines().filter_map(row).collect()
}

fn row(line: &str) -> Option<Row> {
    let mut cells = line.strip_prefix('|')?.split('|').map(str::trim);
    let id = cells.next().filter(|id| is_id(id))?.to_owned();
    let tests = cells.nth(1)?.split('`').skip(1).step_by(2).map(str::to_owned).collect();
    Some(Row { id, tests })
}

/// Whether a word is a letter and a number.
pub(super) fn is_id(word: &str) -> bool {
    let mut signs = word.chars();
    let letter = signs.next().is_some_and(|letter| "UELCTX".contains(letter));
    let digits = signs.as_str();
    letter && !digits.is_empty() && digits.chars().all(|digit| digit.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_found_among_other_lines() {
        let text = "# Title\n| id | asks | tests | differs |\n|---|---|---|---|\n| U1 | a `b` | `p::q::r`, `s::t::u` | `no` |\nU2\n";
        let tests = vec!["p::q::r".to_owned(), "s::t::u".to_owned()];
        assert_eq!(rows(text), [Row { id: "U1".to_owned(), tests }]);
        assert!(!is_id("U") && !is_id("Z1") && is_id("X2") && !is_id("U1a"));
    }
}
