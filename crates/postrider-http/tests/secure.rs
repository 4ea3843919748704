//! Who the endpoint is to us, and who we are to it: TLS and signatures.

#[path = "support/certificate.rs"]
mod certificate;
mod support;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use certificate::Authority;
use hmac::{Hmac, KeyInit, Mac};
use postrider::store::{Attempt, Delivery, OutboxSource, Outcome, Sink, Unavailable};
use postrider::testing::{Outbox, until_quiet};
use postrider::{ErrorKind, NewEvent, OffsetDateTime, Relay, Retry};
use postrider_http::{Format, Http, HttpBuilder, Secret};
use postrider_testkit::Folder;
use sha2::Sha256;
use support::{Endpoint, Request};

fn ok(_: &Request) -> Option<String> {
    Some("200 OK".to_owned())
}

/// Delivers an event once.
async fn deliver(sink: &Http) -> (Result<(), Unavailable>, Option<Outcome>) {
    let outbox = Outbox::new();
    let event = NewEvent::of("orders", "OrderPaid", "Order", "7", &1).expect("an event");
    outbox.record_alone(&event).await.expect("recorded");
    let event = outbox.recorded().pop().expect("it was recorded");
    let attempts = vec![Attempt { event: event.into(), attempt: 1 }];
    let delivery = std::sync::Arc::new(Delivery::new("hook", attempts));
    let result = sink.deliver(std::sync::Arc::clone(&delivery)).await;
    (result, delivery.take_outcomes().pop().flatten())
}

/// Why nothing can be delivered there: the same when it is asked for and when an event is on its way.
async fn refusal(builder: HttpBuilder, url: &str) -> String {
    let sink = builder.build(url).expect("a sink");
    let (result, outcome) = deliver(&sink).await;
    let reason = result.expect_err("unavailable").reason;
    assert_eq!(outcome, None, "no event is to blame: {reason}");
    let error = sink.check().await.expect_err("unreachable");
    assert_eq!(error.kind(), ErrorKind::Unreachable);
    assert_eq!(error.message(), reason, "both say the same");
    for line in [&reason, &error.to_string()] {
        assert!(!line.contains('\n') && !line.contains("hush"), "{line}");
    }
    reason
}

#[tokio::test]
async fn an_endpoint_whose_authority_is_known_gets_events_over_tls_and_no_other_does() {
    let authority = Authority::new();
    let endpoint = Endpoint::start_tls(authority.acceptor("localhost"), ok).await;
    let url = format!("https://localhost:{}/events?token=hush", endpoint.port);
    let folder = Folder::new();
    let file = folder.file("authority.pem", &authority.pem);
    for builder in [Http::builder().root_certificate(authority.der.clone()), Http::builder().authority(&file)]
    {
        let sink = builder.build(&url).expect("a sink");
        sink.check().await.expect("reached");
        let (result, outcome) = deliver(&sink).await;
        assert_eq!((result, outcome), (Ok(()), Some(Outcome::Delivered)));
    }
    assert_eq!(endpoint.requests().len(), 2, "a check makes no request");

    let unknown = "its certificate is not signed by a trusted authority";
    let sentence = refusal(Http::builder(), &url).await;
    assert!(sentence.contains(unknown) && sentence.contains("can't reach localhost"), "{sentence}");
    let other = Http::builder().root_certificate(Authority::new().der);
    let sentence = refusal(other, &url).await;
    assert!(sentence.contains(unknown), "{sentence}");
    assert_eq!(endpoint.requests().len(), 2, "nothing was sent");
}

#[tokio::test]
async fn an_endpoint_that_is_not_what_its_address_says_is_refused_in_a_sentence() {
    let authority = Authority::new();
    let trusting = || Http::builder().root_certificate(authority.der.clone());
    let named = Endpoint::start_tls(authority.acceptor("hook.example"), ok).await;
    let sentence = refusal(trusting(), &format!("https://localhost:{}/?token=hush", named.port)).await;
    assert!(sentence.contains("its certificate is for another host name"), "{sentence}");
    let plain = Endpoint::start(ok).await;
    let sentence = refusal(trusting(), &format!("https://127.0.0.1:{}/?token=hush", plain.port)).await;
    assert!(sentence.contains("it does not use TLS on this port"), "{sentence}");
    let free = std::net::TcpListener::bind("127.0.0.1:0").and_then(|taken| taken.local_addr());
    let free = free.expect("a port that was free");
    let sentence = refusal(trusting(), &format!("http://{free}/?token=hush")).await;
    assert!(sentence.contains("connection refused"), "{sentence}");
    let sentence = refusal(trusting(), "http://hook.invalid/?token=hush").await;
    assert!(sentence.contains("the host name does not exist"), "{sentence}");
    assert_eq!(plain.requests().len() + named.requests().len(), 0);
}

