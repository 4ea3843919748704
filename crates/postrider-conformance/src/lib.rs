//! The promises of Postrider, one named test each, run against every store.
//!
//! A store implements [`Harness`] in its tests and calls [`conformance!`], and, if several transactions can
//! be open in it at once, [`conformance_of_concurrent_writers!`] as well. A store that does not pass does not
//! exist. The suite proves itself: the stores plant known bugs and assert that the named test fails.

#![allow(clippy::missing_panics_doc)]

pub mod crew;
pub mod engine;
pub mod harness;
mod pass_on;
pub mod promises;
pub mod relay;
pub mod silent;

pub use harness::{Harness, TestLog, Writer};
#[doc(hidden)]
pub use {async_trait, postrider_core};

/// Makes a test of each promise that every store keeps.
///
/// `$harness` is an expression that makes the store's [`Harness`].
#[macro_export]
macro_rules! conformance {
    ($harness:expr) => {
        $crate::promises!($harness;
            recording: rollback_leaves_nothing, what_is_committed_is_delivered_once,
                an_event_id_that_is_taken_is_refused_and_the_transaction_goes_on, record_once_leaves_a_taken_id_at_that,
                record_all_is_all_or_nothing_and_keeps_its_order, a_payload_is_kept_byte_for_byte,
                bytes_are_kept_with_their_content_type, every_field_comes_back, events_cannot_be_changed_or_deleted,
                bad_input_is_refused_in_a_sentence_and_the_transaction_goes_on,
                sequence_numbers_have_no_gaps_within_a_key, a_plain_insert_is_delivered,
                an_explicit_id_loses_nothing;
            reading: a_narrow_filter_still_advances, a_filter_wants_streams_and_types,
                a_subscription_starts_at_the_beginning, a_subscription_starts_now, a_subscription_starts_at_a_time,
                an_idle_read_changes_nothing, reading_ahead_follows_the_position, a_savepoint_rolled_back_leaves_nothing,
                an_unknown_subscription_is_named;
            bytes: a_batch_is_cut_by_its_bytes_and_the_next_one_goes_on, an_event_above_the_bytes_comes_alone,
                wide_events_respect_filters_and_lanes, wide_events_survive_a_change_of_lanes,
                what_is_due_is_cut_by_its_bytes_and_keys_keep_their_order, masked_events_are_archived_by_their_bytes,
                headers_count_when_many_events_are_recorded_at_once;
            leases: a_lane_is_held_by_one, a_lease_runs_out_and_the_next_holder_goes_on,
                a_lease_is_extended, a_released_lane_is_free_at_once, a_stale_settle_is_refused_by_its_epoch,
                a_stale_settle_is_refused_by_its_position, a_lease_too_far_in_the_future_is_void,
                claims_since_the_last_settle_are_counted, a_crash_before_settle_repeats_only_the_open_batch,
                sixteen_claimers_share_four_lanes, no_free_lane_is_passed_over, lanes_end_up_shared_evenly,
                a_standby_of_a_single_lane_recalls_nobody;
            history: a_stale_lease_reads_nothing, a_lane_that_stands_elsewhere_is_not_read,
                what_became_of_an_event_is_not_written_to_a_stranger, an_effect_without_its_mark_is_not_settled;
            lanes: a_key_stays_in_one_lane, changing_lanes_loses_repeats_and_reorders_nothing,
                a_change_of_lanes_recalls_its_holders, a_relay_that_dies_during_a_change_of_lanes_loses_nothing;
            deliveries: a_failed_event_is_due_when_its_time_has_come, a_look_says_when_to_look_again, later_events_of_a_key_wait_behind_it,
                without_order_nothing_waits, under_strict_order_the_first_decides_for_all,
                a_requeued_event_keeps_its_place, a_dead_event_under_hold_holds_its_key_until_discarded,
                a_dead_event_stays_dead_until_somebody_acts, a_final_state_is_final,
                delivery_rows_of_a_refused_settle_are_not_written,
                a_delivery_that_the_database_refuses_becomes_a_dead_one;
            attempts: the_last_tries_that_failed_come_with_what_is_due, what_never_failed_has_no_tries_on_record,
                what_is_requeued_or_discarded_keeps_its_tries, tries_go_with_their_delivery,
                tries_count_among_the_bytes_of_what_is_due;
            due: a_key_comes_up_to_the_first_one_that_is_not_due, a_look_is_bounded_and_the_next_one_goes_on,
                many_keys_share_a_look, one_that_is_requeued_in_front_comes_first,
                a_new_policy_places_what_is_open, a_change_of_lanes_places_what_is_open,
                what_a_replay_leaves_is_found, what_operators_do_beside_settles_leaves_nothing_behind;
            running: what_is_running_is_never_due_to_its_own_holder, what_is_running_holds_its_key,
                what_a_gone_holder_had_running_is_due_at_once, a_first_try_that_succeeds_leaves_no_row,
                a_stale_holder_forgets_nothing, what_is_given_back_keeps_its_attempts_and_failure,
                what_is_running_ends_like_any_other, what_is_running_shows_as_processing,
                retention_leaves_what_is_running_alone, running_has_its_steps_and_no_others,
                operators_do_not_touch_what_is_running, a_change_of_lanes_makes_what_is_running_due,
                a_replay_forgets_what_is_running, a_new_policy_leaves_what_is_running_in_hand,
                what_is_running_is_settled_one_by_one;
            states: every_state_is_shown_with_its_details, figures_count_what_is_where,
                what_waits_behind_a_dead_event_is_told_from_what_is_due,
                a_subscription_that_is_being_made_is_unknown_or_counted_whole, those_undelivered_for_long_are_counted;
            inbox: an_effect_happens_once_under_sixteen_racers, a_rolled_back_effect_is_not_marked,
                the_inbox_is_kept_until_its_event_is_settled_everywhere, a_text_key_is_marked_once_per_consumer,
                a_rolled_back_effect_frees_its_text_key;
            keys: keys_that_look_alike_are_held_each_by_its_own, keys_that_look_alike_have_counters_of_their_own,
                keys_that_look_alike_are_each_in_one_lane, consumers_whose_names_look_alike_have_inboxes_of_their_own,
                subscriptions_whose_names_look_alike_are_several, leader_leases_whose_names_look_alike_are_several;
            retention: only_what_every_subscription_settled_long_enough_ago_is_pruned, dead_and_waiting_events_stay,
                the_archive_can_be_read_but_not_delivered, nothing_is_pruned_without_a_subscription,
                retention_counts_from_the_settle_also_after_a_change_of_lanes, retention_works_in_batches,
                what_one_sweep_passed_over_the_next_one_takes, the_archive_loses_whole_months_only,
                what_is_masked_stays_out_of_the_archive, a_count_says_what_a_sweep_would_take,
                a_target_that_is_not_there_is_refused, what_a_lane_has_not_passed_is_known_also_if_nobody_wants_it;
            bell: the_bell_is_never_missed, two_sleepers_are_both_woken;
            relays: a_relay_is_known_by_what_it_said_last_until_it_ends, a_relay_that_misses_its_reports_is_gone,
                what_a_live_relay_has_is_removed_by_force_only, who_paused_a_subscription_is_kept_until_it_goes_on,
                one_is_told_that_a_subscription_is_new;
            operating: subscriptions_are_shown_with_their_lanes, a_destination_that_is_away_is_shown_until_it_is_back,
                a_paused_subscription_rests_until_it_is_resumed,
                a_resume_rings_sleeping_relays, a_removed_subscription_holds_nothing_up,
                open_deliveries_are_listed_with_their_failures, what_operators_did_is_written_down, checks_find_nothing_bad_in_a_good_log;
            replacing: a_dead_event_is_replaced_wherever_it_is_dead, a_replacement_that_fails_changes_nothing,
                what_waited_behind_a_replaced_event_goes_on_before_the_new_one, of_several_who_replace_an_event_one_does;
            search: events_are_found_by_what_they_are, a_look_at_events_is_bounded_and_goes_on,
                a_chain_shows_causes_and_what_followed;
            leader_leases: a_task_is_done_by_one_at_a_time, the_next_leader_reads_what_was_noted,
                of_sixteen_who_want_a_duty_one_gets_it;
            replay: everything_from_an_event_on_comes_again, a_dry_run_counts_and_changes_nothing,
                a_replay_takes_lanes_from_their_holders, deliveries_of_what_comes_again_are_forgotten,
                what_was_discarded_comes_with_a_replay,
                a_replay_skips_nothing_and_begins_at_the_start_at_the_earliest,
                a_replay_that_cannot_be_whole_is_refused, retention_waits_for_what_comes_again;
            writers: order_per_aggregate_holds_with_sixteen_writers,
                what_was_committed_is_delivered_exactly_once_while_lanes_are_claimed_lost_and_changed
        );
    };
}

