//! The watch: a round every minute, by the one of all processes that has the leader lease.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use futures_util::future::join_all;
use postrider::OffsetDateTime;
use postrider::store::Backoff;
use tokio::sync::watch::Receiver;
use tokio::time::{Instant, timeout_at};

use super::dead_event::deaths;
use super::note::{Note, PendingNotice};
use super::notify::{Notifier, NotifyError};
use super::reading::readings;
use crate::Failure;
use crate::config::alert::When;
use crate::config::{Alert, Config, Problem, Store};
use crate::database::{self, SharedStore};

/// The leader lease of the process that notifies for all.
const LEASE_NAME: &str = "alerts";
/// How often a message is tried within a round, and the first pause; each is twice the one before.
const TRIES: u32 = 3;
const PAUSE: Duration = Duration::from_millis(500);
/// How long a round may take to send what is due.
const LONGEST: Duration = Duration::from_secs(20);
/// How often the lease is extended or requested, at least: another relay must take over soon, even if rounds are rare.
const BEAT: Duration = Duration::from_secs(20);

/// Evaluates alerts, and sends notifications if this process is the leader.
pub(crate) struct AlertMonitor {
    figures: Vec<Alert>,
    deaths: Vec<Alert>,
    notifier: Notifier,
    store: Store,
    owner: String,
    every: Duration,
    /// When this process last looked, if it has the leader lease.
    looked: Option<Instant>,
    /// The targets that could not be reached in the last round. Each failure is logged once.
    deaf: BTreeSet<String>,
    /// What could not be written down, and what was written there when it should have been.
    unsaved: Option<(Option<String>, Note)>,
    unreadable: bool,
}

impl AlertMonitor {
    /// A watch over the alerts of the settings, if there are any.
    pub(crate) fn of(config: &Config) -> Result<Option<Self>, Problem> {
        // What is wrong with a notifier is found out also while nobody uses it.
        let notifier = Notifier::make(&config.notify, &super::source(&config.store))?;
        if config.alerts.is_empty() {
            return Ok(None);
        }
        let (deaths, figures) =
            config.alerts.iter().cloned().partition(|alert: &Alert| alert.when == When::EventDies);
        // Two processes may have been given the same name; the lease must not take them for one.
        let process = postrider::Uuid::new_v4().simple().to_string();
        let name: String = config.relay.name.as_deref().unwrap_or("relay").chars().take(40).collect();
        Ok(Some(Self {
            figures,
            deaths,
            notifier,
            // A round asks one question after the other.
            store: Store { connections: 2, ..config.store.clone() },
            owner: format!("{name}-{}", &process[..12]),
            every: config.relay.alerts,
            looked: None,
            deaf: BTreeSet::new(),
            unsaved: None,
            unreadable: false,
        }))
    }

    /// Watches until the process is asked to end.
    pub(crate) async fn run(mut self, mut ended: Receiver<bool>) {
        let mut log = None;
        let mut rounds = tokio::time::interval(self.beat());
        rounds.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut blind = false;
        loop {
            tokio::select! {
                biased;
                _ = ended.wait_for(|ended| *ended) => break,
                _ = rounds.tick() => {}
            }
            match self.look(&mut log, &ended).await {
                Ok(()) if blind => {
                    blind = false;
                    tracing::info!("alerts are evaluated again");
                }
                Ok(()) => {}
                Err(error) if !blind => {
                    blind = true;
                    tracing::warn!("can't evaluate alerts: {error}; retrying every {:?}", self.every);
                }
                Err(_) => {}
            }
        }
        if let Some(log) = log {
            // So that another need not wait until the lease expires.
            let _ = tokio::time::timeout(
                Duration::from_secs(1),
                log.release_leader_lease(LEASE_NAME, &self.owner),
            )
            .await;
        }
    }

    /// A round, on a database that may just have come up.
    async fn look(&mut self, log: &mut Option<SharedStore>, ended: &Receiver<bool>) -> Result<(), Failure> {
        let log = match log {
            Some(log) => log,
            None => log.insert(database::open(&self.store).await?),
        };
        self.round(log, ended).await.map_err(Into::into)
    }

    fn beat(&self) -> Duration {
        self.every.min(BEAT)
    }

    /// Whether it is time to look, as near as beats allow.
    fn is_time(&self) -> bool {
        self.looked.is_none_or(|looked| looked.elapsed() + self.beat() / 2 >= self.every)
    }

    /// How long a round may speak.
    fn patience(&self) -> Duration {
        self.every.clamp(Duration::from_secs(2), LONGEST)
    }

