//! `postrider doctor`: what is wrong with the database, the settings and the destinations, or will be.

mod destinations;
mod finding;
mod log;
mod show;
mod subscriptions;
mod topics;

use clap::Args;
use postrider::store::Severity;
use serde::Serialize;

use self::finding::Finding;
use crate::Failure;
use crate::config::Config;
use crate::output;

/// The flags of `doctor`.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Print a JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Report<'f> {
    verdict: &'static str,
    findings: &'f [Finding],
}

/// Looks at everything; whether nothing is bad.
pub(crate) async fn run(config: &Config, arguments: Arguments) -> Result<bool, Failure> {
    let (mut findings, events) = log::examine(config).await?;
    findings.extend(destinations::examine(config, events.as_deref()).await);
    let worst = findings.iter().map(|finding| finding.severity).max().unwrap_or(Severity::Good);
    if arguments.json {
        output::json(&Report { verdict: worst.as_str(), findings: &findings })?;
    } else {
        output::print(&show::text(&findings, output::width().unwrap_or(show::USUAL)))?;
    }
    Ok(worst < Severity::Bad)
}
