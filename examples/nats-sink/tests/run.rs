//! The example runs, with a real NATS server that dies in between: the stream has every payment, in order, once.

use std::process::Command;

use async_nats::jetstream;
use futures_util::StreamExt;
use postrider_testkit::{Folder, PATIENCE, Program};
use xtask::nats::Nats;

/// The first payments in the stream, once there are so many.
async fn payments(nats: &Nats, count: usize) -> Vec<u64> {
    let client = async_nats::connect(nats.url()).await.expect("NATS answers");
    let stream = jetstream::new(client).get_stream("orders").await.expect("the stream");
    let settings = jetstream::consumer::pull::OrderedConfig::default();
    let consumer = stream.create_consumer(settings).await.expect("a consumer");
    let messages = consumer.messages().await.expect("messages").take(count);
    let payment = |message: Result<jetstream::Message, _>| {
        let message = message.expect("a message");
        let text = String::from_utf8_lossy(&message.payload).into_owned();
        let number = text.split("\"payment\":").nth(1).and_then(|rest| rest.split('}').next());
        assert!(text.contains("\"type\":\"OrderPaid\""), "{text}");
        number.and_then(|number| number.trim().parse::<u64>().ok()).expect("a number")
    };
    let all = messages.map(payment).collect();
    tokio::time::timeout(PATIENCE, all).await.unwrap_or_else(|_| panic!("{count} payments do not arrive"))
}

#[tokio::test]
async fn a_server_that_was_away_gets_every_payment() {
    let mut nats = Nats::create().expect("a NATS server");
    let folder = Folder::new();
    let mut command = Command::new(env!("CARGO_BIN_EXE_example-nats-sink"));
    command.current_dir(folder.path()).env("NATS_URL", nats.url());
    let mut shop = Program::start("the shop", &mut command);
    shop.line("recorded payment 2").await;
    assert_eq!(payments(&nats, 2).await, [1, 2]);

    nats.kill().expect("killed");
    shop.line("recorded payment 5").await;
    nats.start().expect("started again");
    assert_eq!(payments(&nats, 5).await, [1, 2, 3, 4, 5]);

    shop.process.signal("TERM");
    shop.line("stopped").await;
    assert_eq!(shop.exit_code().await, Some(0));
}