/// Makes a test of each promise about transactions that are open at the same time.
#[macro_export]
macro_rules! conformance_of_concurrent_writers {
    ($harness:expr) => {
        $crate::promises!($harness;
            late: an_event_of_a_late_commit_is_delivered, an_early_transaction_that_inserts_late_is_delivered,
                a_long_transaction_delays_only_itself, many_late_events_come_in_bounded_batches_none_twice,
                late_events_respect_filters_and_lanes, prune_never_takes_an_event_that_a_lane_has_not_seen,
                an_older_transaction_that_commits_first_hides_nothing, late_events_survive_a_change_of_lanes,
                late_events_count_as_pending_until_they_are_read, a_subscription_that_starts_now_sees_what_commits_later;
            bytes: wide_late_events_are_cut_by_their_bytes_none_lost_or_twice;
            replay_among_writers: a_replay_forgets_no_late_event, replays_among_writers_lose_nothing;
            bell: a_late_commit_rings_or_is_found, a_slow_insert_rings, a_wait_that_is_dropped_forgets_nothing, a_fast_relay_does_not_make_every_commit_ring
        );
    };
}

/// Makes tests of promises by name.
#[doc(hidden)]
#[macro_export]
macro_rules! promises {
    ($harness:expr; $($module:ident: $($promise:ident),+);+) => {
        $(mod $module {
            #[allow(unused_imports)]
            use super::*;
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $promise() {
                $crate::promises::$module::$promise(&$harness).await;
            })+
        })+
    };
}
