//! A destination that is away: nothing fails, nothing is retried, and somebody is told all the same.

use axum::Router;
use axum::http::StatusCode;
use postrider_testkit::until_true;
use serde_json::Value;

use crate::fixture::Fixture;
use crate::is_told;

/// T12: an endpoint that refuses connections rings by its outage alone, and the alert is over when it is back.
#[tokio::test(flavor = "multi_thread")]
async fn an_outage_is_told_although_nothing_fails_and_is_over_when_the_destination_is_back() {
    let fixture = Fixture::new().await;
    // Nobody's outgoing connection is given it, until the destination listens.
    let address = format!("127.0.0.1:{}", xtask::port::free().expect("a free port"));
    fixture.settings(&format!(
        "[[subscription]]\nname = \"gone\"\nsink = \"gone\"\norder = \"none\"\n\
         [sink.gone]\ntype = \"http\"\nurl = \"http://{address}/\"\nformat = \"structured\"\n\
         [[alert]]\nname = \"outage\"\nwhen = \"unavailable_seconds > 2\"\nto = [\"own\"]\n\
         [[alert]]\nwhen = \"retrying > 0\"\nto = [\"pager\"]\n[[alert]]\nwhen = \"event dies\"\nto = [\"pager\"]\n"
    ));
    let mut relay = fixture.start("relay", &["relay"]);
    fixture.record(3).await;
    let ear = &fixture.ear;
    until_true("it is told", || !ear.heard("/own").is_empty()).await;
    let own = ear.heard("/own");
    let text = own[0].body["text"].as_str().expect("a text");
    is_told(text, "outage (unavailable_seconds > 2) for gone: it is ", "; next: postrider status gone");
    assert!(own[0].body["value"].as_f64().is_some_and(|seconds| seconds > 2.0), "{text}");
    let (code, said) = fixture.run(&["alerts", "check", "--json"]).await;
    let rows: Vec<Value> = serde_json::from_str(&said).unwrap_or_else(|_| panic!("{said}"));
    let fires = |of: &str| {
        let row = rows.iter().find(|row| row["alert"] == "outage" && row["subscription"] == of);
        row.and_then(|row| row["firing"].as_bool()).unwrap_or_else(|| panic!("{said}"))
    };
    assert!(code == Some(1) && fires("gone") && !fires("mail"), "only the one that is away: {said}");

    let back = tokio::net::TcpListener::bind(&address).await.expect("its port");
    let server = tokio::spawn(async move {
        let _ = axum::serve(back, Router::new().fallback(async || StatusCode::NO_CONTENT)).await;
    });
    until_true("it is over", || ear.heard("/own").iter().any(|each| each.body["state"] == "resolved")).await;
    fixture.rounds(2).await;
    let states: Vec<Value> = ear.heard("/own").iter().map(|each| each.body["state"].clone()).collect();
    assert_eq!(states, ["firing", "resolved"], "once each");
    assert!(ear.heard("/pager").is_empty(), "no event failed: {:?}", ear.heard("/pager"));
    relay.end();
    server.abort();
    fixture.end().await;
}
