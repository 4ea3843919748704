//! The example runs: what the shop records comes back from Kafka, in the order of its key, once.

use std::process::Command;

use postrider_testkit::{Folder, Program, address, unique};

#[tokio::test]
async fn what_is_recorded_comes_back_from_kafka() {
    let (folder, topic) = (Folder::new(), unique("orders-"));
    address::create_topics(&[(&topic, 4), (&format!("{topic}.DLT"), 1)]);
    for run in 0..2 {
        let mut command = Command::new(env!("CARGO_BIN_EXE_example-kafka"));
        command.current_dir(folder.path()).env("KAFKA_BROKERS", address::kafka()).env("TOPIC", &topic);
        let mut example = Program::start("the example", &mut command);
        let mut invoices = Vec::new();
        for _ in 0..3 {
            invoices.push(example.line("invoice for payment ").await);
        }
        let of_7: Vec<&String> = invoices.iter().filter(|invoice| invoice.ends_with("order 7")).collect();
        let payments = [format!("{} of order 7", run * 2 + 1), format!("{} of order 7", run * 2 + 2)];
        assert_eq!(of_7, payments.iter().collect::<Vec<_>>(), "{invoices:?}");
        assert!(invoices.contains(&format!("{} of order 8", run + 1)), "{invoices:?}");
        example.process.signal("TERM");
        example.line("stopped").await;
        assert_eq!(example.exit_code().await, Some(0));
    }
}
