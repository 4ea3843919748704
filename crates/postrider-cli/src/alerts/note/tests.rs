//! Rounds on paper: what is said, when the figures, the deaths and the targets do as they are told.

use std::time::Duration;

use postrider::Uuid;

use super::*;
use crate::alerts::dead_event::MOST;
use crate::alerts::message::State;
use crate::config::alert::Of;

const MINUTE: Duration = Duration::from_secs(60);

fn alert(when: &str, to: &[&str], repeat: Option<Duration>) -> Alert {
    let when = When::parse(when).expect("a condition");
    let to = to.iter().map(|target| (*target).to_owned()).collect();
    Alert { name: when.to_string(), when, to, of: Of::Each, repeat }
}

/// Rounds a minute apart.
struct Rounds {
    note: Note,
    now: OffsetDateTime,
    alerts: Vec<Alert>,
}

impl Rounds {
    fn of(alert: Alert) -> Self {
        Self {
            note: Note::default(),
            now: OffsetDateTime::UNIX_EPOCH + 365 * 24 * 60 * MINUTE,
            alerts: vec![alert],
        }
    }

    /// A round in which the figure is this, and only some can be told: what they were told.
    fn round(&mut self, value: Option<f64>, hears: impl Fn(&str) -> bool) -> Vec<String> {
        self.now += MINUTE;
        // Every round is another speaker's.
        self.note = Note::read(&self.note.text()).expect("its own words");
        let readings: Vec<Reading<'_>> = value
            .map(|value| Reading {
                alert: &self.alerts[0],
                subject: Some("mail".to_owned()),
                value: Some(value),
                fires: value > 10.0,
            })
            .into_iter()
            .collect();
        self.note.observe(&readings, "db", self.now);
        let due = self.note.due(&readings, &[], &BTreeMap::new(), "db", self.now);
        let heard: Vec<&PendingNotice> = due.iter().filter(|notice| hears(&notice.target)).collect();
        for notice in &heard {
            self.note.said(notice, self.now);
        }
        heard.iter().map(|notice| format!("{} {}", notice.target, notice.message.state.word())).collect()
    }

    fn all(&mut self, values: &[f64]) -> Vec<String> {
        values.iter().flat_map(|value| self.round(Some(*value), |_| true)).collect()
    }
}

#[test]
fn it_is_said_once_and_once_more_when_it_is_over() {
    let mut rounds = Rounds::of(alert("dead > 10", &["slack"], None));
    assert_eq!(rounds.all(&[3.0, 10.0, 11.0, 12.0, 500.0]), ["slack firing"]);
    assert_eq!(rounds.all(&[1.0, 1.0, 1.0]), ["slack resolved"]);
    assert_eq!(rounds.note, Note::default(), "nothing is left of it");
    assert_eq!(rounds.all(&[11.0]), ["slack firing"], "it is told anew");
}

#[test]
fn it_is_said_again_after_the_set_time() {
    let mut rounds = Rounds::of(alert("dead > 10", &["slack"], Some(3 * MINUTE)));
    assert_eq!(rounds.all(&[11.0, 11.0, 11.0]), ["slack firing"]);
    assert_eq!(rounds.all(&[11.0]), ["slack firing"]);
    assert_eq!(rounds.all(&[11.0, 11.0]), [""; 0]);
    assert_eq!(rounds.all(&[11.0]), ["slack firing"]);
}

#[test]
fn what_goes_up_and_down_every_minute_is_one_alert() {
    let mut rounds = Rounds::of(alert("dead > 10", &["slack"], None));
    assert_eq!(rounds.all(&[11.0, 1.0, 11.0, 1.0, 11.0, 1.0]), ["slack firing"]);
    assert_eq!(rounds.all(&[1.0]), ["slack resolved"]);
}

