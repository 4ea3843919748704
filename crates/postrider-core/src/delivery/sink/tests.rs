//! A delivery while its events are started, reported and left running.

use super::*;
use crate::DeliveryFailure;
use crate::event::recorded::tests::event;

/// Five events of three keys, in this order.
fn of_three_keys() -> Delivery {
    let attempts = ["a", "b", "a", "c", "b"].map(|key| Attempt { event: Arc::new(event(key)), attempt: 1 });
    Delivery::new("s", attempts.to_vec())
}

#[test]
fn it_is_left_running_only_when_nothing_more_can_be_begun() {
    let delivery = of_three_keys();
    assert!(!delivery.is_all_begun(), "nothing is under way");
    assert!(delivery.begin_all(&[0, 1]));
    assert!(!delivery.leave_running(), "c can be begun");
    assert!(delivery.begin(3));
    delivery.report(3, Outcome::Delivered);
    delivery.report(1, Outcome::Delivered);
    assert!(!delivery.leave_running(), "the second of b can be begun");
    assert!(delivery.begin(4));
    assert!(delivery.leave_running(), "the second of a is behind its first");
    assert!(!delivery.begin(2), "nothing more is begun");
    assert!(delivery.begin(0), "what is under way may be tried once more");
    delivery.report(4, Outcome::Delivered);
    assert_eq!(delivery.take_report(4).map(|report| report.outcome), Some(Outcome::Delivered));
    assert_eq!((delivery.take_report(0), delivery.is_begun(0), delivery.is_begun(2)), (None, true, false));
}

#[test]
fn what_is_reported_is_not_under_way() {
    let delivery = of_three_keys();
    (0..5).for_each(|index| delivery.report(index, Outcome::Delivered));
    assert!(!delivery.leave_running());
    assert!(!delivery.is_stopping());
}

#[test]
fn without_an_order_nothing_is_behind_anything() {
    let mut delivery = of_three_keys();
    delivery.order = Order::None;
    assert!(delivery.begin_all(&[0, 1, 3]));
    assert!(!delivery.is_all_begun());
    assert!(delivery.begin_all(&[2, 4]));
    assert!(delivery.is_all_begun());
}

#[test]
fn a_key_is_a_chain_in_order() {
    let mut delivery = of_three_keys();
    assert_eq!(delivery.chains(), [vec![0, 2], vec![1, 4], vec![3]]);
    delivery.order = Order::Strict;
    assert_eq!(delivery.chains(), [vec![0, 1, 2, 3, 4]]);
    delivery.order = Order::None;
    assert_eq!(delivery.chains(), [[0], [1], [2], [3], [4]]);
    assert!(Delivery::new("s", Vec::new()).chains().is_empty());
}

#[test]
fn failures_in_a_row_that_may_be_the_destinations_end_what_is_begun() {
    let attempts: Vec<_> =
        (0..9).map(|key| Attempt { event: Arc::new(event(&key.to_string())), attempt: 1 }).collect();
    let mut delivery = Delivery::new("s", attempts);
    delivery.concurrency = 2;
    let unclear = || Outcome::unclear(DeliveryFailure::new("http_503", "busy"));
    for (index, outcome) in
        [unclear(), unclear(), Outcome::Delivered, unclear(), unclear()].into_iter().enumerate()
    {
        assert!(delivery.begin(index), "{index}");
        delivery.report(index, outcome);
    }
    assert!(delivery.begin(5) && delivery.begin(6));
    delivery.report(5, unclear());
    assert!(!delivery.begin(7), "the third in a row");
    delivery.report(6, Outcome::Delivered);
    let reports = delivery.take_reports();
    assert!(reports[..7].iter().flatten().all(|report| report.began <= report.ended));
    assert_eq!(reports.iter().flatten().count(), 7);
}
