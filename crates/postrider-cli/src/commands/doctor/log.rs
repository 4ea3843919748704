//! The log: whether its database answers, what that says of itself, and what was recorded last.

use postrider::store::{EventQuery, LoggedEvent, Store, SubscriptionInfo};
use postrider::{ErrorKind, OffsetDateTime};

use super::super::replay::unfinished::{self, Unfinished};
use super::finding::Finding;
use super::subscriptions;
use crate::Failure;
use crate::config::{Config, Problem, duration};
use crate::database::{self, SharedStore};

/// Where a sentence about the database as a whole belongs.
const DATABASE: &str = "database";
/// How many of the newest events say where events go.
const NEWEST: u32 = 5_000;

/// What is wrong with the log, and its newest events, if it has any to show.
///
/// A database that can't be reached is a finding. An address that nobody could understand is not: it ends the command.
pub(super) async fn examine(config: &Config) -> Result<(Vec<Finding>, Option<Vec<LoggedEvent>>), Failure> {
    let mut findings = Vec::new();
    let mut events = None;
    match database::open(&config.store).await {
        Ok(log) => {
            let looked = look(&log, config, &mut findings, &mut events).await;
            findings.extend(looked.err().map(|error| unopened(&error.into())));
        }
        Err(failure) if failure.is::<Problem>() => return Err(failure),
        Err(failure) => findings.push(unopened(&failure)),
    }
    findings.extend(inbox(config));
    Ok((findings, events))
}

/// Looks at all of it; a database that does not answer is asked nothing more.
async fn look(
    log: &SharedStore,
    config: &Config,
    findings: &mut Vec<Finding>,
    events: &mut Option<Vec<LoggedEvent>>,
) -> postrider::Result<()> {
    match log.checks(OffsetDateTime::now_utc()).await {
        Ok(checks) => findings.extend(checks.into_iter().map(Finding::from)),
        Err(error) if error.kind() == ErrorKind::Unreachable => return Err(error),
        Err(error) => findings.push(unopened(&error.into())),
    }
    let newest = EventQuery { limit: NEWEST, rows: NEWEST, ..EventQuery::default() };
    match log.events(&newest).await {
        Ok(found) => *events = Some(found.events),
        Err(error) if error.kind() == ErrorKind::Unreachable => return Err(error),
        Err(error) => findings.push(unopened(&error.into())),
    }
    let made = log.subscriptions().await?;
    findings.extend(unmade(config, &made));
    findings.extend(subscriptions::examine(log, config, &made).await?);
    findings.extend(unfinished(log.as_ref(), &made).await);
    Ok(())
}

/// Why the log can't be looked at, and what to do about it.
fn unopened(failure: &Failure) -> Finding {
    let Some(error) = failure.downcast_ref::<postrider::Error>() else {
        return Finding::bad_as_it_says(DATABASE, failure.to_string());
    };
    if let Some(remedy) = error.hint() {
        let what = error.problem();
        let about = if what.contains("the sequence") { "sequence" } else { DATABASE };
        return Finding::bad(about, what, remedy);
    }
    let what = error.message();
    match error.kind() {
        ErrorKind::Unreachable => Finding::bad(
            DATABASE,
            what,
            "start it, or check store.url; until then relays wait and publishers can't record",
        ),
        ErrorKind::PoolExhausted => Finding::bad(DATABASE, what, "raise store.connections"),
        ErrorKind::NotMigrated => Finding::bad("schema", what, "run `postrider migrate`"),
        ErrorKind::SchemaTooNew => Finding::bad("schema", what, "upgrade postrider"),
        ErrorKind::Denied if what.contains("privilege") => {
            Finding::bad("grants", what, "run grant_relay for this role, as the owner of the schema")
        }
        ErrorKind::Denied => {
            Finding::bad(DATABASE, what, "check the user, the password and the database name in store.url")
        }
        _ => Finding::bad_as_it_says(DATABASE, what),
    }
}

/// Replays that have paused their subscriptions and have not let them go on.
async fn unfinished(log: &dyn Store, made: &[SubscriptionInfo]) -> Vec<Finding> {
    let audits = match unfinished::audits(log, made).await {
        Ok(audits) => audits,
        Err(failure) => return vec![unopened(&failure)],
    };
    let finding = |info: &SubscriptionInfo| {
        let name = &info.subscription.name;
        let replay = Unfinished::of(info, &audits)?;
        Some(Finding::warn("replay", replay.what(name), Unfinished::remedy(name)))
    };
    made.iter().filter_map(finding).collect()
}

/// Subscriptions that the settings have and the log does not.
fn unmade(config: &Config, made: &[SubscriptionInfo]) -> Option<Finding> {
    if config.readers.is_empty() {
        return None;
    }
    let is_made = |name: &str| made.iter().any(|info| info.subscription.name == name);
    let names: Vec<&str> =
        config.readers.iter().map(|reader| reader.name.as_str()).filter(|name| !is_made(name)).collect();
    Some(if names.is_empty() {
        Finding::good("subscriptions", "the log has every subscription of the settings")
    } else {
        Finding::warn(
            "subscriptions",
            format!("the log does not have these yet: {}", names.join(", ")),
            "start a relay: it creates them, and they miss no event unless their start is \"now\"",
        )
    })
}

/// An inbox that is to be kept shorter than events.
fn inbox(config: &Config) -> Option<Finding> {
    let retention = config.retention.as_ref()?;
    (retention.inbox < retention.delivered).then(|| {
        Finding::warn(
            "retention",
            format!(
                "retention.inbox = {} is shorter than retention.delivered = {}: a replay could deliver events that the inbox has \
                 forgotten",
                duration::show(retention.inbox),
                duration::show(retention.delivered)
            ),
            "set retention.inbox to at least retention.delivered",
        )
    })
}
