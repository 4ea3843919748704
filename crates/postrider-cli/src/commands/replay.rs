//! `postrider replay`: letting a subscription read again, or a new one like it.

mod catch_up;
pub(crate) mod unfinished;

use std::time::Duration;

use clap::Args;
use postrider::store::{EventQuery, Replay, ReplayFrom, Replayed, Subscription, SubscriptionInfo};
use postrider::{OffsetDateTime, Start, Uuid, asked_to_end};
use serde::Serialize;
use tokio::time::Instant;

pub(crate) use self::catch_up::{holders, missing};
use self::unfinished::Unfinished;
use super::progress::Progress;
use super::{times, unknown};
use crate::Failure;
use crate::config::{Config, Problem};
use crate::confirm::Consent;
use crate::database::{self, SharedStore};
use crate::output::{self, Time};

/// How long holders may take to give their lanes back.
const PATIENCE: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(100);

/// The flags of `replay`.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Name of the subscription
    name: String,
    #[command(flatten)]
    begin: Begin,
    /// Create a new subscription with the same settings that starts there, and leave this one unchanged
    #[arg(long = "as", value_name = "NEW")]
    new: Option<String>,
    /// Allow events that the inbox has forgotten: their effects will happen again
    #[arg(long)]
    effects_may_repeat: bool,
    /// Don't wait for deliveries in flight: they may mix with the replayed events
    #[arg(long, conflicts_with = "new")]
    now: bool,
    /// Count the events that would be replayed, discarded ones included, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Don't wait until relays catch up
    #[arg(long, conflicts_with = "wait")]
    no_wait: bool,
    /// How long to wait for relays to catch up, as in 90s or 2h, and at most a minute while no relay is running; the replay continues afterwards, and the exit code is 1
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = times::ago)]
    wait: Duration,
    /// Print a JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    consent: Consent,
}

/// Where it begins.
#[derive(Args)]
#[group(required = true, multiple = false)]
struct Begin {
    /// Start with events recorded this long ago, as in 90s, 15m, 1h30m or 7d
    #[arg(long, value_name = "AGO", value_parser = times::since, allow_hyphen_values = true)]
    since: Option<Duration>,
    /// Start with events recorded at this time, as in 2026-01-31T08:00:00Z or 2026-01-31 (UTC)
    #[arg(long, value_name = "TIME", value_parser = times::time)]
    from: Option<OffsetDateTime>,
    /// Start with this event
    #[arg(long, value_name = "UUID")]
    event: Option<Uuid>,
}

impl Begin {
    fn point(&self) -> Result<ReplayFrom, Problem> {
        let ago = self.since.map(|since| OffsetDateTime::now_utc() - since);
        match (ago.or(self.from), self.event) {
            (_, Some(event)) => Ok(ReplayFrom::Event(event)),
            (Some(time), None) => Ok(ReplayFrom::Time(time)),
            (None, None) => Err(Problem::new("the replay needs a start; pass --since, --from or --event")),
        }
    }
}

#[derive(Serialize)]
struct Answer {
    subscription: String,
    dry_run: bool,
    events: u64,
    counted: bool,
    first_recorded_at: Option<Time>,
}

/// Counts, asks, replays, and waits until relays have caught up.
pub(crate) async fn run(config: &Config, arguments: Arguments) -> Result<bool, Failure> {
    arguments.consent.check()?;
    let from = arguments.begin.point()?;
    let log = database::open(&config.store).await?;
    let info = unknown::subscription(log.as_ref(), &arguments.name).await?;
    let new = match &arguments.new {
        Some(new) => Some(like(&log, &info, new, from).await?),
        None => None,
    };
    let replay = |dry_run| Replay {
        subscription: arguments.name.clone(),
        from,
        effects_may_repeat: arguments.effects_may_repeat,
        dry_run,
    };
    let counted = log.replay(&replay(true)).await.map_err(told)?;
    let many = events(&counted);
    if arguments.dry_run {
        return arguments.unchanged(&counted, &format!("would replay {many}"));
    }
    if new.is_none() {
        refuse_unfinished(&log, &info).await?;
    }
    if counted.events == 0 && new.is_none() {
        let why = format!("{} has not read any events after that point", arguments.name);
        return arguments.unchanged(&counted, &why);
    }
    if !arguments.consent.given(&arguments.question(new.as_ref(), &many))? {
        return Ok(false);
    }
    let (goal, replayed) = match &new {
        Some(new) => {
            log.subscribe(new).await?;
            (catch_up::Goal::end_of_log(&log, &new.name).await?, counted)
        }
        None => arguments.again(&log, &info, &replay(false)).await?,
    };
    let what = match &new {
        Some(_) => {
            format!("replay of {} from {}", arguments.name.chars().take(200).collect::<String>(), point(from))
        }
        None => done(from, &replayed),
    };
    arguments.consent.audit(log.as_ref(), &what, Some(&goal.subscription), None).await?;
    arguments.answer(&replayed)?;
    if !arguments.json {
        output::line(format!("{} replays {}", goal.subscription, events(&replayed)))?;
    }
    let name = &goal.subscription;
    if new.is_some() {
        output::note(format!("it needs a relay that has a [[subscription]] named {name}"));
    } else if info.paused {
        output::note(format!("{name} is paused; nothing is delivered until you resume it"));
        return Ok(true);
    }
    if !arguments.no_wait {
        goal.wait(&log, arguments.wait).await?;
    }
    Ok(true)
}

