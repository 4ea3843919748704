//! The suite proves itself: with a known bug in the store, the promise that it breaks fails.

mod support;

use postrider_conformance::Harness;
use postrider_conformance::promises::{
    deliveries, due, lanes, late, leases, reading, recording, retention, writers,
};
use support::{My, Patch};

/// A promise that must fail, by an assertion of its own: not because the planted SQL is wrong or was not planted.
macro_rules! fails {
    ($name:ident, $module:ident::$promise:ident, $my:expr) => {
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $name() {
            let broken = tokio::spawn(async {
                let harness: &dyn Harness = &$my;
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
fn altered(patch: Patch) -> My {
    My { patch: Some(patch), ..My::default() }
}

/// A database in which something was changed after the migration.
fn changed(changes: fn() -> Vec<String>) -> My {
    My { after_migration: Some(changes), ..My::default() }
}

/// The text of a statement with a part replaced, which must be there.
fn replaced(text: &str, part: &str, by: &str) -> Option<String> {
    assert!(text.contains(part), "{part:?} is not in the statement any more: {ANEW}");
    Some(text.replace(part, by))
}

/// A procedure with a part replaced.
fn procedure(name: &str, part: &str, by: &str) -> Vec<String> {
    let migrations = [
        include_str!("../sql/migrations/0004_proofs.sql"),
        include_str!("../sql/migrations/0004_proofs_settle.sql"),
        include_str!("../sql/migrations/0005_running.sql"),
        include_str!("../sql/migrations/0006_due.sql"),
        include_str!("../sql/migrations/0007_away.sql"),
        include_str!("../sql/migrations/0011_refusals.sql"),
        include_str!("../sql/migrations/0012_rows.sql"),
    ];
    let created = format!("create or replace procedure {name}(");
    let last = migrations.iter().rev().find_map(|text| text.find(&created).map(|at| &text[at..]));
    let text = last.expect("its beginning");
    let text = &text[..text.find("\nend;").expect("its end") + 4];
    vec![replaced(text, part, by).expect("replaced")]
}

/// The numbering step with a part replaced.
fn numbering(part: &str, by: &str) -> Vec<String> {
    procedure("postrider_number", part, by)
}

fails!(
    a_numbering_by_the_highest_id_alone,
    late::an_event_of_a_late_commit_is_delivered,
    changed(|| numbering(
        "on a.id between h.first_id and h.last_id",
        "on a.id between h.first_id and h.first_id - 1"
    ))
);

fails!(
    a_numbering_that_waits_for_open_transactions,
    late::a_long_transaction_delays_only_itself,
    changed(|| numbering(
        "where a.id > before_reached order by a.id limit most) next",
        "where a.id > before_reached order by a.id limit most lock in share mode) next"
    ))
);

fails!(
    a_numbering_that_puts_the_late_behind,
    writers::order_per_aggregate_holds_with_sixteen_writers,
    changed(|| numbering(
        "sum(island.length) over (order by island.id)",
        "sum(island.length) over (order by island.id <= before_reached, island.id)"
    ))
);

fails!(
    a_numbering_that_forgets_what_it_left,
    late::many_late_events_come_in_bounded_batches_none_twice,
    changed(|| numbering("if high < hole_last then", "if high > hole_last then"))
);

fails!(
    a_settle_that_ignores_the_epoch,
    leases::a_stale_settle_is_refused_by_its_epoch,
    changed(|| procedure(
        "postrider_settle_running",
        "and lease_epoch = the_epoch and lease_owner = the_owner",
        ""
    ))
);

fails!(
    a_settle_that_ignores_the_position,
    leases::a_stale_settle_is_refused_by_its_position,
    changed(|| procedure("postrider_settle_running", "and position = from_seq", ""))
);

fails!(
    a_claim_that_trusts_a_lease_from_the_future,
    leases::a_lease_too_far_in_the_future_is_void,
    altered(|name, text| match name {
        "claimable.sql" => replaced(text, "or l.lease_until > clock.now + l.lease_for + 1000000", ""),
        _ => None,
    })
);

fails!(
    a_read_that_skips_a_row,
    recording::what_is_committed_is_delivered_once,
    altered(|name, text| match name {
        "read.sql" => replaced(text, "between ?1 and ?2", "between ?1 + 1 and ?2"),
        _ => None,
    })
);

fails!(
    a_start_at_the_beginning_that_is_now,
    reading::a_subscription_starts_at_the_beginning,
    altered(|name, text| match name {
        "subscribe_start.sql" => replaced(text, "when 'beginning' then 0", "when 'never' then 0"),
        _ => None,
    })
);

fails!(
    a_due_that_forgets_what_is_in_front,
    due::a_key_comes_up_to_the_first_one_that_is_not_due,
    altered(|name, text| match name {
        "due.sql" => replaced(text, "where not d.blocked", "where true"),
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
        "claimable.sql" => replaced(text, "and standing.own > s.wanted_with", "and false"),
        "claim_free.sql" => replaced(text, "or s.wanted_with >= (", "or 0 <= ("),
        _ => None,
    })
);

fails!(
    a_holder_that_is_told_to_give_up_every_lane,
    leases::lanes_end_up_shared_evenly,
    changed(|| procedure("postrider_stand", "and h.last_lane = the_lane", ""))
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
    an_event_that_anybody_may_change,
    recording::events_cannot_be_changed_or_deleted,
    changed(|| vec!["drop trigger postrider_event_refuse_update".to_owned()])
);

fails!(
    a_final_state_that_is_not,
    deliveries::a_final_state_is_final,
    changed(|| vec!["drop trigger postrider_delivery_step".to_owned()])
);
