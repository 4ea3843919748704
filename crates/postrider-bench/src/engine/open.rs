//! How fast fresh events flow while very many deliveries are open: none of them is due, and a relay has to find that out again and
//! again without being slowed down.

use std::cell::Cell;
use std::time::Instant;

use postrider_core::{EventLog, OnDead, Order, Start, Subscription};
use postrider_relay::Relay;

use crate::data::Bench;
use crate::engine::{Tally, counting};
use crate::report::Report;
use crate::{AnyError, in_turns};

/// What is open: for each, in which key the `n`-th row is and in which state, in SQL.
struct Shape {
    name: &'static str,
    lanes: u32,
    key: &'static str,
    state: &'static str,
}

const SHAPES: [Shape; 4] = [
    Shape { name: "of distinct keys", lanes: 1, key: "n", state: "'retrying'" },
    Shape {
        name: "behind one held key",
        lanes: 1,
        key: "1",
        state: "case when n = 1 then 'dead' else 'waiting' end",
    },
    Shape {
        name: "behind 1,000 retrying heads",
        lanes: 1,
        key: "n % 1000",
        state: "case when n <= 1000 then 'retrying' else 'waiting' end",
    },
    Shape { name: "of distinct keys in two lanes", lanes: 2, key: "n", state: "'retrying'" },
];

/// A relay from its start until its handler has had all that is new. Events per second.
async fn drain(bench: &Bench, name: &str, lanes: u32, events: u64) -> Result<f64, AnyError> {
    let tally = Tally::new(events);
    let began = Instant::now();
    let relay = Relay::new(&bench.outbox)
        .subscribe(name, |subscriber| counting(subscriber, &tally, lanes).on_dead(OnDead::Hold));
    let relay = relay.start().await?;
    tally.wait().await?;
    let rate = events as f64 / began.elapsed().as_secs_f64();
    relay.stop().await?;
    tally.check()?;
    Ok(rate)
}

/// Opens as many deliveries for a subscription as there are old events.
async fn open(bench: &Bench, name: &str, shape: &Shape, open: u64) -> Result<(), AnyError> {
    let Shape { key, state, .. } = shape;
    bench
        .run(&format!(
            "insert into {{schema}}.delivery (subscription, id, event_id, key, lane_hash, state, holds, attempts, next_at) \
             select '{name}', o.id, o.event_id, k.key, {{schema}}.hash_of(k.key), {state}, true, 1, now() + interval '1 day' \
             from (select e.id, e.event_id, row_number() over (order by e.id) as n from {{schema}}.event e \
                   where e.aggregate_type = 'Old' order by e.id limit {open}) as o \
             cross join lateral (select 'Old:' || ({key}) as key) as k"
        ))
        .await
}

/// The bars of fresh events beside many open deliveries.
pub async fn run(report: &mut Report, quick: bool) -> Result<(), AnyError> {
    let (old, fresh, turns) = if quick { (100_000, 100_000, 3) } else { (1_000_000, 200_000, 3) };
    let bench = Bench::new(8).await?;
    report.say(&format!("filling a log with {old} events that were read long ago"));
    bench
        .run(&format!(
            "insert into {{schema}}.event (stream, event_type, aggregate_type, aggregate_id, payload) \
             select 'orders', 'OrderPaid', 'Old', n::text, json_build_object('order', n, 'note', repeat('x', 150)) \
             from generate_series(1, {old}) as n"
        ))
        .await?;
    for shape in &SHAPES {
        let (bare, crowded) = (format!("without, {}", shape.name), format!("with, {}", shape.name));
        for name in [&bare, &crowded] {
            let subscription = Subscription::new(name.as_str()).order(Order::Key).on_dead(OnDead::Hold);
            bench.store.subscribe(&subscription.lanes(shape.lanes).start(Start::Now)).await?;
        }
        report.say(&format!("opening {old} deliveries {}", shape.name));
        open(&bench, &crowded, shape, old).await?;
        report.say("draining fresh events beside them, in turns with a subscription that has none");
        let recorded = Cell::new(0_u64);
        // Each side has the same fresh events in its turn, whichever comes first.
        let side = async |name: &str, drained: &Cell<u64>| {
            drained.set(drained.get() + fresh);
            if recorded.get() < drained.get() {
                bench.fill(fresh).await?;
                recorded.set(drained.get());
            }
            drain(&bench, name, shape.lanes, fresh).await
        };
        let (by_bare, by_crowded) = (Cell::new(0), Cell::new(0));
        let (without, with, ratio) =
            in_turns(turns, async || side(&bare, &by_bare).await, async || side(&crowded, &by_crowded).await)
                .await?;
        let name = format!("fresh events with {old} open deliveries {} / without", shape.name);
        let detail = format!("{with:.0} against {without:.0} events/s, the ratio of neighbouring turns");
        report.at_least(&name, 100.0 * ratio, 50.0, "%", &detail);
    }
    bench.close().await
}
