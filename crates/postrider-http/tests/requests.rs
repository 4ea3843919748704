//! The requests of a sink are counted by what came of them, from 0 on, and timed.

mod support;

use std::time::{Duration, Instant};

use metrics_exporter_prometheus::PrometheusBuilder;
use postrider::store::OutboxSource;
use postrider::testing::Outbox;
use postrider::{NewEvent, Relay, Retry};
use postrider_http::{Http, StatusRule};
use support::Endpoint;

#[tokio::test]
async fn requests_are_counted_by_code_from_the_start_and_timed() {
    let recorder = PrometheusBuilder::new().install_recorder().expect("the only recorder");
    let endpoint = Endpoint::start(|request| match request.header("ce-subject") {
        "slow" => None,
        "odd" => Some("418 Teapot".to_owned()),
        "bad" => Some("422 Unprocessable".to_owned()),
        _ => Some("200 OK".to_owned()),
    })
    .await;
    let outbox = Outbox::new();
    let sink = Http::builder()
        .status(422, StatusRule::Reject)
        .status(418, StatusRule::Reject)
        .build(&endpoint.url());
    let relay = Relay::new(&outbox).figures_every(None).subscribe("hook", |s| {
        s.sink(sink.expect("a sink"))
            .streams(["orders"])
            .retry(Retry::default())
            .timeout(Duration::from_millis(200))
    });
    let relay = relay.start().await.expect("started");
    let count = |labels: &str| {
        let start = format!("{labels} ");
        let text = recorder.render();
        let line = text.lines().find_map(|line| line.strip_prefix(&start));
        line.map(|figure| figure.parse::<f64>().expect("a figure"))
    };
    let requests =
        |code: &str| count(&format!("postrider_requests_total{{subscription=\"hook\",code=\"{code}\"}}"));
    let by_stream =
        |name: &str| count(&format!("postrider_{name}{{subscription=\"hook\",stream=\"orders\"}}"));
    // Before anything happened.
    for code in ["200", "422", "500", "503", "timeout", "connect", "broken"] {
        assert_eq!(requests(code), Some(0.0), "{code}");
    }
    for name in ["delivered_total", "duplicates_total", "retried_total", "rejected_total"] {
        assert_eq!(by_stream(name), Some(0.0), "{name}");
    }
    assert_eq!(count("postrider_deaths_total{subscription=\"hook\"}"), Some(0.0));
    for subject in ["fine", "bad", "odd", "slow", "fine too"] {
        let event = NewEvent::of("orders", "OrderPaid", "Order", subject, &1).expect("an event");
        outbox.record_alone(&event).await.expect("recorded");
    }
    let end = Instant::now() + Duration::from_secs(30);
    while requests("timeout").is_none_or(|count| count < 1.0)
        || count("postrider_deaths_total{subscription=\"hook\"}") != Some(2.0)
    {
        assert!(Instant::now() < end, "{}", recorder.render());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    relay.stop().await.expect("stopped");
    assert_eq!((requests("200"), requests("422"), requests("418")), (Some(2.0), Some(1.0), Some(1.0)));
    assert_eq!(by_stream("rejected_total"), Some(2.0));
    let timed = count("postrider_request_seconds_count{subscription=\"hook\"}").expect("timed");
    assert!(timed >= 5.0, "{timed}");
    let text = recorder.render();
    assert!(text.contains("# HELP postrider_requests_total requests to an HTTP endpoint"), "{text}");
    // Nothing of an address or an event is in a label.
    assert!(!text.contains("hush") && !text.contains("127.0.0.1") && !text.contains("OrderPaid"), "{text}");
}
