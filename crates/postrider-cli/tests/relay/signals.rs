//! The signal that a closed terminal sends.

use tokio::io::AsyncWriteExt;

use crate::support::{Fixture, RelayProcess, until_true};

/// A terminal that is closed ends a relay as SIGTERM does, with its lanes given back; not one that was started to outlive it.
#[tokio::test(flavor = "multi_thread")]
async fn a_closed_terminal_ends_a_relay_in_order_unless_it_ignores_that() {
    let fixture = Fixture::new().await;
    fixture.run(&["migrate"]);
    let settings = "[relay]\nlease = \"2m\"\n[http]\nlisten = \"off\"\n\
         [[subscription]]\nname = \"out\"\nsink = \"out\"\n[sink.out]\ntype = \"stdout\"\n";
    let start =
        |ignores, name| RelayProcess::hung_up(ignores, fixture.folder.path(), &fixture.url, name, settings);
    let mut closed = start(false, "closed");
    fixture.record(0, 1).await;
    until_true("it is delivered", || closed.lines().len() == 1).await;
    closed.signal("HUP");
    assert_eq!(closed.ended(), Some(0), "{}", closed.log());
    // The lane was given back: nobody waits for two minutes.
    let mut outlives = start(true, "outlives");
    fixture.record(1, 2).await;
    until_true("it is delivered", || outlives.lines().len() == 1).await;
    outlives.signal("HUP");
    fixture.record(2, 3).await;
    until_true("it goes on", || outlives.lines().len() == 2).await;
    outlives.signal("TERM");
    assert_eq!(outlives.ended(), Some(0), "{}", outlives.log());
}

/// One terminal that is closed may send SIGHUP twice: from the shell, and from the system when the shell has ended.
#[tokio::test(flavor = "multi_thread")]
async fn a_second_hangup_does_not_cut_short_a_stop() {
    let fixture = Fixture::new().await;
    fixture.run(&["migrate"]);
    let endpoint = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let settings = format!(
        "[http]\nlisten = \"off\"\n[[subscription]]\nname = \"hook\"\nsink = \"hook\"\n\
         [sink.hook]\ntype = \"http\"\nurl = \"http://{}\"\n",
        endpoint.local_addr().expect("an address")
    );
    let mut relay = RelayProcess::hung_up(false, fixture.folder.path(), &fixture.url, "closed", &settings);
    fixture.record(0, 1).await;
    let (mut request, _) = endpoint.accept().await.expect("a request");
    relay.signal("HUP");
    until_true("it stops", || relay.log().contains("stopping:")).await;
    relay.signal("HUP");
    let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
    request.write_all(answer).await.expect("answered");
    assert_eq!(relay.ended(), Some(0), "{}", relay.log());
    let done = "select count(*) from postrider.event_state where state = 'done'";
    let done: i64 = sqlx::query_scalar(done).fetch_one(&fixture.pool).await.expect("a count");
    assert_eq!(done, 1, "{}", relay.log());
}
