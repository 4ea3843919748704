//! The measured load, in its short form unless `POSTRIDER_SOAK` is set. Its times are measured by `transfers load`, in a release build.

use transfers::acts::load::{Options, act};

use crate::support::stage;

/// What is asked of this run: in the long form, what the documents ask for.
fn asked() -> Options {
    match std::env::var_os("POSTRIDER_SOAK") {
        Some(_) => Options::default(),
        None => Options { rate: 200, seconds: 4 },
    }
}

/// T10: two relays and fraud detection on the machine, one relay killed halfway: nothing is lost, and each is analysed once. The long
/// form is 1,000 a second for 30 s.
#[tokio::test(flavor = "multi_thread")]
async fn a_load_with_a_relay_killed_halfway_loses_nothing() {
    let stage = stage().await;
    let asked = asked();
    let done = act(&stage, asked).await;
    assert_eq!(done.transfers, asked.rate * asked.seconds);
    let made = i64::try_from(done.transfers).expect("a number") + 1;
    assert_eq!((stage.transfers().await, stage.analysed().await), (made, (made, made)));
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
