//! Cleaning up after a process that could not do it itself.

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use crate::account::Account;
use crate::task_error::TaskError;

/// Waits for a line or for the end of its input. The end without a line means that the owner died.
const WAIT: &str = "read -r _ && exit 0\n";

/// A script for `sh` that writes its own process id into the folder `$1` and turns into the program that follows, with the same
/// id: there is no moment at which a server runs and its watchdog can't find it.
pub const LAUNCH: &str = r#"echo $$ > "$1/pid" && shift && exec "$@""#;

/// A script for a watchdog: ends the process that [`LAUNCH`] started in the folder `$1`, and removes the folder. The process with
/// that id may be a stranger by now: ours mentions its folder.
pub const CLEAN_UP: &str = r#"
if pid=$(cat "$1/pid"); then
    case "$(tr '\0' ' ' < "/proc/$pid/cmdline" || ps -ww -p "$pid" -o command=)" in
        *"$1"*) kill -s KILL "$pid" ;;
    esac
fi
for attempt in 1 2 3 4 5; do
    rm -rf "$1" && exit 0
    sleep 1
done
"#;

/// A small shell that waits beside this process and runs a script once the process is gone.
///
/// It covers what `Drop` cannot: a kill, an abort, `exit`, and servers held in a `static`. It notices by its
/// input, a pipe that the system closes with its owner, so it needs no process ids and cannot mistake one.
#[derive(Debug)]
pub struct Watchdog {
    shell: Child,
}

impl Watchdog {
    /// Has `script` run under `account` with `arguments` as `$1`, `$2`, … when this process ends, however it ends.
    pub fn spawn(account: &Account, script: &str, arguments: &[&str]) -> Result<Self, TaskError> {
        let mut shell = Command::new("sh");
        shell
            .args(["-c", &format!("{WAIT}{script}"), "sh"])
            .args(arguments)
            .current_dir("/")
            // Ctrl-C reaches everything in the group of the terminal's foreground: not the watchdog.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        account.run(&mut shell);
        let shell = shell
            .spawn()
            .map_err(|error| TaskError::new(format!("could not start a shell to clean up: {error}")))?;
        Ok(Self { shell })
    }

    /// There is nothing left to clean up, or it shall stay: the script does not run.
    pub fn disarm(mut self) {
        if let Some(mut input) = self.shell.stdin.take() {
            let _ = input.write_all(b"disarmed\n");
        }
    }
}

impl Drop for Watchdog {
    /// Ends the watchdog; unless it was disarmed its script runs now.
    fn drop(&mut self) {
        drop(self.shell.stdin.take());
        let _ = self.shell.wait();
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_watchdog_cleans_up_unless_it_was_disarmed() {
        let account = Account::for_servers().expect("an account");
        let folder = crate::folder::create(&account).expect("a folder");
        let path = folder.join("left");
        let spawn =
            || Watchdog::spawn(&account, r#"rm "$1""#, &[&path.to_string_lossy()]).expect("a watchdog");
        fs::write(&path, "").expect("written");

        spawn().disarm();
        assert!(path.exists());
        drop(spawn());
        assert!(!path.exists());
        crate::folder::remove(&folder).expect("removed");
    }
}
