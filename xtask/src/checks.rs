//! What CI checks beside the tests: one table.

use crate::foreground::Foreground;
use crate::say;
use crate::task_error::TaskError;
use crate::workspace;

/// A run of `cargo` that has to succeed.
#[derive(Debug)]
pub struct Check {
    /// What it makes sure of.
    pub name: &'static str,
    /// The arguments of `cargo`, separated by spaces.
    pub arguments: &'static str,
    /// A variable to set for it.
    pub variable: Option<(&'static str, &'static str)>,
}

/// All checks, in the order they run: the quick ones first.
pub const CHECKS: &[Check] = &[
    Check { name: "the code is formatted", arguments: "fmt --all --check", variable: None },
    Check {
        name: "clippy has nothing to say",
        arguments: "clippy --workspace --all-targets -- -D warnings",
        variable: None,
    },
    Check {
        name: "the documentation builds",
        // With the features of the tests, for which librdkafka is built already.
        arguments: "doc --workspace --no-deps --features postrider/http,postrider/kafka-tls",
        variable: Some(("RUSTDOCFLAGS", "-D warnings")),
    },
    alone(
        "postrider builds for PostgreSQL alone",
        "check -p postrider --no-default-features --features postgres",
    ),
    alone("postrider builds for MySQL alone", "check -p postrider --no-default-features --features mysql"),
    alone("postrider builds for SQLite alone", "check -p postrider --no-default-features --features sqlite"),
    alone("postrider builds with HTTP alone", "check -p postrider --no-default-features --features http"),
    alone(
        "postrider builds with the helpers for tests alone",
        "check -p postrider --no-default-features --features testing",
    ),
    // With TLS, as the tests have it: without, librdkafka would be built a second time.
    alone(
        "postrider builds for Kafka alone",
        "check -p postrider --no-default-features --features kafka-tls",
    ),
    // What only an optimised build finds: futures nested too deep for the compiler. The first level finds it, in less time.
    Check {
        name: "the binary builds when it is optimised",
        arguments: "build --release",
        variable: Some(("CARGO_PROFILE_RELEASE_OPT_LEVEL", "1")),
    },
];

/// A crate with one of its features.
const fn alone(name: &'static str, arguments: &'static str) -> Check {
    Check { name, arguments, variable: None }
}

/// Runs all checks up to the first that fails; gives its exit code, or 0.
pub fn run(foreground: &Foreground) -> Result<u8, TaskError> {
    for check in CHECKS {
        say(&format!("checking that {} (cargo {})", check.name, check.arguments));
        let mut cargo = workspace::cargo();
        cargo.args(check.arguments.split(' ')).envs(check.variable);
        match foreground.run(&mut cargo)? {
            0 => {}
            code if foreground.is_interrupted() => return Ok(code),
            code => {
                say(&format!("it does not hold that {}", check.name));
                return Ok(code);
            }
        }
    }
    Ok(0)
}
