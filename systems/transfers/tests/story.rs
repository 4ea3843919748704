//! The story, as somebody runs it.

use std::net::TcpStream;

use story::Kept;

/// T1, T4, T12: the story of the whole system, with everything that it kills. With `--keep` it stays up, with the commands that it printed, for
/// whoever wants to look at it; asked to end, it leaves nothing behind.
#[test]
fn the_story_holds_every_promise() {
    let kept = Kept::tell(env!("CARGO_BIN_EXE_transfers"), "alerts check");
    let told = kept.text();
    assert!(told.contains("Every promise held") && !told.contains("BROKEN"), "{told}");
    let status = kept.run("status");
    assert!(status.contains("transfers-to-kafka"), "{status}");
    kept.run("dead list");
    let service = kept.address("transaction service").trim_start_matches("http://").to_owned();
    let broker = kept.address("broker").to_owned();
    for address in [&service, &broker] {
        assert!(TcpStream::connect(address).is_ok(), "{address}");
    }
    assert_eq!(kept.end(), Some(0));
    for address in [&service, &broker] {
        assert!(TcpStream::connect(address).is_err(), "{address} ended with it");
    }
}