#[test]
fn who_was_not_heard_hears_it_later_and_others_not_twice() {
    let mut rounds = Rounds::of(alert("dead > 10", &["pager", "slack"], None));
    let but_slack = |target: &str| target != "slack";
    assert_eq!(rounds.round(Some(11.0), but_slack), ["pager firing"]);
    assert_eq!(rounds.round(Some(11.0), but_slack), [""; 0]);
    assert_eq!(rounds.round(Some(11.0), |_| true), ["slack firing"]);
    rounds.all(&[1.0]);
    assert_eq!(rounds.round(Some(1.0), but_slack), ["pager resolved"]);
    assert_eq!(rounds.round(Some(1.0), |_| true), ["slack resolved"]);
    assert_eq!(rounds.all(&[1.0]), [""; 0]);
}

#[test]
fn who_never_heard_of_it_is_not_told_that_it_is_over() {
    let mut rounds = Rounds::of(alert("dead > 10", &["slack"], None));
    assert_eq!(rounds.round(Some(11.0), |_| false), [""; 0]);
    assert_eq!(rounds.all(&[1.0, 1.0, 1.0]), [""; 0]);
    assert_eq!(rounds.note, Note::default());
}

#[test]
fn an_alert_that_is_taken_out_is_over() {
    let mut rounds = Rounds::of(alert("dead > 10", &["slack"], None));
    rounds.all(&[11.0]);
    let said = [rounds.round(None, |_| true), rounds.round(None, |_| true)].concat();
    assert_eq!(said, ["slack resolved"]);
    rounds.all(&[11.0]);
    rounds.note.keep_targets(|target| target == "log");
    assert_eq!([rounds.round(None, |_| true), rounds.round(None, |_| true)].concat(), [""; 0]);
    assert_eq!(rounds.note, Note::default(), "nobody waits for a target that is gone");
}

#[test]
fn the_first_and_the_last_word_belong_together() {
    let mut rounds = Rounds::of(alert("dead > 10", &["pager"], Some(MINUTE)));
    let mut incidents = BTreeSet::new();
    for value in [11.0, 11.0, 1.0, 1.0] {
        rounds.now += MINUTE;
        let reading =
            Reading { alert: &rounds.alerts[0], subject: None, value: Some(value), fires: value > 10.0 };
        rounds.note.observe(std::slice::from_ref(&reading), "db", rounds.now);
        // A speaker may know the database by another name.
        for notice in rounds.note.due(&[reading], &[], &BTreeMap::new(), "elsewhere", rounds.now) {
            incidents.insert(notice.message.incident.clone());
            rounds.note.said(&notice, rounds.now);
        }
    }
    assert_eq!(incidents.into_iter().collect::<Vec<_>>(), ["postrider/db/dead > 10/*"]);
}

fn death(number: i64, at: OffsetDateTime) -> DeadEvent {
    DeadEvent {
        at: micros(at),
        id: number,
        subscription: "mail".to_owned(),
        event_id: Uuid::from_u128(number as u128),
        event_type: "OrderPaid".to_owned(),
        aggregate_type: "Order".to_owned(),
        aggregate_id: "7".to_owned(),
        attempts: 5,
        error_code: Some("http".to_owned()),
        error_message: Some("it answered 500".to_owned()),
    }
}

/// A minute of deaths: what was said of them to whom.
fn deaths_told(rounds: &mut Rounds, dead: &[DeadEvent], hears: impl Fn(&str) -> bool) -> Vec<String> {
    rounds.now += MINUTE;
    let mut note = Note::read(&rounds.note.text()).expect("its own words");
    let since = note.deaths_since(&rounds.alerts, rounds.now);
    let listed = since.into_iter().map(|since| {
        let wanted = |death: &&DeadEvent| {
            let of = since.subscription.as_ref().is_none_or(|name| *name == death.subscription);
            of && death.at >= micros(since.from)
        };
        let listed = dead.iter().filter(wanted).take(MOST).cloned().collect();
        (since, listed)
    });
    let due = note.due(&[], &rounds.alerts, &listed.collect(), "db", rounds.now);
    let (heard, unheard): (Vec<&PendingNotice>, Vec<&PendingNotice>) =
        due.iter().partition(|notice| hears(&notice.target));
    for notice in &heard {
        assert_eq!(notice.message.state, State::Firing);
        note.said(notice, rounds.now);
    }
    note.close(&unheard.iter().map(|notice| notice.target.clone()).collect(), rounds.now);
    rounds.note = note;
    heard.iter().map(|notice| notice.message.text.clone()).collect()
}

