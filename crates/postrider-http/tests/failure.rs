//! What an error of `reqwest` means to a handler: its class, and that its words hold nothing of the address but the host.

mod support;

use std::time::Duration;

use postrider_http::failure;
use support::Endpoint;

const SECRET: &str = "hunter2";

fn client() -> reqwest::Client {
    postrider_http::client().expect("a client")
}

/// The address of an endpoint with a secret wherever one can be.
fn with_secrets(url: &str) -> String {
    let rest = url.strip_prefix("http://").expect("http").trim_end_matches('/');
    format!("http://user:{SECRET}@{rest}/{SECRET}?token={SECRET}")
}

fn assert_no_secret(failure: &postrider::Failure) {
    assert!(!format!("{failure} {failure:?}").contains(SECRET), "{failure:?}");
}

#[tokio::test]
async fn a_status_is_judged_by_its_class() {
    for (answer, is_retry) in [("503 Busy", true), ("429 Slow", true), ("404 None", true), ("422 No", false)]
    {
        let endpoint = Endpoint::start(move |_| Some(format!("{answer}\r\ncontent-length: 0\r\n\r\n"))).await;
        let sent = client().post(with_secrets(&endpoint.url())).send().await.expect("answered");
        let failure = failure(sent.error_for_status().expect_err("a failure"));
        assert_eq!(failure.is_retry(), is_retry, "{answer}");
        assert!(failure.message().contains(&answer[..3]), "{failure}");
        assert_no_secret(&failure);
    }
}

#[tokio::test]
async fn no_connection_is_an_outage_that_names_the_host() {
    // Nobody listens on port 1.
    let url = with_secrets("http://127.0.0.1:1");
    let failure = failure(client().post(url).send().await.expect_err("refused"));
    assert!(failure.message().starts_with("can't reach 127.0.0.1: "), "{failure}");
    assert_eq!(failure, postrider::Failure::unavailable(failure.message()));
    assert_no_secret(&failure);
}

#[tokio::test]
async fn no_answer_in_time_and_a_broken_connection_are_unclear() {
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}", silent.local_addr().expect("an address"));
    let request = client().post(with_secrets(&url)).timeout(Duration::from_millis(50));
    let late = failure(request.send().await.expect_err("too late"));
    assert_eq!(late, postrider::Failure::unclear("127.0.0.1 did not answer in time").code("timeout"));
    let closing = tokio::spawn(async move {
        // The one that waited in vain, and the one that follows.
        for _ in 0..2 {
            drop(silent.accept().await.expect("a connection"));
        }
    });
    let broken = failure(client().post(with_secrets(&url)).send().await.expect_err("broken"));
    closing.await.expect("closed");
    assert!(
        broken.is_retry() && broken.message().starts_with("the request to 127.0.0.1 broke: "),
        "{broken}"
    );
    assert_eq!(broken, postrider::Failure::unclear(broken.message()).code("broken"));
    assert_no_secret(&broken);
}

#[tokio::test]
async fn a_request_that_cannot_be_made_is_rejected() {
    for url in [format!("http://[{SECRET}"), format!("no-url-{SECRET}")] {
        let failure = failure(client().post(url).send().await.expect_err("no request"));
        let message = "the request can't be made; its URL and its headers must be valid";
        assert_eq!(failure, postrider::Failure::reject(message).code("request"));
    }
}
