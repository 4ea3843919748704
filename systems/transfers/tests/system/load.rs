//! The short form of the measured load. Its times are measured by `transfers load`, in a release build.

use transfers::acts::load::{Options, act};

use crate::support::stage;

/// T10: two relays and fraud detection on the machine, one relay killed halfway: nothing is lost, and each is analysed once.
#[tokio::test(flavor = "multi_thread")]
async fn a_load_with_a_relay_killed_halfway_loses_nothing() {
    let stage = stage().await;
    let done = act(&stage, Options { rate: 200, seconds: 4 }).await;
    assert_eq!(done.transfers, 800);
    assert_eq!((stage.transfers().await, stage.analysed().await), (801, (801, 801)));
    let killed = "select count(distinct settled_by) from postrider.settled_batch where count > 0";
    assert_eq!(stage.number(killed).await, 2, "both relays had a share");
}

/// What was asked for is read, and what nobody knows is refused.
#[test]
fn options_are_read_and_unknown_ones_refused() {
    let parse = |text: &str| Options::parse(text.split_whitespace().map(str::to_owned));
    assert_eq!(parse("--rate 50 --seconds 3"), Ok(Options { rate: 50, seconds: 3 }));
    assert_eq!(parse(""), Ok(Options { rate: 1000, seconds: 30 }));
    for wrong in ["--rate", "--rate 0", "--rate fast", "--quick"] {
        assert!(parse(wrong).is_err(), "{wrong}");
    }
}