/// A replay that was cut short has to be ended first.
async fn refuse_unfinished(log: &SharedStore, info: &SubscriptionInfo) -> Result<(), Failure> {
    let audits = unfinished::audits(log.as_ref(), std::slice::from_ref(info)).await?;
    match Unfinished::of(info, &audits) {
        Some(unfinished) => {
            let name = &info.subscription.name;
            Err(format!("{}: {}", unfinished.what(name), Unfinished::remedy(name)).into())
        }
        None => Ok(()),
    }
}

impl Arguments {
    fn question(&self, new: Option<&Subscription>, many: &str) -> String {
        let name = &self.name;
        match new {
            Some(new) => format!(
                "Create {} as a copy of {name}? It delivers {many} that {name} has already read, and all later ones.",
                new.name
            ),
            None => format!("Replay {name}? {many} will be delivered again."),
        }
    }

    fn unchanged(&self, counted: &Replayed, why: &str) -> Result<bool, Failure> {
        self.answer(counted)?;
        if !self.json {
            output::line(format!("{why}; nothing was changed"))?;
        }
        Ok(true)
    }

    fn answer(&self, replayed: &Replayed) -> Result<(), Failure> {
        if !self.json {
            return Ok(());
        }
        output::json(&Answer {
            subscription: self.new.clone().unwrap_or_else(|| self.name.clone()),
            dry_run: self.dry_run,
            events: replayed.events,
            counted: replayed.counted,
            first_recorded_at: replayed.first_recorded_at.map(Time),
        })
    }

    /// Pauses the subscription until nobody holds a lane of it, sets it back, and lets it go on. What a holder has in flight
    /// would otherwise arrive among what comes again.
    async fn again(
        &self,
        log: &SharedStore,
        info: &SubscriptionInfo,
        replay: &Replay,
    ) -> Result<(catch_up::Goal, Replayed), Failure> {
        let set_back = async {
            if !self.now {
                rested(log, &self.name).await?;
            }
            let goal = catch_up::Goal::as_it_stands(log, &self.name).await?;
            let replayed = log.replay(replay).await.map_err(told)?;
            Ok::<_, Failure>((goal, replayed))
        };
        if self.now || info.paused {
            return set_back.await;
        }
        self.consent.announce(log.as_ref(), unfinished::PAUSES, &self.name).await?;
        log.pause(&self.name, Some(&self.consent.pause())).await?;
        let set_back = set_back.await;
        let resumed = log.pause(&self.name, None).await;
        if set_back.is_err() && resumed.is_ok() {
            self.consent.audit(log.as_ref(), unfinished::GIVEN_UP, Some(&self.name), None).await?;
        }
        let (goal, replayed) = set_back?;
        if let Err(error) = resumed {
            // So that nobody takes it for cut short and replays it again. That it is paused still matters more than a failure here.
            let what = done(replay.from, &replayed);
            let _ = self.consent.audit(log.as_ref(), &what, Some(&self.name), None).await;
            let what = format!(
                "the position was reset, but resuming failed ({}); run `postrider subscriptions resume {}`",
                error.message(),
                self.name
            );
            return Err(what.into());
        }
        Ok((goal, replayed))
    }
}

/// Waits until nobody holds a lane.
async fn rested(log: &SharedStore, name: &str) -> Result<(), Failure> {
    let end = Instant::now() + PATIENCE;
    let mut asked = std::pin::pin!(asked_to_end());
    let mut progress = Progress::new();
    loop {
        let info = unknown::subscription(log.as_ref(), name).await?;
        let Some(owner) = info.lanes.into_iter().find_map(|lane| lane.owner) else { return Ok(()) };
        if Instant::now() > end {
            let what = format!(
                "{owner} still holds a lane of {name}; nothing was changed; pass --now to skip the wait"
            );
            return Err(what.into());
        }
        progress.show(&format!("waiting for {owner} to finish deliveries in flight"), "");
        tokio::select! {
            () = tokio::time::sleep(PAUSE) => {}
            () = &mut asked => return Err("interrupted; nothing was changed".into()),
        }
    }
}

/// A new subscription like another one, from a point on.
async fn like(
    log: &SharedStore,
    info: &SubscriptionInfo,
    name: &str,
    from: ReplayFrom,
) -> Result<Subscription, Failure> {
    if log.subscriptions().await?.iter().any(|info| info.subscription.name == name) {
        return Err(format!("the subscription {name:?} already exists; choose another name").into());
    }
    let time = match from {
        ReplayFrom::Time(time) => time,
        ReplayFrom::Event(event_id) => {
            let query = EventQuery { event_id: Some(event_id), ..EventQuery::default() };
            let found = log.events(&query).await?.events.pop();
            let found = found.ok_or_else(|| format!("there is no event {event_id} in the log"))?;
            found.event.recorded_at
        }
    };
    let new = Subscription { name: name.to_owned(), start: Start::At(time), ..info.subscription.clone() };
    new.check().map_err(|error| Problem::new(error.message()))?;
    Ok(new)
}

/// A refusal is a sentence of its own.
fn told(error: postrider::Error) -> Failure {
    error.message().to_owned().into()
}

/// What the audit says of a replay that was done.
fn done(from: ReplayFrom, replayed: &Replayed) -> String {
    format!("replay from {} ({})", point(from), events(replayed))
}

fn point(from: ReplayFrom) -> String {
    match from {
        ReplayFrom::Time(time) => output::when(time),
        ReplayFrom::Event(event) => format!("event {event}"),
    }
}

fn events(replayed: &Replayed) -> String {
    let many = output::count(replayed.events, "event");
    let many = if replayed.counted { many } else { format!("at least {many}") };
    match replayed.first_recorded_at {
        Some(first) => format!("{many} (from {})", output::when(first)),
        None => many,
    }
}