#[test]
fn an_authority_that_is_none_is_refused_when_the_sink_is_made() {
    let folder = Folder::new();
    let refused = |file: PathBuf| {
        Http::builder().authority(file).build("https://host/").err().expect("refused").to_string()
    };
    assert!(
        refused(folder.path().join("nowhere.pem")).contains("nowhere.pem; it must be a file in PEM format")
    );
    assert!(refused(folder.file("empty.pem", "nothing")).contains("it must be a file in PEM format"));
    let der = Http::builder().root_certificate(b"nothing".to_vec()).build("https://host/");
    assert!(der.err().expect("refused").to_string().contains("can't use the certificate"));
}

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/// What a receiver does: the signature is over id, time and body, and the time is now.
fn is_signed(request: &Request) -> bool {
    let key = STANDARD.decode(SECRET.trim_start_matches("whsec_")).expect("a key");
    let (id, time) = (request.header("webhook-id"), request.header("webhook-timestamp"));
    let age = time.parse::<i64>().map(|time| OffsetDateTime::now_utc().unix_timestamp() - time);
    let mut mac = Hmac::<Sha256>::new_from_slice(&key).expect("a key");
    mac.update(id.as_bytes());
    mac.update(b".");
    mac.update(time.as_bytes());
    mac.update(b".");
    mac.update(&request.body);
    let wanted = format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()));
    request.header("webhook-signature") == wanted && age.is_ok_and(|age| (0..60).contains(&age))
}

/// Requests of every format, the first of which are refused for a while so that they are sent again.
async fn signed_requests(format: Format) -> Vec<Request> {
    let first = std::sync::atomic::AtomicUsize::new(0);
    let endpoint = Endpoint::start(move |request| {
        let again = first.fetch_add(1, std::sync::atomic::Ordering::SeqCst) < 3;
        Some(match (is_signed(request), again) {
            (false, _) => "401 Unsigned".to_owned(),
            (true, true) => "503 Busy".to_owned(),
            (true, false) => "200 OK".to_owned(),
        })
    })
    .await;
    let outbox = Outbox::new();
    for (order, text) in [("7", "é \u{1F40E}"), ("8", "plain"), ("8", "")] {
        let event = NewEvent::of("orders", "OrderPaid", "Order", order, &text).expect("an event");
        outbox.record_alone(&event).await.expect("recorded");
    }
    let secret = Secret::parse(SECRET).expect("a secret");
    let sink = Http::builder().format(format).sign(secret).build(&endpoint.url()).expect("a sink");
    let relay = Relay::new(&outbox)
        .subscribe("hook", |s| s.sink(sink).retry(Retry::fixed(Duration::from_millis(10))))
        .start()
        .await
        .expect("started");
    until_quiet(&relay, "hook").await.expect("quiet");
    let dead = relay.store().figures("hook").await.expect("figures");
    assert_eq!(dead.iter().map(|each| each.dead).sum::<u64>(), 0, "every signature is right");
    relay.stop().await.expect("stopped");
    endpoint.requests()
}

/// Reads requests from a file and says of each whether it is signed, and whether it is when a byte of it is another one.
const VERIFIER: &str = r#"
import base64, json, sys
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

def verified(body, headers):
    try:
        Webhook(sys.argv[2]).verify(body, headers, json_parse=False)
        return True
    except WebhookVerificationError:
        return False

for line in open(sys.argv[1]):
    request = json.loads(line)
    body, headers = base64.b64decode(request["body"]), request["headers"]
    other = dict(headers, **{"webhook-id": headers["webhook-id"] + "x"})
    print(verified(body, headers), verified(body + b" ", headers), verified(body, other))
"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_and_the_library_of_standard_webhooks_verify_every_signature() {
    let mut requests = Vec::new();
    for format in [Format::Binary, Format::Structured, Format::Batched(2)] {
        let signed = signed_requests(format).await;
        assert!(signed.len() >= 3, "{format:?}");
        // What is sent again has the id that it had, so that a receiver can tell.
        let ids: BTreeSet<&str> = signed.iter().map(|request| request.header("webhook-id")).collect();
        assert!(ids.len() < signed.len(), "{format:?}");
        requests.extend(signed);
    }
    let lines = requests.iter().map(|request| {
        format!(
            "{}\n",
            serde_json::json!({"body": STANDARD.encode(&request.body), "headers": request.headers})
        )
    });
    let folder = Folder::new();
    let (script, records) =
        (folder.file("verifier.py", VERIFIER), folder.file("requests", &lines.collect::<String>()));
    let python = xtask::python::ready().expect("Python with the library of Standard Webhooks");
    let mut command = Command::new(python);
    command.arg(&script).arg(&records).arg(SECRET);
    let verdicts = xtask::process::output(&mut command, "verify signatures").expect("it verifies them");
    assert_eq!(verdicts.lines().count(), requests.len());
    for verdict in verdicts.lines() {
        assert_eq!(verdict, "True False False", "as it came, and with another body or id");
    }
}
