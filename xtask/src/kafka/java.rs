//! Finding the programs that Kafka needs: Java runs it, Maven fetches it.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::kind::Kind;
use crate::process;
use crate::task_error::TaskError;

/// The oldest Java that the broker runs on.
const OLDEST: u32 = 17;

/// Debian's and Ubuntu's packages of both.
pub const PACKAGES: &[&str] = &["default-jre-headless", "maven"];

/// What the developer's environment may say to a Java program: the broker shall start the same everywhere.
const UNHEARD: [&str; 4] = ["CLASSPATH", "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS"];

/// A Java that runs the broker: the one in `JAVA_HOME`, else that in the path; `None` if neither is there, or new
/// enough.
pub fn find() -> Option<PathBuf> {
    let of_home = env::var_os("JAVA_HOME").map(|home| Path::new(&home).join("bin/java"));
    of_home.into_iter().chain([PathBuf::from("java")]).find(|java| {
        let mut version = command(java);
        version.arg("--version");
        process::output(&mut version, "ask Java for its version")
            .is_ok_and(|answer| major(&answer).is_some_and(|major| major >= OLDEST))
    })
}

/// A Java program (`java` itself, or its neighbour `keytool`) that hears nothing of the developer's environment.
pub fn command(program: &Path) -> Command {
    let mut command = Command::new(program);
    for variable in UNHEARD {
        command.env_remove(variable);
    }
    command.env("LC_ALL", "C");
    command
}

/// The program `name` that came with `java`.
pub fn neighbour(java: &Path, name: &str) -> PathBuf {
    java.with_file_name(name)
}

/// The failure to find both programs, saying what to install.
pub fn missing() -> TaskError {
    TaskError::new(format!(
        "Kafka needs Java {OLDEST} or later, and Maven to fetch it: install them (Debian and Ubuntu: `apt-get install \
         {}`; Fedora: `dnf install java-latest-openjdk-headless maven`; Homebrew: `brew install openjdk maven`), name a \
         broker in {}, or do without (--no-kafka)",
        PACKAGES.join(" "),
        Kind::Kafka.variable()
    ))
}

/// The first number of the version in the first line of `java --version`: `openjdk 17.0.15 2025-04-15`.
fn major(answer: &str) -> Option<u32> {
    let version = answer.lines().next()?.split_whitespace().nth(1)?;
    version.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_of_java_is_read_from_its_first_line() {
        assert_eq!(major("openjdk 17.0.15 2025-04-15\nOpenJDK Runtime Environment"), Some(17));
        assert_eq!(major("openjdk 25 2025-09-16"), Some(25));
        assert_eq!(major("java 21-ea 2023-09-19"), Some(21));
        assert_eq!(major("bash: java: command not found"), None);
    }

    #[test]
    fn keytool_is_looked_for_beside_java() {
        assert_eq!(neighbour(Path::new("/opt/jdk/bin/java"), "keytool"), Path::new("/opt/jdk/bin/keytool"));
        assert_eq!(neighbour(Path::new("java"), "keytool"), Path::new("keytool"));
    }
}
