//! Processes of the machine: running one to its end, finding out which live, signalling them.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::task_error::TaskError;

/// How often a condition is looked at while waiting for it.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// A process that runs now; one that has ended and only waits to be reaped is not among them.
#[derive(Debug)]
pub struct Process {
    /// Its process id.
    pub pid: u32,
    /// The process that started it, or that inherited it.
    pub parent: u32,
    /// Its program and arguments, separated by spaces.
    pub command: String,
}

/// Runs `command` to its end and gives what it wrote to stdout.
///
/// A program that is missing or fails is a [`TaskError`] that says "could not `purpose`" with what it wrote.
pub fn output(command: &mut Command, purpose: &str) -> Result<String, TaskError> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command
        .stdin(Stdio::null())
        .output()
        .map_err(|error| TaskError::new(format!("could not {purpose}: {program} does not run: {error}")))?;
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() {
        return Ok(stdout);
    }
    let written = format!("{stdout}{}", String::from_utf8_lossy(&output.stderr));
    Err(TaskError::new(format!("could not {purpose}: {program} ended with {}", output.status))
        .with_log(&written))
}

/// Every process that runs on this machine, as far as it may be seen.
pub fn list() -> Vec<Process> {
    if !has_proc() {
        return list_from_ps();
    }
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    entries.flatten().filter_map(|entry| from_proc(entry.file_name().to_str()?.parse().ok()?)).collect()
}

/// The process with the id `pid`, if it runs.
pub fn find(pid: u32) -> Option<Process> {
    if has_proc() { from_proc(pid) } else { list_from_ps().into_iter().find(|process| process.pid == pid) }
}

/// Whether process `pid` runs and mentions `path` in its command line.
///
/// A process id is given anew after its process ended: the path tells ours from a stranger's.
pub fn is_running(pid: u32, path: &Path) -> bool {
    find(pid).is_some_and(|process| process.command.contains(path.to_string_lossy().as_ref()))
}

/// Whether process `pid` runs and all of it has been stopped by a signal.
pub fn is_paused(pid: u32) -> bool {
    if !has_proc() {
        let mut ps = Command::new("ps");
        ps.args(["-o", "stat=", "-p", &pid.to_string()]);
        return output(&mut ps, "look at a process").is_ok_and(|state| state.trim().starts_with('T'));
    }
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else { return false };
    let mut states = threads.flatten().filter_map(|thread| {
        let stat = fs::read_to_string(thread.path().join("stat")).ok()?;
        stat.rsplit_once(") ")?.1.chars().next()
    });
    states.all(|state| state == 'T')
}

/// Sends a signal (`"TERM"`, `"KILL"`, …) to processes; those that have ended meanwhile are passed over.
///
/// A negative number means a process group.
pub fn signal(name: &str, targets: &[i64]) {
    for target in targets {
        // The shell's own `kill`: the program of that name is missing on small machines.
        let _ = Command::new("sh")
            .args(["-c", r#"kill -s "$1" -- "$2""#, "sh", name, &target.to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
    }
}

/// Looks at a condition until it holds, at most for `limit`; gives whether it came to hold.
pub fn wait_until(limit: Duration, mut condition: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + limit;
    loop {
        if condition() {
            return true;
        }
        if Instant::now() >= deadline {
            return false;
        }
        thread::sleep(LOOK_EVERY);
    }
}

/// Quotes `text` for a POSIX shell, where it needs quoting.
pub fn shell_quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/:@._-+=%,".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

fn has_proc() -> bool {
    Path::new("/proc/self/stat").exists()
}

fn from_proc(pid: u32) -> Option<Process> {
    let folder = Path::new("/proc").join(pid.to_string());
    let parent = running_parent(&fs::read_to_string(folder.join("stat")).ok()?)?;
    let command = fs::read(folder.join("cmdline")).ok()?;
    Some(Process { pid, parent, command: String::from_utf8_lossy(&command).replace('\0', " ") })
}

/// The parent in a line of `/proc/PID/stat`, unless that process has ended.
fn running_parent(stat: &str) -> Option<u32> {
    // The second field is the program's name in parentheses, which may itself hold spaces and parentheses.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace();
    let state = fields.next()?;
    if matches!(state, "Z" | "X") {
        return None;
    }
    fields.next()?.parse().ok()
}

fn list_from_ps() -> Vec<Process> {
    let mut ps = Command::new("ps");
    ps.args(["-A", "-ww", "-o", "pid=,ppid=,stat=,command="]);
    output(&mut ps, "list the processes").unwrap_or_default().lines().filter_map(process_of_ps).collect()
}

/// The process in a line of `ps`, unless it has ended.
fn process_of_ps(line: &str) -> Option<Process> {
    let mut fields = line.split_whitespace();
    let pid = fields.next()?.parse().ok()?;
    let parent = fields.next()?.parse().ok()?;
    if fields.next()?.starts_with('Z') {
        return None;
    }
    Some(Process { pid, parent, command: fields.collect::<Vec<_>>().join(" ") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_name_with_parentheses_does_not_hide_its_parent() {
        assert_eq!(running_parent("77 (a) S (b) S 12 77 77 0"), Some(12));
        assert_eq!(running_parent("77 (postgres) Z 12 77 77 0"), None);
    }

    #[test]
    fn a_line_of_ps_is_read_like_an_entry_of_proc() {
        let process = process_of_ps("  77    12 Ss   /bin/postgres -D /tmp/data").expect("a process");
        assert_eq!((process.pid, process.parent), (77, 12));
        assert_eq!(process.command, "/bin/postgres -D /tmp/data");
        assert!(process_of_ps("  77    12 Z+   (postgres)").is_none());
    }

    #[test]
    fn this_process_is_running_only_under_its_own_command_line() {
        let program = std::env::current_exe().expect("a path");
        assert!(is_running(std::process::id(), &program));
        assert!(!is_running(std::process::id(), Path::new("/not/this/program")));
    }

    #[test]
    fn a_quoted_text_reaches_the_shell_unchanged() {
        for text in ["plain/path", "with space", "it's $HOME", ""] {
            let script = format!("printf %s {}", shell_quoted(text));
            assert_eq!(output(Command::new("sh").args(["-c", &script]), "print").expect("printed"), text);
        }
    }
}
