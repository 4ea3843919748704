//! The commands that run in the foreground, and how they are interrupted.
//!
//! An interruption ends the commands and nothing else: this process goes on, stops its servers on the way out as
//! always, and only then ends.

use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::account::Account;
use crate::process;
use crate::task_error::TaskError;
use crate::watchdog::Watchdog;

/// The exit code of a command that was interrupted.
pub const INTERRUPTED: u8 = 130;

/// Runs commands until one of Ctrl-C, SIGTERM and SIGHUP arrives.
#[derive(Debug)]
pub struct Foreground {
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    /// The process groups of the commands that run.
    groups: Vec<i64>,
    interruptions: usize,
}

impl Foreground {
    /// Takes over the interruptions of this process; once is enough.
    pub fn new() -> Result<Self, TaskError> {
        let state = Arc::new(Mutex::new(State::default()));
        let interrupted = Arc::clone(&state);
        ctrlc::set_handler(move || interrupt(&interrupted))
            .map_err(|error| TaskError::new(format!("could not listen for Ctrl-C: {error}")))?;
        Ok(Self { state })
    }

    /// One that hears of no interruption.
    #[cfg(test)]
    pub(crate) fn unheard() -> Self {
        Self { state: Arc::default() }
    }

    /// Runs `command`, without input, and gives its exit code; [`INTERRUPTED`] if it was, or was before. Several threads may each
    /// run one.
    ///
    /// After an interruption nothing of it is left running: neither it nor what it started in its process group.
    /// It does not outlive this process either, if that is killed.
    pub fn run(&self, command: &mut Command) -> Result<u8, TaskError> {
        let program = command.get_program().to_string_lossy().into_owned();
        let mut state = lock(&self.state);
        if state.interruptions > 0 {
            return Ok(INTERRUPTED);
        }
        // A group of its own, so that the terminal's Ctrl-C comes here first and all of it can be ended at once.
        let mut child = command
            .process_group(0)
            .stdin(Stdio::null())
            .spawn()
            .map_err(|error| TaskError::new(format!("could not run {program}: {error}")))?;
        let group = -i64::from(child.id());
        state.groups.push(group);
        drop(state);

        let watchdog =
            Watchdog::spawn(&Account::own_user(), r#"kill -s TERM -- "$1""#, &[&group.to_string()]);
        let status = child.wait();
        let mut state = lock(&self.state);
        state.groups.retain(|running| *running != group);
        watchdog?.disarm();
        if state.interruptions > 0 {
            process::signal("KILL", &[group]);
            return Ok(INTERRUPTED);
        }
        let status =
            status.map_err(|error| TaskError::new(format!("could not wait for {program}: {error}")))?;
        let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(1);
        Ok(u8::try_from(code).unwrap_or(1))
    }

    /// Whether an interruption has arrived.
    pub fn is_interrupted(&self) -> bool {
        lock(&self.state).interruptions > 0
    }
}

/// The first interruption asks the commands to end, any further one ends them.
fn interrupt(state: &Mutex<State>) {
    let mut state = lock(state);
    state.interruptions += 1;
    process::signal(if state.interruptions == 1 { "TERM" } else { "KILL" }, &state.groups);
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::thread;
    use std::time::Duration;

    use super::*;

    #[test]
    fn an_interruption_ends_all_commands_and_begins_no_further_one() {
        let foreground = Foreground::unheard();
        let run =
            || foreground.run(Command::new("sh").args(["-c", "while :; do sleep 1; done"])).expect("a shell");
        thread::scope(|scope| {
            let commands = [scope.spawn(run), scope.spawn(run)];
            assert!(
                process::wait_until(Duration::from_secs(20), || lock(&foreground.state).groups.len() == 2)
            );
            interrupt(&foreground.state);
            for command in commands {
                assert_eq!(command.join().expect("an end"), INTERRUPTED);
            }
        });
        assert!(lock(&foreground.state).groups.is_empty());
        assert_eq!(run(), INTERRUPTED);
    }
}
