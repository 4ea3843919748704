//! `postrider status`: how the subscriptions are doing, and who holds their lanes.

pub(crate) mod look;
mod show;

use std::time::Duration;

use clap::Args;
use postrider::asked_to_end;

pub(crate) use self::show::soon;
use super::{times, unknown};
use crate::Failure;
use crate::config::Config;
use crate::database;
use crate::output;

/// The flags of `status`.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Only this subscription
    subscription: Option<String>,
    /// Show each stream in its own row
    #[arg(long)]
    streams: bool,
    /// Refresh until Ctrl-C, with this pause (default: 2s)
    #[arg(long, value_name = "PAUSE", num_args = 0..=1, require_equals = true, default_missing_value = "2s", value_parser = times::ago)]
    watch: Option<Duration>,
    /// Print a JSON object; with --watch one per line
    #[arg(long)]
    json: bool,
}

/// Shows how it is, once or again and again.
pub(crate) async fn run(config: &Config, arguments: Arguments) -> Result<bool, Failure> {
    let log = database::open(&config.store).await?;
    unknown::check(log.as_ref(), arguments.subscription.as_deref()).await?;
    let Some(pause) = arguments.watch else {
        let status = look::look(&log, arguments.subscription.as_deref()).await?;
        arguments.show(&status)?;
        return Ok(true);
    };
    let mut end = std::pin::pin!(asked_to_end());
    while !output::is_closed() {
        let looked = tokio::select! {
            looked = look::look(&log, arguments.subscription.as_deref()) => looked,
            () = &mut end => break,
        };
        match looked {
            Ok(status) => arguments.redraw(&status, pause)?,
            // A database that is restarted comes back.
            Err(failure) if is_passing(&failure) => {
                output::note(format!("postrider: status: {failure}; retrying"));
            }
            Err(failure) => return Err(failure),
        }
        tokio::select! {
            () = tokio::time::sleep(pause.max(Duration::from_millis(100))) => {}
            () = &mut end => break,
        }
    }
    Ok(true)
}

fn is_passing(failure: &Failure) -> bool {
    failure.downcast_ref::<postrider::Error>().is_some_and(postrider::Error::is_retryable)
}

impl Arguments {
    fn show(&self, status: &look::Status) -> Result<(), Failure> {
        if self.json {
            return output::json(status);
        }
        output::print(&show::text(status, self.streams))
    }

    fn redraw(&self, status: &look::Status, pause: Duration) -> Result<(), Failure> {
        if self.json {
            return output::print(&format!("{}\n", serde_json::to_string(status)?));
        }
        let head = format!("{}, every {}", output::when(status.at.0), output::age(pause));
        let body = show::text(status, self.streams);
        if output::is_terminal() {
            // To the upper left corner, and clear what is below: nothing flickers.
            let body = body.replace('\n', "\x1b[K\n");
            return output::print(&format!("\x1b[H{head}; Ctrl-C to stop\x1b[K\n\x1b[K\n{body}\x1b[J"));
        }
        output::print(&format!("{head}\n{body}\n"))
    }
}
