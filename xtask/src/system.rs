//! `cargo xtask system NAME`: builds one of the five systems, starts the servers that it needs, and lets it tell its story.

use std::process::Command;
use std::time::{Duration, Instant};

use crate::foreground::Foreground;
use crate::kind::Kind;
use crate::services::Services;
use crate::session::Session;
use crate::task_error::TaskError;
use crate::{say, workspace};

/// A system, and the servers that its story needs.
#[derive(Debug)]
pub struct System {
    /// The name of its package and of its program.
    pub name: &'static str,
    kinds: &'static [Kind],
    /// Whether it also runs on SQLite, without a server.
    embedded: bool,
}

/// The five.
pub const SYSTEMS: &[System] = &[
    System { name: "umbra", kinds: &[Kind::Postgres], embedded: true },
    System { name: "everbit", kinds: &[Kind::Postgres, Kind::Kafka], embedded: true },
    System { name: "ledger", kinds: &[Kind::Mysql, Kind::Kafka], embedded: false },
    System { name: "commerce", kinds: &[Kind::Postgres, Kind::Kafka], embedded: false },
    System { name: "transfers", kinds: &[Kind::Postgres, Kind::Kafka], embedded: false },
];

/// What was asked for.
#[derive(Debug, PartialEq, Eq)]
pub struct Request<'a> {
    /// A system's name, or `all`.
    pub name: &'a str,
    release: bool,
    sqlite: bool,
    /// For the program: `story` and its options.
    story: Vec<&'a str>,
}

impl<'a> Request<'a> {
    /// Reads the words after `system`; a sentence if they make no sense.
    pub fn parse(words: &[&'a str]) -> Result<Self, String> {
        let names = || SYSTEMS.iter().map(|system| system.name).collect::<Vec<_>>().join(", ");
        let Some((name, options)) = words.split_first() else {
            return Err(format!("name a system: {} or all", names()));
        };
        if *name != "all" && !SYSTEMS.iter().any(|system| system.name == *name) {
            return Err(format!("{name} is no system; there are {} and all", names()));
        }
        let mut request = Self { name, release: false, sqlite: false, story: vec!["story"] };
        let mut options = options.iter().copied();
        while let Some(option) = options.next() {
            match option {
                "--release" => request.release = true,
                "--keep" | "--long" => request.story.push(option),
                "--break" if options.next() == Some("loss") => request.story.extend(["--break", "loss"]),
                "--break" => return Err("--break must be followed by loss".to_owned()),
                "--store" if options.next() == Some("sqlite") => request.sqlite = true,
                "--store" => return Err("--store must be followed by sqlite".to_owned()),
                _ => {
                    return Err(format!(
                        "{option} is unknown; there are --keep, --long, --release, --break loss and --store sqlite"
                    ));
                }
            }
        }
        if *name == "all" && request.story.contains(&"--keep") {
            return Err("--keep is for one system".to_owned());
        }
        if request.sqlite {
            if let Some(system) = request.systems().find(|system| !system.embedded) {
                return Err(format!("{} needs its servers: umbra and everbit run on SQLite", system.name));
            }
            request.story.extend(["--store", "sqlite"]);
        }
        Ok(request)
    }

    /// Whether the time that a story takes says anything: a system that is kept ends when somebody wants it to.
    fn is_timed(&self) -> bool {
        !self.story.iter().any(|option| ["--keep", "--long"].contains(option))
    }

    fn systems(&self) -> impl Iterator<Item = &'static System> + '_ {
        SYSTEMS.iter().filter(|system| self.name == "all" || system.name == self.name)
    }
}

/// How long a story should take at most.
const AIM: Duration = Duration::from_secs(60);

/// Whether a story was told in time.
fn verdict(name: &str, took: Duration) -> String {
    let word = if took < AIM { "met" } else { "missed" };
    format!("    {word:<8} {name} took {:.1} s, and {} s is the aim", took.as_secs_f64(), AIM.as_secs())
}

/// Builds and runs what was asked for; the first exit code that is not 0, after all have run.
pub fn run(foreground: &Foreground, request: &Request<'_>) -> Result<u8, TaskError> {
    let mut cargo = workspace::cargo();
    // All at once, so that what they share is built once.
    cargo.args(["build", "-p", "postrider-cli"]);
    cargo.args(request.systems().flat_map(|system| ["-p", system.name]));
    if request.release {
        cargo.arg("--release");
    }
    match foreground.run(&mut cargo)? {
        0 => {}
        code => return Ok(code),
    }
    let mut kinds: Vec<Kind> = Vec::new();
    if !request.sqlite {
        kinds.extend(
            Kind::ALL.into_iter().filter(|kind| request.systems().any(|system| system.kinds.contains(kind))),
        );
    }
    let session = Session::open(&Services::of_workspace(), &kinds)?;
    let mut first = 0;
    for system in request.systems() {
        let folder = workspace::target().join(if request.release { "release" } else { "debug" });
        let mut program = Command::new(folder.join(system.name));
        program.args(&request.story).current_dir(workspace::root()).envs(session.environment());
        let began = Instant::now();
        let code = foreground.run(&mut program)?;
        if request.is_timed() {
            println!("{}", verdict(system.name, began.elapsed()));
        }
        if code != 0 {
            say(&format!("{} ended with exit code {code}", system.name));
        }
        first = if first == 0 { code } else { first };
        if foreground.is_interrupted() {
            break;
        }
        println!();
    }
    Ok(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_system_and_its_options_are_read() {
        let request = Request::parse(&["umbra", "--keep", "--store", "sqlite"]).expect("a request");
        assert_eq!(request.story, ["story", "--keep", "--store", "sqlite"]);
        assert!(!request.is_timed(), "whoever keeps it up waits as long as he likes");
        assert!(Request::parse(&["umbra"]).expect("a request").is_timed());
        let request = Request::parse(&["umbra", "--break", "loss"]).expect("a request");
        assert_eq!(request.story, ["story", "--break", "loss"]);
        assert_eq!(Request::parse(&["all"]).expect("a request").systems().count(), 5);
    }

    #[test]
    fn a_story_of_a_minute_or_more_misses_its_aim() {
        let of = |millis| verdict("umbra", Duration::from_millis(millis));
        assert_eq!(of(59_900), "    met      umbra took 59.9 s, and 60 s is the aim");
        assert_eq!(of(60_000), "    missed   umbra took 60.0 s, and 60 s is the aim");
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_a_sentence() {
        for (words, said) in [
            (&["umbrella"][..], "umbrella is no system; there are umbra, everbit"),
            (&[], "name a system"),
            (&["ledger", "--store", "sqlite"], "ledger needs its servers"),
            (&["umbra", "--store", "oracle"], "must be followed by sqlite"),
            (&["all", "--keep"], "--keep is for one system"),
            (&["umbra", "--break", "order"], "--break must be followed by loss"),
            (&["umbra", "--kep"], "--kep is unknown"),
        ] {
            let refusal = Request::parse(words).expect_err("refused");
            assert!(refusal.contains(said), "{refusal}");
        }
    }
}
