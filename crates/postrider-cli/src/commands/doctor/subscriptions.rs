//! The subscriptions and the relays: what waits for a person.

use std::time::Duration;

use postrider::OffsetDateTime;
use postrider::store::{Away, Figures, RelayInfo, SubscriptionInfo, SubscriptionState};

use super::super::dead::hold::Hold;
use super::super::relays;
use super::finding::Finding;
use crate::config::Config;
use crate::database::SharedStore;
use crate::output;

/// Where nothing says how long events are kept, older ones than this should not be waited for.
const A_DAY: Duration = Duration::from_secs(86_400);
/// Of a backlog so much is looked at: whether something waits is all that is asked.
const SAMPLE: u32 = 1_000;

/// What is wrong with each subscription, and with the relays.
pub(super) async fn examine(
    log: &SharedStore,
    config: &Config,
    infos: &[SubscriptionInfo],
) -> postrider::Result<Vec<Finding>> {
    let known = log.relays().await?;
    let mut looked = Vec::new();
    for info in infos {
        match log.figures_up_to(&info.subscription.name, SAMPLE).await {
            Ok(figures) => looked.push((info, figures)),
            // It was removed meanwhile.
            Err(error) if error.kind() == postrider::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    let now = OffsetDateTime::now_utc();
    let mut findings = vec![dead(&looked, &known)];
    findings.extend(pauses(infos, now));
    findings.extend(aways(infos, &known, now));
    findings.extend(absent(&looked, &known, now));
    let conflicts = relays::conflicts(&known).into_iter();
    findings.extend(conflicts.map(|conflict| Finding::warn("relays", conflict.what, conflict.remedy)));
    let mut unread = Vec::new();
    for info in infos {
        let since = log.unread_since(&info.subscription.name).await?;
        unread.extend(since.map(|since| (info, (now - since).max(time::Duration::ZERO).unsigned_abs())));
    }
    findings.push(retention(config, &unread));
    Ok(findings)
}

type Looked<'i> = (&'i SubscriptionInfo, Vec<Figures>);

fn sum(figures: &[Figures], of: fn(&Figures) -> u64) -> u64 {
    figures.iter().map(of).sum()
}

fn dead(looked: &[Looked<'_>], known: &[RelayInfo]) -> Finding {
    let mut parts = Vec::new();
    let mut first = None;
    for (info, figures) in looked {
        let dead = sum(figures, |each| each.dead);
        if dead == 0 {
            continue;
        }
        let name = &info.subscription.name;
        first.get_or_insert(name);
        let away = Away::of(info, known).is_some();
        parts.push(match Hold::of(&info.subscription, figures, away).sentence() {
            Some(what) => format!("{name}: {what}"),
            None => format!("{name} has {}", output::count(dead, "dead event")),
        });
    }
    match first {
        None => Finding::good("dead events", "none"),
        Some(name) => Finding::warn(
            "dead events",
            parts.join("; "),
            format!(
                "run `postrider dead list --subscription {}`, then requeue or discard them",
                output::quoted(name)
            ),
        ),
    }
}

fn pauses(infos: &[SubscriptionInfo], now: OffsetDateTime) -> Vec<Finding> {
    let paused = infos.iter().filter(|info| info.paused);
    let finding = |info: &SubscriptionInfo| {
        let name = &info.subscription.name;
        let by = match &info.pause {
            None => String::new(),
            Some(pause) => {
                let why = pause.by.why.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
                format!(" by {} for {}{why}", pause.by.who, output::since(pause.since, now))
            }
        };
        let quoted = output::quoted(name);
        let remedy = format!("when it can go on, run `postrider subscriptions resume {quoted}`");
        Finding::warn("pauses", format!("{name} is paused{by}"), remedy)
    };
    paused.map(finding).collect()
}

fn aways(infos: &[SubscriptionInfo], known: &[RelayInfo], now: OffsetDateTime) -> Vec<Finding> {
    let away = infos.iter().filter_map(|info| Some((&info.subscription.name, Away::of(info, known)?)));
    let finding = |(name, away): (&String, Away)| {
        let what = format!(
            "the destination of {name} has been unavailable for {}: {}",
            output::since(away.since, now),
            away.reason
        );
        Finding::bad("destinations", what, "fix this; its events wait until then, and none is lost")
    };
    away.map(finding).collect()
}

/// Subscriptions that no relay has, and relays that ended without a word.
fn absent(looked: &[Looked<'_>], known: &[RelayInfo], now: OffsetDateTime) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (info, figures) in looked {
        if SubscriptionState::is_run(info, known) {
            continue;
        }
        let name = &info.subscription.name;
        let paused = if info.paused { ", which is paused" } else { "" };
        let what = match sum(figures, Figures::undelivered) {
            0 => format!("no relay runs {name}{paused}"),
            1 => format!("no relay runs {name}{paused}, and an event waits for it"),
            _ => format!("no relay runs {name}{paused}, and events wait for it"),
        };
        let remedy = format!(
            "start a relay with it, or run `postrider subscriptions remove {}` if you don't need it; until then retention can't remove its events",
            output::quoted(name)
        );
        findings.push(Finding::warn("relays", what, remedy));
    }
    for relay in known.iter().filter(|relay| !relay.live) {
        let (name, host) = (&relay.report.name, &relay.report.host);
        let what = format!(
            "the relay {name} on {host} disappeared without stopping: it was last seen {} ago",
            output::since(relay.seen_at, now)
        );
        let remedy = "check its log; a relay that does not come back is forgotten after a day";
        findings.push(Finding::warn("relays", what, remedy));
    }
    if findings.is_empty() {
        let live = known.iter().filter(|relay| relay.live).count() as u64;
        findings.push(Finding::good(
            "relays",
            format!("{} running, and every subscription has one", is_there(live)),
        ));
    }
    findings
}

fn is_there(many: u64) -> String {
    format!("{} {}", output::count(many, "relay"), if many == 1 { "is" } else { "are" })
}

/// The subscription that retention waits for: of each, how long ago the first event was recorded that it has not passed, wanted or not.
fn retention(config: &Config, unread: &[(&SubscriptionInfo, Duration)]) -> Finding {
    const NAME: &str = "backlog";
    let kept = config.retention.as_ref().map_or(A_DAY, |retention| retention.delivered);
    match unread.iter().max_by_key(|(_, age)| *age) {
        Some((info, age)) if *age > kept => {
            let (name, age) = (&info.subscription.name, output::age(*age));
            Finding::warn(
                NAME,
                format!(
                    "{name} blocks retention: it has not read past events that were recorded {age} ago, so later ones can't be archived or deleted either"
                ),
                format!(
                    "let {name} catch up (`postrider status {}`), or remove it if you don't need it",
                    output::quoted(name)
                ),
            )
        }
        _ => Finding::good(NAME, "no subscription blocks retention"),
    }
}
