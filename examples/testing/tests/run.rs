//! The example runs: a payment becomes a parcel, and the parcel a line.

use std::process::Command;

use postrider_testkit::{Folder, Program};

#[tokio::test]
async fn a_parcel_is_announced() {
    let folder = Folder::new();
    let mut command = Command::new(env!("CARGO_BIN_EXE_example-testing"));
    let mut shop = Program::start("the shop", command.current_dir(folder.path()));
    let line = shop.line("{").await;
    assert!(line.contains("\"type\":\"ParcelPacked\"") && line.contains("\"subject\":\"7\""), "{line}");
    assert_eq!(shop.stop().await, Some(0));
}
