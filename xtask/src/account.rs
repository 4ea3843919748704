//! The account that servers run under.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use crate::process;
use crate::task_error::TaskError;

/// Accounts that a server may run under when root starts it, the best first.
const UNPRIVILEGED: [&str; 2] = ["postgres", "nobody"];

/// Who runs a server: the developer, or an unprivileged account when the developer is root, since database
/// servers refuse to run as root.
#[derive(Debug, Clone, Copy)]
pub struct Account {
    /// User and group to change to.
    ids: Option<(u32, u32)>,
}

impl Account {
    /// The account for servers that this process starts.
    pub fn for_servers() -> Result<Self, TaskError> {
        if !is_root()? {
            return Ok(Self::own_user());
        }
        for name in UNPRIVILEGED {
            if let (Ok(user), Ok(group)) = (id(&["-u", name]), id(&["-g", name])) {
                return Ok(Self { ids: Some((user, group)) });
            }
        }
        Err(TaskError::new(
            "a database server does not run as root, and there is no account `postgres` or `nobody`",
        ))
    }

    /// Whoever runs this process.
    pub fn own_user() -> Self {
        Self { ids: None }
    }

    /// Makes `command` run under this account.
    pub fn run(&self, command: &mut Command) {
        if let Some((user, group)) = self.ids {
            command.uid(user).gid(group);
        }
    }

    /// Hands over everything at and below `path` to this account.
    pub fn own(&self, path: &Path) -> Result<(), TaskError> {
        let Some((user, group)) = self.ids else { return Ok(()) };
        let mut chown = Command::new("chown");
        chown.args(["-R", "-h", &format!("{user}:{group}"), "--"]).arg(path);
        process::output(&mut chown, &format!("hand {} to the server's account", path.display())).map(drop)
    }

    /// Whether this account can enter and write the folder at `path`.
    pub fn can_write(&self, path: &Path) -> bool {
        let mut test = Command::new("sh");
        test.args(["-c", r#"cd "$1" && test -w ."#, "sh"]).arg(path).current_dir("/");
        self.run(&mut test);
        process::output(&mut test, "look at a folder").is_ok()
    }
}

/// Whether this process runs as root.
pub fn is_root() -> Result<bool, TaskError> {
    Ok(id(&["-u"])? == 0)
}

fn id(arguments: &[&str]) -> Result<u32, TaskError> {
    let text = process::output(Command::new("id").args(arguments), "find out the user's number")?;
    text.trim().parse().map_err(|_| TaskError::new(format!("`id` answered `{}`, not a number", text.trim())))
}
