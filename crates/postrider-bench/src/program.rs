//! A benchmark as a program: its arguments, and how it ends.

use std::process::ExitCode;

use crate::AnyError;
use crate::report::Report;

/// Which parts are asked for, and how thoroughly.
pub struct Wanted {
    /// Whether a short form will do.
    pub quick: bool,
    only: Vec<String>,
}

impl Wanted {
    /// Whether a part is asked for; all are where none is named.
    pub fn part(&self, part: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| only == part)
    }
}

/// Runs a benchmark that has these parts. The exit code says whether every bar was met.
pub async fn run(
    name: &str,
    parts: &[&str],
    benchmark: impl AsyncFnOnce(&mut Report, Wanted) -> Result<(), AnyError>,
) -> ExitCode {
    let (mut json, mut wanted) = (false, Wanted { quick: false, only: Vec::new() });
    for argument in std::env::args().skip(1) {
        match argument.as_str() {
            "--json" => json = true,
            "--quick" => wanted.quick = true,
            part if parts.contains(&part) => wanted.only.push(argument),
            _ => {
                let parts = parts.join(", ");
                eprintln!("{name}: {argument} is not known; it takes --json, --quick, and any of {parts}");
                return ExitCode::from(2);
            }
        }
    }
    let mut report = Report::new(json);
    ended(name, benchmark(&mut report, wanted).await.map(|()| report.finish()))
}

/// The exit code of a program that ended like this.
pub fn ended(name: &str, result: Result<bool, AnyError>) -> ExitCode {
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(failure) => {
            eprintln!("{name}: {failure}");
            ExitCode::from(1)
        }
    }
}
