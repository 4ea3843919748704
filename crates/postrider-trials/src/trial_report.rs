//! What the relays left, held against what was promised.

use std::collections::{HashMap, HashSet};

use postrider::Uuid;
use postrider::store::OutboxSource;

use crate::Moved;
use crate::test_store::{Applied, Sight, TestStore};

/// What was recorded, and what became of it.
pub struct TrialReport {
    moves: Vec<(Uuid, Moved)>,
    notes: HashMap<Uuid, usize>,
    sights: Vec<Sight>,
    applied: Vec<Applied>,
}

/// A relay that died: what had been settled of the plain subscription by then.
#[derive(Debug)]
pub struct Kill {
    /// The relay.
    pub relay_process: String,
    /// What had been settled.
    pub settled: HashSet<Uuid>,
}

impl TrialReport {
    /// Looks at everything there is.
    pub async fn of<G: TestStore>(test_store: &G) -> Self {
        let mut log = Vec::new();
        loop {
            let after = log.last().map_or(0, |event: &postrider::Recorded| event.id);
            let page = test_store.outbox().recorded(after, 1000).await.expect("the log");
            if page.is_empty() {
                break;
            }
            log.extend(page);
        }
        let mut notes: HashMap<Uuid, usize> = HashMap::new();
        for note in log.iter().filter(|event| &*event.stream == "notes") {
            *notes.entry(note.headers.causation_id().expect("a note has a cause")).or_default() += 1;
        }
        let moves = log.iter().filter(|event| &*event.stream == "moves");
        let moved = |event: &postrider::Recorded| <Moved as postrider::store::Decode>::decode(event, None);
        let moves = moves.map(|event| (event.event_id, moved(event).expect("a move"))).collect();
        let sights = test_store.sights().await.expect("what was seen");
        Self { moves, notes, sights, applied: test_store.applied().await.expect("what was applied") }
    }

    /// How many moves there are.
    pub fn moves(&self) -> usize {
        self.moves.len()
    }

    /// What every trial promises: nothing is lost, order is kept, effects happen once. `committed` is what the writers know of.
    pub fn keeps_its_promises(&self, committed: &[Uuid]) {
        let recorded: HashSet<Uuid> = self.moves.iter().map(|(event, _)| *event).collect();
        let vanished: Vec<_> = committed.iter().filter(|event| !recorded.contains(event)).collect();
        assert!(vanished.is_empty(), "{} that were committed are not in the log", vanished.len());
        self.loses_nothing(&HashSet::new());
        self.applies_once(&HashSet::new());
        self.keeps_order();
    }

    /// Every move but these was seen.
    pub fn loses_nothing(&self, but: &HashSet<Uuid>) {
        let seen: HashSet<Uuid> = self.sights.iter().map(|sight| sight.event).collect();
        let lost: Vec<_> =
            self.moves.iter().filter(|(event, _)| !seen.contains(event) && !but.contains(event)).collect();
        assert!(lost.is_empty(), "{} of {} were never seen: {lost:?}", lost.len(), self.moves());
        assert!(!self.moves.is_empty(), "nothing was recorded: nothing was tried");
    }

    /// Every move but these has exactly one effect and exactly one follow-up.
    pub fn applies_once(&self, but: &HashSet<Uuid>) {
        let mut effects: HashMap<Uuid, usize> = HashMap::new();
        for applied in &self.applied {
            *effects.entry(applied.event).or_default() += 1;
        }
        for (event, moved) in &self.moves {
            let wanted = usize::from(!but.contains(event));
            let found = effects.get(event).copied().unwrap_or_default();
            assert_eq!(found, wanted, "effects of {moved:?} ({event})");
            let found = self.notes.get(event).copied().unwrap_or_default();
            assert_eq!(found, wanted, "follow-ups of {moved:?} ({event})");
        }
    }

    /// The first sights of an account's versions ascend without a gap, and so do its effects.
    pub fn keeps_order(&self) {
        self.keeps_order_but(&HashSet::new());
    }

    /// The same, where these may be missing.
    pub fn keeps_order_but(&self, but: &HashSet<Uuid>) {
        let missing: HashSet<(&str, i64)> = self
            .moves
            .iter()
            .filter(|(event, _)| but.contains(event))
            .map(|(_, moved)| (&*moved.account, moved.version))
            .collect();
        let follows = |due: &mut i64, account: &str, version: i64| {
            let gap = missing.contains(&(account, *due)) && version == *due + 1;
            let fits = version == *due || gap;
            *due = version + 1;
            fits
        };
        let mut next: HashMap<&str, i64> = HashMap::new();
        let mut known = HashSet::new();
        for sight in self.sights.iter().filter(|sight| known.insert(sight.event)) {
            let due = next.entry(&sight.account).or_insert(1);
            assert!(follows(due, &sight.account, sight.version), "out of order: {sight:?}");
        }
        next.clear();
        for applied in &self.applied {
            let due = next.entry(&applied.account).or_insert(1);
            assert!(follows(due, &applied.account, applied.version), "out of order: {applied:?}");
        }
    }

