//! The promises of the engine, run on every store: [`engine!`](crate::engine!).

pub mod contrast;
pub mod dying;
pub mod effects;
pub mod handling;
mod hanging_handler;
pub mod isolation;
pub mod operating;
pub mod order;
pub mod outage;
pub mod pauses;
pub mod running;
pub mod several;
pub mod sharing;
pub mod silence;
pub mod stops;
pub mod versions;
pub mod whole;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use postrider::store::{Clock, EventState, ManualClock, OutboxSource, Recordable, StateQuery, Store};
use postrider::{Event, Headers, NewEvent, OffsetDateTime, Received, Relay, Uuid};
use serde::{Deserialize, Serialize};

/// Makes fresh outboxes of one kind of store.
#[async_trait]
pub trait Fixture: Send + Sync {
    /// The outbox.
    type Outbox: OutboxSource;

    /// An outbox on an empty log that nobody else uses.
    async fn outbox(&self, clock: Clock) -> Self::Outbox;
}

/// The same for a database that is spoken to in SQL.
#[async_trait]
pub trait Statements: Fixture {
    /// Runs a statement on a handler's connection, as its text says.
    async fn run(
        connection: &mut <Self::Outbox as OutboxSource>::Connection,
        statement: &'static str,
    ) -> Result<(), String>;
}

