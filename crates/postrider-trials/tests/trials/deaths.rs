//! An event that ends the process that handles it is found out.

use std::collections::HashSet;
use std::time::Duration;

use postrider::Uuid;
use postrider::store::State;
use postrider_trials::relay_options::{Poison, RelayOptions};
use postrider_trials::relay_process::RelayProcess;
use postrider_trials::test_store::{Change, TestStore};
use postrider_trials::trial::{Trial, until};
use postrider_trials::trial_report::TrialReport;
use postrider_trials::{EFFECTS, PLAIN};

use crate::{RELAY_PROCESS, on_each};

on_each!(
    an_event_that_aborts_the_process_is_dead_after_the_set_number_of_deaths,
    an_event_that_overflows_the_stack_is_dead_after_the_set_number_of_deaths,
    an_event_that_aborts_a_busy_process_is_dead_after_the_set_number_of_deaths,
    an_event_that_aborts_the_process_takes_no_event_of_another_subscription_with_it,
    an_event_that_aborts_a_process_with_a_fixed_name_is_found_out,
    an_event_that_aborts_the_process_long_after_its_batch_was_settled_is_found_out,
);

const MOST_DEATHS: u32 = 2;

async fn change<G: TestStore>(trial: &Trial<G>, account: &str, poison: bool) -> Uuid {
    let change = Change { account: account.to_owned(), hold: Duration::ZERO, give_up: false, poison };
    trial.test_store.change(&change).await.expect("a change").expect("its event")
}

/// Three accounts, ten changes each; the fifth of the second is poison if asked for.
async fn changes<G: TestStore>(trial: &Trial<G>, poisoned: bool) -> Option<Uuid> {
    let mut poison = None;
    for version in 1..=10 {
        for account in ["a", "b", "c"] {
            let is_poison = poisoned && account == "b" && version == 5;
            let event = change(trial, account, is_poison).await;
            poison = if is_poison { Some(event) } else { poison };
        }
    }
    poison
}

/// Starts relays, one after the other, until one lives to see the end. How many died.
async fn ride_until_quiet<G: TestStore>(
    trial: &Trial<G>,
    start: impl Fn() -> RelayProcess,
    mut relay_process: RelayProcess,
) -> (u32, RelayProcess) {
    let mut deaths = 0;
    loop {
        until("the relay_process dies or everything is delivered", async || {
            relay_process.ended().is_some() || trial.is_quiet().await
        })
        .await;
        if relay_process.ended().is_none() {
            return (deaths, relay_process);
        }
        trial.bury(&relay_process).await;
        deaths += 1;
        assert!(deaths < 20, "relay_processes die for ever");
        relay_process = start();
    }
}

async fn poison<G: TestStore>(subscription: &str, poison: Poison, busy: bool, slow: Duration) {
    poison_as::<G>(None, subscription, poison, busy, slow).await;
}

/// The same with relays that all have this name, if there is one.
async fn poison_as<G: TestStore>(
    name: Option<&str>,
    subscription: &str,
    poison: Poison,
    busy: bool,
    slow: Duration,
) {
    let trial = Trial::<G>::new(RELAY_PROCESS).await;
    let wanted = |options: &mut RelayOptions| {
        if let Some(name) = name {
            name.clone_into(&mut options.name);
        }
        options.slow = slow;
        if poison == Poison::Late {
            // The poison alone, which outlives its batch.
            (options.slow_one_in, options.patience) = (1000, Duration::from_millis(10));
        }
        options.deaths = MOST_DEATHS;
        options.poison = Some((subscription.to_owned(), poison));
    };
    let start = || trial.start(wanted);
    let (relay_process, event) = if busy {
        // It has settled something, and holds its lane, when the poison comes.
        let relay_process = trial.start_ready(wanted).await;
        changes(&trial, false).await;
        trial.until_it_left(&relay_process, 60).await;
        trial.until_quiet(&relay_process).await;
        (relay_process, changes(&trial, true).await)
    } else {
        let event = changes(&trial, true).await;
        (start(), event)
    };
    let event = event.expect("the poison's id");
    let (deaths, last) = ride_until_quiet(&trial, start, relay_process).await;
    assert_eq!(last.stop().await, Some(0));

    let state = trial.state(subscription, event).await;
    assert_eq!((state.state, state.error_code.as_deref()), (State::Dead, Some("crashed")), "{state:?}");
    let other = if subscription == PLAIN { EFFECTS } else { PLAIN };
    assert_eq!(trial.state(other, event).await.state, State::Done, "it is poison to one subscription only");
    let dead = [trial.dead(PLAIN).await, trial.dead(EFFECTS).await].concat();
    assert_eq!(dead.len(), 1, "only the poison is dead: {dead:?}");
    assert!(deaths > MOST_DEATHS, "{deaths} relay_processes died: it must be sure that it was the event");
    assert!(
        deaths <= MOST_DEATHS + 1,
        "{deaths} relay_processes died; {MOST_DEATHS}, and the one that nobody could know of"
    );
    let (report, poison) = (TrialReport::of(&trial.test_store).await, HashSet::from([event]));
    let none = HashSet::new();
    report.loses_nothing(if subscription == PLAIN { &poison } else { &none });
    report.applies_once(if subscription == EFFECTS { &poison } else { &none });
    report.keeps_order_but(&poison);
}

async fn an_event_that_aborts_the_process_is_dead_after_the_set_number_of_deaths<G: TestStore>() {
    poison::<G>(PLAIN, Poison::Abort, false, Duration::ZERO).await;
}

async fn an_event_that_overflows_the_stack_is_dead_after_the_set_number_of_deaths<G: TestStore>() {
    poison::<G>(EFFECTS, Poison::Overflow, false, Duration::ZERO).await;
}

async fn an_event_that_aborts_a_busy_process_is_dead_after_the_set_number_of_deaths<G: TestStore>() {
    poison::<G>(PLAIN, Poison::Abort, true, Duration::ZERO).await;
}

/// The other subscription's handler is at work, too, whenever the process dies: that is not its events' fault.
async fn an_event_that_aborts_the_process_takes_no_event_of_another_subscription_with_it<G: TestStore>() {
    poison::<G>(EFFECTS, Poison::Abort, false, Duration::from_millis(100)).await;
}

/// As under a supervisor that starts a relay again under its own name: each is another process, however it is called.
async fn an_event_that_aborts_a_process_with_a_fixed_name_is_found_out<G: TestStore>() {
    poison_as::<G>(Some("relay-0"), PLAIN, Poison::Abort, false, Duration::ZERO).await;
}

/// The lane has read on since, and other events are in its hands.
async fn an_event_that_aborts_the_process_long_after_its_batch_was_settled_is_found_out<G: TestStore>() {
    poison::<G>(PLAIN, Poison::Late, true, Duration::from_millis(400)).await;
}