#[test]
fn each_death_is_told_once_also_one_that_shows_late() {
    let mut rounds = Rounds::of(alert("event dies", &["slack"], None));
    let start = rounds.now;
    let mut dead = vec![death(1, start - 10 * MINUTE), death(2, start)];
    let said = deaths_told(&mut rounds, &dead, |_| true);
    assert_eq!(said.len(), 1, "the distant past is not told: {said:?}");
    assert!(
        said[0].contains(&dead[1].event_id.to_string()) && said[0].contains("http: it answered 500"),
        "{said:?}"
    );
    // Its time is before that of one that was told already.
    dead.push(death(3, start - MINUTE / 2));
    assert_eq!(deaths_told(&mut rounds, &dead, |_| true).len(), 1);
    for _ in 0..5 {
        assert_eq!(deaths_told(&mut rounds, &dead, |_| true), [""; 0]);
    }
    assert!(rounds.note.text().len() < 200, "what is long past is not kept: {}", rounds.note.text());
    // Requeued, and dead again.
    dead[1].at = micros(rounds.now);
    assert_eq!(deaths_told(&mut rounds, &dead, |_| true).len(), 1);
}

#[test]
fn a_death_that_somebody_did_not_hear_of_is_told_later() {
    let mut rounds = Rounds::of(alert("event dies", &["pager", "slack"], None));
    let dead = vec![death(1, rounds.now), death(2, rounds.now)];
    assert_eq!(deaths_told(&mut rounds, &dead, |target| target == "pager").len(), 2);
    for _ in 0..10 {
        assert_eq!(deaths_told(&mut rounds, &dead, |target| target == "pager"), [""; 0]);
    }
    assert_eq!(deaths_told(&mut rounds, &dead, |_| true).len(), 2);
    assert_eq!(deaths_told(&mut rounds, &dead, |_| true), [""; 0]);
}

#[test]
fn a_flood_is_told_in_one_message_and_the_note_stays_small() {
    let mut rounds = Rounds::of(alert("event dies", &["slack"], None));
    let dead: Vec<DeadEvent> = (0..5000).map(|number| death(number, rounds.now + MINUTE / 2)).collect();
    let said = deaths_told(&mut rounds, &dead, |_| true);
    assert_eq!(said.len(), 1);
    assert!(said[0].contains("5,000 events died") && said[0].contains("postrider dead list"), "{said:?}");
    assert!(said[0].contains(&dead[0].event_id.to_string()), "{said:?}");
    assert_eq!(deaths_told(&mut rounds, &dead, |_| true), [""; 0]);
    assert!(rounds.note.text().len() < 200_000, "{}", rounds.note.text().len());
    let next = [death(7000, rounds.now)];
    assert_eq!(deaths_told(&mut rounds, &[dead, next.to_vec()].concat(), |_| true).len(), 1);
}

#[test]
fn a_flood_elsewhere_hides_no_death_of_the_subscription_that_is_watched() {
    let mut rounds = Rounds::of(alert("event dies", &["slack"], None));
    rounds.alerts[0].of = Of::One("mail".to_owned());
    let elsewhere = |number| DeadEvent { subscription: "search".to_owned(), ..death(number, rounds.now) };
    let mut dead: Vec<DeadEvent> = (0..MOST as i64).map(elsewhere).collect();
    dead.push(death(MOST as i64, rounds.now));
    let said = deaths_told(&mut rounds, &dead, |_| true);
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0].contains(&dead[MOST].event_id.to_string()), "{said:?}");
}

