//! Dead letters are put back by the command line, per topic and for their group alone.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use commerce::adapters::consumers::{SALES, sales};
use postrider::kafka::Consumer;
use postrider::{Failure, Raw, Received, Uuid};
use postrider_testkit::until;
use serde_json::Value;

use crate::consumers::ready;
use crate::feed::Feed;
use crate::world::{World, paid};

impl World {
    /// What `postrider dead-letters` says of the letters of the sales.
    fn letters(&self, command: &str, flags: &[&str]) -> String {
        let (topic, group) = (self.name("order-events"), self.name(SALES));
        let file = self.relay_file("letters", &[]);
        let of = ["dead-letters", command, "--topic", &topic, "--group", &group, "--config", &file];
        self.said(&[&of[..], flags].concat())
    }
}

/// C18: a letter is listed, put back for its group alone, and counted once; another group of the topic does not see it again.
#[tokio::test(flavor = "multi_thread")]
async fn a_letter_is_put_back_for_its_group_alone_and_counts_once() {
    let world = World::new(&["order-events"]).await;
    let feed = Feed::new(&world, "order-events");
    let heard = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&heard);
    let other = Consumer::new(&world.outbox, &world.brokers, &world.name("somebody-else"));
    let other = other.topics([world.name("order-events")]).property("session.timeout.ms", "6000");
    let other = other.on_other(move |_: Received<Raw>| {
        counted.fetch_add(1, Ordering::SeqCst);
        async { Ok::<(), Failure>(()) }
    });
    let running = [ready(sales(&world.settings(), &world.outbox)).await, ready(other).await];
    let id = Uuid::now_v7();
    feed.fact(id, &paid(1));
    feed.flush();
    world.until_committed(SALES, "order-events", 1).await;
    feed.raw("1", "not an event", "text/plain");
    feed.flush();
    world.until_committed(SALES, "order-events", 2).await;
    let list = || serde_json::from_str::<Value>(&world.letters("list", &["--json"])).expect("JSON");
    let letters = list();
    assert_eq!(letters.as_array().map(Vec::len), Some(2), "garbage is a letter, too: {letters}");
    assert_eq!(
        (&letters[0]["event_id"], &letters[0]["error"]),
        (&id.to_string().into(), &"order 1 has no lines".into())
    );
    // The root cause is mended, and the first letter put back.
    world.orders(1).await;
    assert!(world.letters("requeue", &["--limit", "1", "--yes"]).contains("put 1 dead letter back"));
    until("it is counted", async || world.sold().await == 1).await;
    world.until_committed(SALES, "order-events", 3).await;
    assert_eq!(list().as_array().map(Vec::len), Some(1), "the garbage stays");
    // Put back by mistake once more: the handled table knows it.
    feed.fact(id, &paid(1));
    feed.flush();
    world.until_committed(SALES, "order-events", 4).await;
    assert_eq!(world.sold().await, 1, "once");
    world.until_committed("somebody-else", "order-events", 4).await;
    assert_eq!(heard.load(Ordering::SeqCst), 2, "the first time and the mistake, not what was put back");
    for consumer in running {
        consumer.stop().await.expect("stopped");
    }
}