/// Makes a test of each promise of the engine. `$fixture` is an expression that makes the store's [`Fixture`].
#[macro_export]
macro_rules! engine {
    ($fixture:expr) => {
        $crate::engine_promises!($fixture;
            handling: every_event_reaches_its_handler_once_and_in_order, functions_closures_and_structs_all_handle,
                a_panic_is_a_failure_of_that_event,
                a_panic_in_an_upcaster_is_a_failure_of_that_event, a_handler_may_take_longer_than_the_lease,
                a_pause_without_end_stops_nobody,
                a_handler_that_takes_too_long_fails, keys_run_at_once_and_a_key_one_at_a_time,
                an_unknown_type_is_skipped_or_rejected, what_cannot_be_decoded_is_rejected_without_its_payload,
                what_is_wrong_is_said_before_anything_starts, a_relay_that_sleeps_is_woken, raw_payloads_are_handed_on;
            several: a_handler_may_want_several_at_once, each_of_several_has_its_own_outcome,
                behind_a_failure_of_its_key_one_of_several_comes_again,
                several_that_fail_together_are_handled_one_by_one;
            order: under_key_order_a_failure_holds_its_key_only, a_key_is_free_again_after_its_retry, many_open_deliveries_keep_no_other_key_waiting,
                under_strict_order_a_failure_holds_the_lane, without_order_a_failure_holds_nothing,
                a_dead_event_is_skipped_by_its_key,
                a_dead_event_under_hold_keeps_its_key_until_somebody_acts, a_requeued_event_comes_before_those_behind_it;
            dying: a_reject_is_dead_at_once_and_stays_dead_until_requeued, a_schedule_is_kept_and_ends_in_death,
                an_event_has_the_last_word_on_its_attempts, a_stated_time_is_waited_for, age_ends_it_where_that_is_set,
                a_death_is_told, one_of_four_subscriptions_failing_leaves_the_others_alone;
            outage: an_outage_burns_no_attempts_and_keeps_the_order, an_outage_expires_events_where_that_is_asked_for,
                a_slow_subscription_slows_no_other, a_handler_can_say_that_what_it_needs_is_away,
                a_handler_whose_service_answers_503_loses_no_attempt_until_another_key_succeeds;
            contrast: a_destination_that_fails_everything_costs_no_attempt_and_no_row,
                what_fails_alone_stays_away_and_does_not_die,
                what_was_delivered_is_settled_while_the_rest_waits_for_a_contrast,
                once_another_key_has_succeeded_the_failing_event_is_charged, a_failure_among_successes_is_the_events_own,
                what_was_charged_before_is_not_charged_in_an_outage,
                without_a_contrast_age_ends_an_event_only_where_outages_count;
            pauses: what_is_under_way_when_a_destination_goes_away_is_not_charged,
                what_breaks_while_others_are_refused_is_not_charged, what_is_due_behind_a_running_event_of_its_key_is_waited_for,
                the_first_of_several_that_hang_is_not_charged, what_is_due_is_tried_although_new_keys_keep_failing,
                a_running_event_whose_handler_is_unavailable_loses_no_attempt,
                a_suspect_that_cannot_be_handled_now_is_left_alone_for_a_while;
            sharing: a_clean_stop_repeats_nothing, a_stop_gives_back_what_is_not_done_in_time, relays_share_the_lanes,
                a_relay_takes_over_from_one_that_is_gone, an_idle_relay_gives_its_lane_back_and_wakes_for_a_retry,
                an_idle_relay_reports_rarely,
                lanes_change_under_a_running_relay, one_can_wait_for_ones_own_event;
            effects: an_effect_and_its_follow_up_happen_once, a_failed_effect_leaves_nothing, a_struct_and_any_error_will_do,
                effects_share_a_transaction_until_one_fails, follow_ups_carry_their_cause, a_plain_handler_with_an_inbox_is_not_called_again,
                a_stale_holder_applies_nothing, a_kept_transaction_is_a_failure,
                events_with_one_text_key_have_one_effect_per_subscription;
            running: a_hanging_event_delays_its_key_alone, at_most_concurrency_are_under_way_over_all_batches,
                a_running_event_that_fails_is_tried_again,
                under_strict_order_a_batch_waits_for_its_slowest, a_transactional_handler_may_run_on,
                a_handler_of_several_runs_on_as_one, one_at_a_time_in_one_lane_is_the_whole_order,
                one_at_a_time_a_slow_event_is_waited_for,
                one_that_takes_too_long_costs_those_it_shares_a_transaction_with_nothing,
                slow_and_failing_events_keep_the_order_of_their_keys;
            stops: a_stop_cuts_what_is_running_and_gives_it_back, a_stop_waits_for_what_is_running,
                a_lane_that_is_wanted_back_waits_for_what_is_running;
            isolation: a_panic_in_a_sink_is_a_failure_of_its_event, a_panic_that_does_not_come_again_is_held_against_nobody,
                a_panic_in_a_sink_holds_its_key_where_the_dead_do, a_handler_with_a_longer_time_has_it_in_its_transaction;
            silence: a_call_that_is_never_answered_holds_no_lane_for_ever,
                a_lane_that_could_not_be_given_back_is_given_back_later,
                a_settle_that_is_written_and_never_answered_repeats_nothing,
                a_settle_whose_answer_is_lost_cuts_off_nothing_that_runs, what_takes_long_is_no_reason_to_lose_the_lane;
            whole: several_of_which_one_is_not_delivered_commit_nothing_together;
            versions: an_old_version_is_brought_up_to_date, a_missing_step_is_rejected, a_version_from_the_future_waits,
                a_newer_version_is_tried_where_that_is_set, an_unknown_field_is_ignored
        );
    };
}

/// Makes a test of each promise about what handlers may do to their transactions by SQL. `$fixture` makes the store's
/// [`Statements`](crate::engine::Statements).
#[macro_export]
macro_rules! engine_on_sql {
    ($fixture:expr) => {
        mod on_sql {
            use super::*;
            $crate::engine_promises!($fixture;
                whole: an_error_that_a_handler_swallows_loses_no_effect, a_handlers_own_savepoints_are_its_own_business,
                    a_handler_that_rolls_back_is_not_done,
                    a_handler_that_ends_its_transaction_and_begins_another_is_not_done,
                    a_handler_that_commits_by_itself_comes_again, without_a_lease_a_transaction_is_whole_as_well
            );
        }
    };
}