#[test]
fn alerts_of_one_name_for_several_subscriptions_tell_the_deaths_of_each() {
    let mut rounds = Rounds::of(alert("event dies", &["slack"], None));
    rounds.alerts.push(rounds.alerts[0].clone());
    rounds.alerts[0].of = Of::One("search".to_owned());
    rounds.alerts[1].of = Of::One("mail".to_owned());
    let dead =
        [death(1, rounds.now), DeadEvent { subscription: "search".to_owned(), ..death(2, rounds.now) }];
    assert_eq!(deaths_told(&mut rounds, &dead, |_| true).len(), 2);
    assert_eq!(deaths_told(&mut rounds, &dead, |_| true), [""; 0]);
}

#[test]
fn an_incident_is_over_when_its_event_is_and_not_when_that_dies_anew() {
    let mut rounds = Rounds::of(alert("event dies", &["pager", "slack"], None));
    let mut dead = vec![death(1, rounds.now), death(2, rounds.now)];
    let (note, now) = (&mut rounds.note, rounds.now);
    note.deaths_since(&rounds.alerts, now);
    let told = |note: &mut Note, dead: &[DeadEvent]| {
        let from = note.deaths_since(&rounds.alerts, now).into_iter().next().expect("a time");
        for notice in note.due(&[], &rounds.alerts, &BTreeMap::from([(from, dead.to_vec())]), "db", now) {
            note.said(&notice, now);
            if notice.target == "pager" {
                note.opened(&notice);
            }
        }
    };
    told(note, &dead);
    *note = Note::read(&note.text()).expect("its own words");
    assert_eq!(note.open().len(), 2, "of those who keep any: {note:?}");
    assert_eq!(note.buried(&[], &BTreeMap::new()).len(), 0);

    // The first died anew before anybody looked.
    let all = note.open().to_vec();
    dead[0].at += 1_000_000;
    let since = Since { from: now, subscription: None };
    let listed = BTreeMap::from([(since, vec![dead[0].clone()])]);
    let over = note.buried(&all, &listed);
    assert_eq!(over.len(), 1);
    let Message { state, incident, text, .. } = &over[0].message;
    assert_eq!((*state, over[0].target.as_str()), (State::Resolved, "pager"));
    assert_eq!(
        *incident,
        Message::death("event dies", &dead[1], "db").incident,
        "the same from first to last"
    );
    assert_eq!(*text, format!("an event is no longer dead: {}, for mail", dead[1].event_id));
    assert_eq!(note.buried(&all, &listed).len(), 1, "until somebody has heard it");
    note.said(&over[0], now);
    told(note, &dead[..1]);
    assert_eq!(note.open().len(), 1, "told anew, it is the same incident: {note:?}");
    assert_eq!(note.buried(note.open(), &BTreeMap::new()).len(), 1);
    note.keep_targets(|target| target != "pager");
    assert_eq!(note.open().len(), 0, "nobody waits for a target that is gone");
}

#[test]
fn a_flood_is_one_incident_and_only_so_many_are_looked_after() {
    let mut rounds = Rounds::of(alert("event dies", &["pager"], None));
    let (note, now) = (&mut rounds.note, rounds.now);
    for number in 0..300 {
        let dead: Vec<DeadEvent> = match number {
            0 => (0..50).map(|each| death(1000 + each, now)).collect(),
            _ => vec![death(number, now)],
        };
        let from = note.deaths_since(&rounds.alerts, now).into_iter().next().expect("a time");
        let due = note.due(&[], &rounds.alerts, &BTreeMap::from([(from, dead)]), "db", now);
        assert_eq!(due.len(), 1);
        note.said(&due[0], now);
        note.opened(&due[0]);
        if number == 0 {
            let text = &note.buried(note.open(), &BTreeMap::new())[0].message.text;
            assert_eq!(text, "these events are no longer dead, for mail");
        }
    }
    assert_eq!(note.open().len(), open::MOST);
}
