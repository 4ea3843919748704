//! Whether somebody really wants it, who it is, and why: for every command that changes something.

use std::io::{BufRead, IsTerminal, Write};

use clap::Args;
use postrider::Uuid;
use postrider::store::{AuditEntry, Pause, Store};

use crate::Failure;
use crate::config::Problem;
use crate::output;

/// The flags of a command that changes something.
#[derive(Args, Debug, Clone, Default)]
pub(crate) struct Consent {
    /// Don't ask for confirmation
    #[arg(long, short)]
    pub(crate) yes: bool,
    /// Who makes the change, for the audit log (default: user@host)
    #[arg(long, value_name = "NAME")]
    pub(crate) who: Option<String>,
    /// Why, for the audit log
    #[arg(long, value_name = "REASON")]
    pub(crate) why: Option<String>,
}

impl Consent {
    /// Whether it may be done: by `--yes`, or by an answer on the terminal. Who can't be asked is told so.
    pub(crate) fn given(&self, question: &str) -> Result<bool, Failure> {
        if self.yes {
            return Ok(true);
        }
        if !can_ask() {
            let what = format!(
                "{question} This is not a terminal, so postrider can't ask for confirmation; pass --yes"
            );
            return Err(Problem::new(what).into());
        }
        let mut terminal = std::io::stderr().lock();
        write!(terminal, "{} [y/N] ", output::plain(question))?;
        terminal.flush()?;
        let mut answer = String::new();
        std::io::stdin().lock().read_line(&mut answer)?;
        let given = ["y", "yes"].contains(&answer.trim().to_lowercase().as_str());
        if !given {
            writeln!(terminal, "nothing was changed")?;
        }
        Ok(given)
    }

    /// The same for what adds something and takes nothing away: a script that says so means it.
    pub(crate) fn not_refused(&self, question: &str) -> Result<bool, Failure> {
        if can_ask() { self.given(question) } else { Ok(true) }
    }

    /// Whether the audit can be written: asked before anything is done.
    pub(crate) fn check(&self) -> Result<(), Problem> {
        let entry = self.entry("check", None, None);
        entry.check().map_err(|error| Problem::new(error.message()))
    }

    /// Writes down what was done.
    pub(crate) async fn audit(
        &self,
        log: &dyn Store,
        what: &str,
        subscription: Option<&str>,
        event_id: Option<Uuid>,
    ) -> Result<(), Failure> {
        let entry = self.entry(what, subscription, event_id);
        log.audit(&entry).await.map_err(|error| {
            format!(
                "the change was made ({what}), but writing it to the audit log failed: {}",
                error.message()
            )
            .into()
        })
    }

    /// Writes down what is about to be done to a subscription; where that fails it must be left undone.
    pub(crate) async fn announce(
        &self,
        log: &dyn Store,
        what: &str,
        subscription: &str,
    ) -> Result<(), Failure> {
        log.audit(&self.entry(what, Some(subscription), None)).await.map_err(|error| {
            format!("nothing was changed, because writing to the audit log failed: {}", error.message())
                .into()
        })
    }

    /// Who makes the change.
    pub(crate) fn who(&self) -> String {
        self.who.clone().unwrap_or_else(who)
    }

    /// Who pauses a subscription, and why.
    pub(crate) fn pause(&self) -> Pause {
        Pause { who: self.who(), why: self.why.clone() }
    }

    fn entry(&self, what: &str, subscription: Option<&str>, event_id: Option<Uuid>) -> AuditEntry {
        AuditEntry {
            who: self.who(),
            what: what.to_owned(),
            why: self.why.clone(),
            subscription: subscription.map(ToOwned::to_owned),
            event_id,
        }
    }
}

/// Whether somebody is there to answer.
fn can_ask() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// The user and the machine: `ada@shop-1`.
fn who() -> String {
    let named = |variable| std::env::var(variable).ok().filter(|name| !name.is_empty());
    let user = named("USER").or_else(|| named("LOGNAME")).or_else(|| named("USERNAME")).or_else(owner);
    let host = gethostname::gethostname();
    let who = format!("{}@{}", user.as_deref().unwrap_or("somebody"), host.to_string_lossy());
    who.chars().filter(|letter| !letter.is_control()).take(100).collect()
}

/// Whose process this is, where no variable says so, as in a container.
#[cfg(target_os = "linux")]
fn owner() -> Option<String> {
    use std::os::unix::fs::MetadataExt;
    let id = std::fs::metadata("/proc/self").ok()?.uid().to_string();
    let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let name = users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)? == id).then(|| name.to_owned())
    });
    Some(name.unwrap_or_else(|| format!("uid-{id}")))
}

#[cfg(not(target_os = "linux"))]
fn owner() -> Option<String> {
    None
}