/// Makes tests of promises of the engine by name.
#[doc(hidden)]
#[macro_export]
macro_rules! engine_promises {
    ($fixture:expr; $($module:ident: $($promise:ident),+);+) => {
        $(mod $module {
            #[allow(unused_imports)]
            use super::*;
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $promise() {
                $crate::engine::$module::$promise(&$fixture).await;
            })+
        })+
    };
}

/// An order was changed: the event of these tests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OrderChanged {
    /// Which order.
    pub order: String,
    /// Its version.
    pub version: i64,
}

impl Event for OrderChanged {
    const NAME: &'static str = "OrderChanged";
    const STREAM: &'static str = "orders";
    const AGGREGATE: &'static str = "Order";

    fn aggregate_id(&self) -> String {
        self.order.clone()
    }
}

/// What follows from it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InvoiceSent {
    /// Which order.
    pub order: String,
}

impl Event for InvoiceSent {
    const NAME: &'static str = "InvoiceSent";
    const STREAM: &'static str = "invoices";
    const AGGREGATE: &'static str = "Invoice";

    fn aggregate_id(&self) -> String {
        self.order.clone()
    }
}

/// How long a test waits for what must happen.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// The event of an order.
pub fn changed(order: &str, version: i64) -> OrderChanged {
    OrderChanged { order: order.to_owned(), version }
}

/// Records the event of an order.
pub async fn record<S: OutboxSource>(outbox: &S, order: &str, version: i64) -> Uuid {
    let event = changed(order, version).to_new_event().expect("an event").into_owned();
    outbox.record_alone(&event).await.expect("recorded")
}

/// Records an event of some type with some payload.
pub async fn record_plain<S: OutboxSource>(
    outbox: &S,
    event_type: &str,
    payload: &str,
    headers: Headers,
) -> Uuid {
    let payload: serde_json::Value = serde_json::from_str(payload).expect("JSON");
    let mut event = NewEvent::of("orders", event_type, "Order", "plain", &payload).expect("an event");
    event.headers = headers;
    outbox.record_alone(&event).await.expect("recorded")
}

/// The lease of a relay for tests.
pub const LEASE: Duration = Duration::from_secs(3);

/// A relay for tests: it looks often, and its lease is short.
pub fn relay<S: OutboxSource>(outbox: &S) -> Relay<S> {
    Relay::new(outbox).lease(LEASE).poll_interval(Duration::from_secs(1)).figures_every(None)
}

/// A clock to turn, in whole microseconds as databases have them.
pub fn clock() -> ManualClock {
    let micros = OffsetDateTime::now_utc().unix_timestamp_nanos() / 1000;
    ManualClock::at(OffsetDateTime::from_unix_timestamp_nanos(micros * 1000).expect("a time"))
}

/// Waits for something, and fails with `what` if it does not come.
pub async fn until(what: &str, mut condition: impl AsyncFnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !condition().await {
        assert!(Instant::now() < end, "it did not come: {what}");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// Where an event stands for a subscription.
pub async fn state(store: &dyn Store, subscription: &str, event_id: Uuid) -> EventState {
    let query = StateQuery {
        subscription: Some(subscription.to_owned()),
        event_id: Some(event_id),
        ..StateQuery::default()
    };
    store.states(&query).await.expect("states").pop().expect("a state")
}

/// What handlers have seen: order, version, attempt.
#[derive(Clone, Default)]
pub struct Seen(Arc<Mutex<Vec<(String, i64, u32)>>>);

impl Seen {
    /// Notes an event.
    pub fn note(&self, event: &Received<OrderChanged>) {
        let seen = (event.order.clone(), event.version, event.attempt());
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(seen);
    }

    /// All of it, in order.
    pub fn all(&self) -> Vec<(String, i64, u32)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// How many.
    pub fn count(&self) -> usize {
        self.all().len()
    }

    /// The versions of an order, in order.
    pub fn versions(&self, order: &str) -> Vec<i64> {
        self.all().into_iter().filter(|(seen, ..)| seen == order).map(|(_, version, _)| version).collect()
    }
}
