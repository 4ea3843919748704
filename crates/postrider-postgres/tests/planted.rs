//! The suite proves itself: known bugs are planted, and the named promise must fail.

mod support;

use postrider_conformance::promises::{bell, lanes, late, leases};
use support::Pg;

/// Runs a promise that must fail, and for the reason that the bug gives it: not because the bug was planted badly.
macro_rules! must_fail {
    ($harness:expr, $promise:path, $because:expr) => {{
        let harness = $harness;
        let outcome = tokio::spawn(async move { $promise(&harness).await }).await;
        let panic = outcome.expect_err(concat!(stringify!($promise), " did not find the bug")).into_panic();
        let said = match panic.downcast_ref::<String>() {
            Some(said) => said.as_str(),
            None => panic.downcast_ref::<&str>().copied().unwrap_or_default(),
        };
        assert!(said.contains($because), "{} failed because: {said}", stringify!($promise));
    }};
}

/// A statement of which one part was replaced; it must have been there.
fn swapped(text: &str, from: &str, to: &str) -> Option<String> {
    assert!(text.contains(from), "{from:?} is not in the statement any more: plant the bug anew");
    Some(text.replace(from, to))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_naive_cursor_is_found() {
    let naive: postrider_postgres::Patch = |name, text| {
        (name == "read")
            .then(|| {
                swapped(
                    text,
                    "where $3::boolean or pg_visible_in_snapshot",
                    "where $3::boolean and pg_visible_in_snapshot",
                )
            })
            .flatten()
    };
    let harness = Pg { patch: Some(naive), ..Pg::default() };
    must_fail!(harness, late::an_event_of_a_late_commit_is_delivered, "round 0");
    must_fail!(harness, late::an_early_transaction_that_inserts_late_is_delivered, "left: []");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_settle_without_the_epoch_is_found() {
    let blind: postrider_postgres::Patch = |name, text| {
        (name == "settle")
            .then(|| swapped(text, "l.lease_epoch = $4::bigint", "$4::bigint is not null"))
            .flatten()
    };
    let harness = Pg { patch: Some(blind), ..Pg::default() };
    must_fail!(harness, leases::a_stale_settle_is_refused_by_its_epoch, "right: Lost");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_settle_without_the_position_is_found() {
    let blind: postrider_postgres::Patch = |name, text| {
        (name == "settle").then(|| swapped(text, "l.position = $6::text", "$6::text is not null")).flatten()
    };
    let harness = Pg { patch: Some(blind), ..Pg::default() };
    must_fail!(harness, leases::a_stale_settle_is_refused_by_its_position, "the same batch twice");
}

/// The function `name` of a migration, with one part replaced.
fn function(migration: &str, name: &str, from: &str, to: &str) -> String {
    let start = migration
        .find(&format!("create function {{schema}}.{name}("))
        .expect("the function is in the migration");
    let text = &migration[start..];
    let end = text.find("\n$$;").expect("the function ends") + 4;
    swapped(&text[..end], from, to).expect("swapped").replacen(
        "create function",
        "create or replace function",
        1,
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_prune_by_id_alone_is_found() {
    let greedy = |schema: &str| {
        let migration = include_str!("../sql/migrations/0003_retention.sql");
        function(migration, "sweepable", "or pg_visible_in_snapshot(e.tx_id, l.snapshot)", "or true")
            .replace("{schema}", schema)
    };
    let harness = Pg { after_migration: Some(greedy), ..Pg::default() };
    must_fail!(harness, late::prune_never_takes_an_event_that_a_lane_has_not_seen, "left: 21");
}

/// An xid that was taken before the snapshot may be anything up to the snapshot's xmax.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bound_taken_before_the_snapshot_is_found() {
    let early: postrider_postgres::Patch = |name, text| {
        let from = "then pg_current_xact_id()::text end";
        (name == "read")
            .then(|| swapped(text, from, "then pg_snapshot_xmax(pg_current_snapshot())::text end"))
            .flatten()
    };
    let harness = Pg { patch: Some(early), ..Pg::default() };
    must_fail!(harness, late::an_older_transaction_that_commits_first_hides_nothing, "left: []");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bell_read_before_the_xid_is_found() {
    // As the statement begins, before its rows make the transaction take an xid.
    let early = |schema: &str| {
        let migration = include_str!("../sql/migrations/0001_log.sql");
        let deaf = function(migration, "before_record", "perform {schema}.ring();", "null;");
        let early = "create function {schema}.early() returns trigger language plpgsql as $$ begin
                 perform {schema}.ring();
                 return null;
             end $$;
             create trigger early before insert on {schema}.event for each statement execute function {schema}.early();";
        format!("{deaf}\n{early}").replace("{schema}", schema)
    };
    let harness = Pg { after_migration: Some(early), ..Pg::default() };
    must_fail!(harness, bell::a_slow_insert_rings, "long before the poll");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lane_change_from_the_highest_position_is_found() {
    // No lane is read up to the common position, which is the highest: all count as being there.
    let hasty: postrider_postgres::Patch = |name, text| match name {
        "claim" => swapped(text, "or (s.target is not null and l.position <> s.target)", ""),
        "relane" if text.starts_with("select position, ") => {
            let there =
                "select coalesce((select target from {schema}.subscription where name = $1), position), ";
            swapped(text, "select position, ", there)
        }
        _ => None,
    };
    let harness = Pg { patch: Some(hasty), ..Pg::default() };
    must_fail!(harness, late::late_events_survive_a_change_of_lanes, "left: ");
    must_fail!(harness, lanes::a_relay_that_dies_during_a_change_of_lanes_loses_nothing, "left: ");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_claim_that_takes_back_what_was_given_up_is_found() {
    let greedy: postrider_postgres::Patch =
        |name, text| (name == "claim").then(|| swapped(text, "0) <= s.wanted_with", "0) >= 0")).flatten();
    let harness = Pg { patch: Some(greedy), ..Pg::default() };
    must_fail!(harness, leases::lanes_end_up_shared_evenly, "it does not get it back");
}
