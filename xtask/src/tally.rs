//! How many tests passed and failed, counted from the lines that test programs end with.

/// How many tests passed, failed and were left out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Passed.
    pub passed: usize,
    /// Failed.
    pub failed: usize,
    /// Left out: marked with `#[ignore]`.
    pub ignored: usize,
}

impl Tally {
    /// What a program's lines `test result: …` say; nothing if there is none, because it did not come to its end.
    pub fn of(output: &str) -> Option<Self> {
        let lines = output.lines().filter_map(|line| line.strip_prefix("test result: "));
        lines.map(Self::of_line).reduce(|all, one| {
            let (all, one) = (all?, one?);
            Some(all.and(one))
        })?
    }

    /// As in `ok. 12 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 3.21s`.
    fn of_line(line: &str) -> Option<Self> {
        let count = |what: &str| {
            let mut parts = line.split([';', '.']);
            parts.find_map(|part| part.trim().strip_suffix(what)?.trim().parse().ok())
        };
        Some(Self { passed: count("passed")?, failed: count("failed")?, ignored: count("ignored")? })
    }

    /// Both together.
    pub fn and(self, other: Self) -> Self {
        Self {
            passed: self.passed + other.passed,
            failed: self.failed + other.failed,
            ignored: self.ignored + other.ignored,
        }
    }
}

/// The tests that a program names as failed.
pub fn failed(output: &str) -> Vec<&str> {
    output.lines().filter_map(|line| line.strip_prefix("test ")?.strip_suffix(" ... FAILED")).collect()
}

/// The tests that a program names as passed.
pub fn passed(output: &str) -> Vec<&str> {
    output.lines().filter_map(|line| line.strip_prefix("test ")?.strip_suffix(" ... ok")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = "
running 3 tests
test one ... ok
test two ... FAILED
test three ... ignored

test result: FAILED. 1 passed; 1 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.52s
";

    #[test]
    fn results_are_counted_from_the_closing_lines() {
        let one = Tally { passed: 1, failed: 1, ignored: 1 };
        assert_eq!(Tally::of(OUTPUT), Some(one));
        assert_eq!(Tally::of(&OUTPUT.repeat(2)), Some(one.and(one)));
        assert_eq!(failed(OUTPUT), ["two"]);
        assert_eq!(passed(OUTPUT), ["one"]);
    }

    #[test]
    fn a_program_that_did_not_come_to_its_end_has_no_results() {
        assert_eq!(Tally::of("running 3 tests\ntest one ... ok\n"), None);
        assert_eq!(Tally::of("test result: ok. many passed"), None);
    }
}
