//! What an endpoint answers to a failing request: its beginning is kept with the attempt, and nowhere else.

mod support;

use std::time::{Duration, Instant};

use postrider::store::{EventRef, Excerpt, Inspect, OutboxSource, PastAttempt, State, StateQuery};
use postrider::testing::Outbox;
use postrider::{NewEvent, Relay, Retry};
use postrider_http::{Format, Http, HttpBuilder, StatusRule};
use support::Endpoint;

const PATIENCE: Duration = Duration::from_secs(30);

fn answer(status: &str, body: &str) -> String {
    format!("{status}\r\ncontent-length: {}\r\n\r\n{body}", body.len())
}

/// What is on record of an event that this endpoint lets die, and what its message says.
async fn died(endpoint: &Endpoint, builder: HttpBuilder) -> (Vec<PastAttempt>, String) {
    let outbox = Outbox::new();
    let event = NewEvent::of("orders", "OrderPaid", "Order", "7", &1).expect("an event");
    let event_id = outbox.record_alone(&event).await.expect("recorded");
    let sink = builder.status(422, StatusRule::Reject).status(500, StatusRule::Retry).build(&endpoint.url());
    let retry = Retry::fixed(Duration::from_millis(1)).max_attempts(2);
    let relay = Relay::new(&outbox)
        .owner("relay-1")
        .subscribe("hook", |s| s.sink(sink.expect("a sink")).retry(retry).timeout(Duration::from_secs(20)));
    let relay = relay.start().await.expect("started");
    let query = StateQuery { event_id: Some(event_id), ..StateQuery::default() };
    let end = Instant::now() + PATIENCE;
    let state = loop {
        let state = relay.store().states(&query).await.expect("states").remove(0);
        if state.state == State::Dead {
            break state;
        }
        assert!(Instant::now() < end, "{state:?}");
        tokio::time::sleep(Duration::from_millis(2)).await;
    };
    relay.stop().await.expect("stopped");
    let tries = outbox.store().attempts(EventRef { id: state.id, event_id }).await.expect("attempts");
    (tries.into_iter().flat_map(|each| each.attempts).collect(), state.error_message.unwrap_or_default())
}

#[tokio::test]
async fn the_beginning_of_an_answer_is_kept_with_the_attempt_and_is_no_part_of_its_message() {
    for format in [Format::Binary, Format::Structured, Format::Batched(10)] {
        let body =
            format!("{{\r\n\t\"error\":\t\"no \u{1b}[31msuch\0 card: 4711\"\n}}{}", "x".repeat(100_000));
        let endpoint = Endpoint::start(move |_| Some(answer("422 Unprocessable", &body))).await;
        let (tries, message) = died(&endpoint, Http::builder().format(format)).await;
        assert_eq!(tries.len(), 1, "{format:?}");
        let said = tries[0].answer.as_ref().expect("an answer").as_str();
        assert!(said.starts_with("{ \"error\": \"no [31msuch card: 4711\" }xxx"), "{said}");
        assert_eq!(said.chars().count(), Excerpt::MOST);
        assert!(said.ends_with('…'));
        assert_eq!((tries[0].code.as_str(), tries[0].relay.as_str()), ("http_422", "relay-1"));
        assert_eq!(
            (tries[0].message.as_str(), message.as_str()),
            ("the endpoint answered 422", "the endpoint answered 422")
        );
        assert!(!format!("{tries:?}").contains("4711"), "{tries:?}");
    }
}

#[tokio::test]
async fn each_try_has_its_own_answer() {
    let count = std::sync::atomic::AtomicU32::new(0);
    let endpoint = Endpoint::start(move |_| {
        let number = count.fetch_add(1, std::sync::atomic::Ordering::SeqCst) + 1;
        Some(answer("500 Oops", &format!("try {number}")))
    })
    .await;
    let (tries, _) = died(&endpoint, Http::builder()).await;
    let said: Vec<_> = tries.iter().map(|each| each.answer.as_ref().map(Excerpt::as_str)).collect();
    assert_eq!(said, [Some("try 1"), Some("try 2")]);
}

#[tokio::test]
async fn no_answer_is_kept_where_that_is_switched_off_or_there_is_none() {
    let endpoint = Endpoint::start(|_| Some(answer("422 Unprocessable", "card 4711"))).await;
    let (tries, _) = died(&endpoint, Http::builder().keep_answers(false)).await;
    assert_eq!((tries.len(), &tries[0].answer), (1, &None));
    let endpoint = Endpoint::start(|_| Some("422 Unprocessable".to_owned())).await;
    let (tries, _) = died(&endpoint, Http::builder()).await;
    assert_eq!((tries.len(), &tries[0].answer), (1, &None));
}

/// What came of it is kept, and what became of the event does not wait for the rest, however long a request may take.
#[tokio::test]
async fn an_answer_that_never_ends_is_not_waited_for() {
    let endless = "422 Unprocessable\r\ncontent-length: 1000000\r\n\r\nthe first words";
    let endpoint = Endpoint::start(move |_| Some(endless.to_owned())).await;
    let began = Instant::now();
    let (tries, _) = died(&endpoint, Http::builder()).await;
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    assert_eq!(tries[0].answer.as_ref().map(Excerpt::as_str), Some("the first words"));
}
