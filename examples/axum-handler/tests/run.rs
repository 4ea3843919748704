//! The example runs: payments get their receipts, each once, also over a restart.

use std::process::Command;

use postrider_testkit::{Folder, Program, http, until};

async fn start(folder: &Folder) -> (Program, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_example-axum-handler"));
    command.current_dir(folder.path()).env("LISTEN", "127.0.0.1:0");
    let mut shop = Program::start("the shop", &mut command);
    let address = shop.line("listening on ").await;
    (shop, address)
}

async fn until_receipts(address: &str, wanted: usize) {
    until("the receipts are written", async || {
        let answer = http::get(address, "/orders/7/receipts").unwrap_or_default();
        let receipts = answer.matches("of order 7: received with thanks").count();
        assert!(receipts <= wanted, "a receipt was written twice: {answer}");
        receipts == wanted
    })
    .await;
}

#[tokio::test]
async fn a_payment_gets_its_receipt() {
    let folder = Folder::new();
    let (mut shop, address) = start(&folder).await;
    for _ in 0..2 {
        let answer = http::request("POST", &address, "/orders/7/payments").expect("an answer");
        assert!(answer.starts_with("HTTP/1.1 202"), "{answer}");
    }
    until_receipts(&address, 2).await;
    shop.process.signal("TERM");
    shop.line("stopped").await;
    assert_eq!(shop.exit_code().await, Some(0));

    let (shop, address) = start(&folder).await;
    http::request("POST", &address, "/orders/7/payments").expect("an answer");
    until_receipts(&address, 3).await;
    assert_eq!(shop.stop().await, Some(0));
}
