//! The suite proves itself: with a known bug in the store, the promise that it breaks fails.

mod support;

use postrider_conformance::Harness;
use postrider_conformance::promises::{deliveries, due, lanes, leases, reading, recording, retention};
use support::{Lite, Patch};

/// A promise that must fail, by an assertion of its own: not because the planted SQL is wrong or was not planted.
macro_rules! fails {
    ($name:ident, $module:ident::$promise:ident, $lite:expr) => {
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $name() {
            let broken = tokio::spawn(async {
                let harness: &dyn Harness = &$lite;
                $module::$promise(harness).await;
            });
            let panic = broken.await.expect_err("the bug was not noticed").into_panic();
            let said = panic.downcast_ref::<String>().map(String::as_str);
            let said =
                said.or_else(|| panic.downcast_ref::<&str>().copied()).expect("a panic with a sentence");
            assert!(!said.contains(ANEW) && !said.contains("kind: Database"), "{said}");
        }
    };
}

const ANEW: &str = "plant the bug anew";

/// A store one of whose statements says something else.
fn altered(patch: Patch) -> Lite {
    Lite { patch: Some(patch), after_migration: None }
}

/// A database in which something was changed after the migration.
fn changed(sql: &'static str) -> Lite {
    Lite { patch: None, after_migration: Some(sql) }
}

/// The text of a statement with a part replaced, which must be there.
fn replaced(text: &str, part: &str, by: &str) -> Option<String> {
    assert!(text.contains(part), "{part:?} is not in the statement any more: {ANEW}");
    Some(text.replace(part, by))
}

fails!(
    a_settle_that_ignores_the_epoch,
    leases::a_stale_settle_is_refused_by_its_epoch,
    altered(|name, text| match name {
        "settle.sql" => replaced(text, "lease_epoch = ?3 and lease_owner = ?4", "?3 and ?4 is not null"),
        _ => None,
    })
);

fails!(
    a_settle_that_ignores_the_position,
    leases::a_stale_settle_is_refused_by_its_position,
    altered(|name, text| match name {
        "settle.sql" => replaced(text, "and position = ?5", "and ?5 is not null"),
        _ => None,
    })
);

fails!(
    a_claim_that_trusts_a_lease_from_the_future,
    leases::a_lease_too_far_in_the_future_is_void,
    altered(|name, text| match name {
        "claimable.sql" => replaced(text, "or l.lease_until > clock.now + l.lease_for", ""),
        _ => None,
    })
);

fails!(
    a_read_that_skips_a_row,
    recording::what_is_committed_is_delivered_once,
    altered(|name, text| match name {
        "read.sql" => replaced(text, "id > ?1", "id > ?1 + 1"),
        _ => None,
    })
);

fails!(
    a_start_at_the_beginning_that_is_now,
    reading::a_subscription_starts_at_the_beginning,
    altered(|name, text| match name {
        "subscribe.sql" => replaced(text, "when 'beginning' then 0", "when 'never' then 0"),
        _ => None,
    })
);

fails!(
    a_due_that_forgets_what_is_in_front,
    due::a_key_comes_up_to_the_first_one_that_is_not_due,
    altered(|name, text| match name {
        "due_by_key.sql" => replaced(text, "where not blocked", "where true"),
        _ => None,
    })
);

fails!(
    a_change_of_lanes_that_does_not_drain,
    lanes::a_relay_that_dies_during_a_change_of_lanes_loses_nothing,
    altered(|name, text| match name {
        "relane_look.sql" => replaced(text, "l.position <> s.target", "l.position > s.target"),
        _ => None,
    })
);

fails!(
    a_claim_that_takes_back_what_was_given_up,
    leases::lanes_end_up_shared_evenly,
    altered(|name, text| match name {
        "claimable.sql" => replaced(text, "and standing.own > s.wanted_with", "and 0"),
        "claim.sql" => replaced(text, "or s.wanted_with >= (", "or 0 <= ("),
        _ => None,
    })
);

fails!(
    a_holder_that_is_told_to_give_up_every_lane,
    leases::lanes_end_up_shared_evenly,
    altered(|name, text| match name {
        "standing.sql" => replaced(text, "and h.last_lane = ?4", "and ?4 is not null"),
        _ => None,
    })
);

fails!(
    a_sweep_that_takes_the_dead,
    retention::dead_and_waiting_events_stay,
    altered(|name, text| match name {
        "sweep.sql" => replaced(text, "d.state in ('waiting', 'running', 'retrying', 'dead') or", ""),
        _ => None,
    })
);

fails!(
    a_sweep_that_counts_from_now,
    retention::only_what_every_subscription_settled_long_enough_ago_is_pruned,
    altered(|name, text| match name {
        "horizon.sql" => replaced(text, "b.settled_at <= ?1", "?1 is not null"),
        _ => None,
    })
);

fails!(
    an_id_that_anybody_may_choose,
    recording::an_explicit_id_loses_nothing,
    changed("drop trigger postrider_event_id")
);

fails!(
    an_event_that_anybody_may_change,
    recording::events_cannot_be_changed_or_deleted,
    changed("drop trigger postrider_event_refuse_update")
);

fails!(
    a_final_state_that_is_not,
    deliveries::a_final_state_is_final,
    changed("drop trigger postrider_delivery_step")
);