    /// One round, if it is time and no other relay has the lease: evaluate, send what is due, and store what was sent. What could
    /// not be sent is due in the next round.
    async fn round(&mut self, log: &SharedStore, ended: &Receiver<bool>) -> postrider::Result<()> {
        let lease = self.beat() + self.patience() + Duration::from_secs(2);
        let Some(leader) = log.acquire_leader_lease(LEASE_NAME, &self.owner, lease).await? else {
            self.looked = None;
            return Ok(());
        };
        if !self.is_time() {
            return Ok(());
        }
        self.looked = Some(Instant::now());
        let before = self.note(leader.note.as_deref());
        // Somebody who wrote since then knows better.
        self.unsaved.take_if(|(seen, _)| *seen != leader.note);
        // It is kept until it is written: a round that fails must not say again what was said.
        let mut note = self.unsaved.as_ref().map_or_else(|| before.clone(), |(_, note)| note.clone());
        note.keep_targets(|target| self.notifier.has(target));
        let readings = if self.figures.is_empty() {
            Vec::new()
        } else {
            readings(log, &self.figures, leader.at).await?
        };
        note.observe(&readings, self.notifier.source(), leader.at);
        let mut died = BTreeMap::new();
        for since in note.deaths_since(&self.deaths, leader.at) {
            let deaths = deaths(log.as_ref(), &since).await?;
            died.insert(since, deaths);
        }
        let mut over = Vec::new();
        for open in note.open() {
            if !open.is_dead(log.as_ref()).await? {
                over.push(open.clone());
            }
        }
        let mut due = note.buried(&over, &died);
        due.extend(note.due(&readings, &self.deaths, &died, self.notifier.source(), leader.at));
        let mut deaf = BTreeSet::new();
        if !due.is_empty() {
            // Looking may have taken a while: who has lost the lease meanwhile says nothing.
            if log.acquire_leader_lease(LEASE_NAME, &self.owner, lease).await?.is_none() {
                return Ok(());
            }
            deaf = self.speak(&due, &mut note, leader.at, ended).await;
        }
        note.close(&deaf, leader.at);
        if note == before {
            self.unsaved = None;
            return Ok(());
        }
        self.save(log, leader.note, note).await
    }

    /// Writes down what was said, for the next round and the next leader.
    async fn save(&mut self, log: &SharedStore, seen: Option<String>, note: Note) -> postrider::Result<()> {
        match log.save_leader_note(LEASE_NAME, &self.owner, &note.text()).await {
            Ok(true) => {
                self.unsaved = None;
                Ok(())
            }
            Ok(false) => {
                self.unsaved = None;
                tracing::warn!(
                    "another relay has taken over alerts; the last notifications may be sent twice"
                );
                Ok(())
            }
            Err(error) => {
                self.unsaved = Some((seen, note));
                Err(error)
            }
        }
    }

    fn note(&mut self, text: Option<&str>) -> Note {
        let Some(text) = text else { return Note::default() };
        let note = Note::read(text);
        if note.is_none() && !self.unreadable {
            self.unreadable = true;
            tracing::warn!("can't read the stored state of alerts; firing alerts are sent again");
        }
        note.unwrap_or_default()
    }

    /// Sends what is due, to all targets at once and to each in order. Returns the targets that did not get all of it.
    async fn speak(
        &mut self,
        due: &[PendingNotice],
        note: &mut Note,
        now: OffsetDateTime,
        ended: &Receiver<bool>,
    ) -> BTreeSet<String> {
        let until = Instant::now() + self.patience();
        let targets: BTreeSet<&str> = due.iter().map(|notice| notice.target.as_str()).collect();
        let notifier = &self.notifier;
        let told = join_all(targets.iter().map(|target| async move {
            let (mut said, mut failure) = (Vec::new(), None);
            for notice in due.iter().filter(|notice| notice.target == **target) {
                let sent = tokio::select! {
                    sent = send(notifier, notice, until) => sent,
                    // A process that is asked to end leaves the rest to the next speaker.
                    () = cut(ended.clone()) => return (said, Some(None)),
                };
                match sent {
                    Ok(()) => said.push(notice),
                    // What is refused holds up nothing that is not.
                    Err(error) if !error.passing => failure = Some(Some(error.what)),
                    Err(error) => return (said, Some(Some(error.what))),
                }
            }
            (said, failure)
        }))
        .await;
        let mut deaf = BTreeSet::new();
        for (target, (said, failure)) in targets.into_iter().zip(told) {
            for notice in said {
                note.said(notice, now);
                if self.notifier.keeps_incidents(&notice.target) {
                    note.opened(notice);
                }
            }
            match failure {
                None => {
                    if self.deaf.remove(target) {
                        tracing::info!("alerts reach {target} again");
                    }
                }
                Some(what) => {
                    deaf.insert(target.to_owned());
                    if let Some(what) = what
                        && self.deaf.insert(target.to_owned())
                    {
                        tracing::warn!(
                            "can't send alerts to {target}: {what}; retrying every {:?}",
                            self.every
                        );
                    }
                }
            }
        }
        deaf
    }
}

/// Ends a little later than the process is asked to.
async fn cut(mut ended: Receiver<bool>) {
    let _ = ended.wait_for(|ended| *ended).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
}

/// Sends a notice, and tries again after a pause where that may help, until the time is over.
async fn send(notifier: &Notifier, notice: &PendingNotice, until: Instant) -> Result<(), NotifyError> {
    let mut backoff = Backoff::new(PAUSE, LONGEST);
    let mut tries = 1;
    loop {
        let pause = backoff.next_delay();
        let late = || NotifyError { what: "it did not answer in time".to_owned(), passing: true };
        let said = timeout_at(until, notifier.send(&notice.target, &notice.message))
            .await
            .unwrap_or_else(|_| Err(late()));
        match said {
            Err(error) if error.passing && tries < TRIES && Instant::now() + pause < until => {
                tokio::time::sleep(pause).await;
                tries += 1;
            }
            said => return said,
        }
    }
}