    /// How many sights are repetitions.
    pub fn repetitions(&self) -> usize {
        let distinct: HashSet<Uuid> = self.sights.iter().map(|sight| sight.event).collect();
        self.sights.len() - distinct.len()
    }

    /// No move is seen again, but by the next holder: what a relay that died had in its hands, which is what it had not settled, and
    /// at most so many of each.
    pub fn repeats_only_what_was_open(&self, deaths: &[Kill], most: usize) {
        let deaths: HashMap<&str, &Kill> =
            deaths.iter().map(|death| (death.relay_process.as_str(), death)).collect();
        let mut last: HashMap<Uuid, &Sight> = HashMap::new();
        let mut open: HashMap<&str, usize> = HashMap::new();
        for sight in &self.sights {
            if let Some(before) = last.insert(sight.event, sight) {
                let death = deaths.get(before.relay_process.as_str());
                let was_open = death.is_some_and(|death| !death.settled.contains(&sight.event));
                assert!(
                    was_open && before.relay_process != sight.relay_process,
                    "{before:?} was not open when its relay_process died, and came again: {sight:?}"
                );
                *open.entry(&before.relay_process).or_default() += 1;
            }
        }
        for (relay_process, count) in open {
            assert!(
                count <= most,
                "{count} came again after {relay_process} died; at most {most} were in its hands"
            );
        }
    }

    /// How many of those that this relay saw came again to others.
    pub fn seen_again_after(&self, relay_process: &str) -> usize {
        let mut last: HashMap<Uuid, &str> = HashMap::new();
        let before = self.sights.iter().map(|sight| last.insert(sight.event, &sight.relay_process));
        before.filter(|before| *before == Some(relay_process)).count()
    }

    /// Nothing came twice.
    pub fn repeats_nothing(&self) {
        self.repeats_only_what_was_open(&[], 0);
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;

    /// Three moves of one account, seen in this order by these relays, and applied in this order.
    fn report(seen: &[(i64, &str)], applied: &[i64]) -> TrialReport {
        let events: Vec<Uuid> = (0..3).map(|_| Uuid::now_v7()).collect();
        let event = |version: i64| events[version as usize - 1];
        let moved = |version| Moved { account: "a".to_owned(), version, poison: false };
        let sight = |(at, &(version, relay_process)): (usize, &(i64, &str))| Sight {
            at: at as i64,
            event: event(version),
            number: version,
            account: "a".to_owned(),
            version,
            attempt: 1,
            relay_process: relay_process.to_owned(),
        };
        let effect = |&version: &i64| Applied { event: event(version), account: "a".to_owned(), version };
        TrialReport {
            moves: (1..=3).map(|version| (event(version), moved(version))).collect(),
            notes: events.iter().map(|event| (*event, 1)).collect(),
            sights: seen.iter().enumerate().map(sight).collect(),
            applied: applied.iter().map(effect).collect(),
        }
    }

    fn fails(judge: impl FnOnce()) -> bool {
        catch_unwind(AssertUnwindSafe(judge)).is_err()
    }

    #[test]
    fn what_is_as_it_should_be_passes() {
        let good = report(&[(1, "x"), (2, "x"), (3, "x")], &[1, 2, 3]);
        good.keeps_its_promises(&[]);
        good.repeats_nothing();
    }

    #[test]
    fn what_is_lost_repeated_or_out_of_order_is_noticed() {
        let all = [(1, "x"), (2, "x"), (3, "x")];
        assert!(fails(|| report(&[(1, "x"), (2, "x")], &[1, 2, 3]).keeps_its_promises(&[])));
        assert!(fails(|| report(&[(1, "x"), (3, "x"), (2, "x")], &[1, 2, 3]).keeps_its_promises(&[])));
        assert!(fails(|| report(&all, &[1, 2]).keeps_its_promises(&[])));
        assert!(fails(|| report(&all, &[1, 2, 2, 3]).keeps_its_promises(&[])));
        assert!(fails(|| report(&all, &[2, 1, 3]).keeps_its_promises(&[])));
        assert!(fails(|| report(&all, &[1, 2, 3]).keeps_its_promises(&[Uuid::now_v7()])));
    }

    #[test]
    fn only_what_a_dead_relay_had_open_may_come_again() {
        let again = report(&[(1, "x"), (2, "x"), (2, "y"), (3, "y")], &[1, 2, 3]);
        let open = Kill { relay_process: "x".to_owned(), settled: HashSet::from([again.moves[0].0]) };
        again.keeps_its_promises(&[]);
        again.repeats_only_what_was_open(std::slice::from_ref(&open), 1);
        assert_eq!((again.repetitions(), again.seen_again_after("x")), (1, 1));
        assert!(fails(|| again.repeats_only_what_was_open(&[open], 0)));
        assert!(fails(|| again.repeats_nothing()));
        let settled = Kill { relay_process: "x".to_owned(), settled: HashSet::from([again.moves[1].0]) };
        assert!(fails(|| again.repeats_only_what_was_open(&[settled], 9)));
    }
}
