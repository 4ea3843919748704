//! The relay as a program, when its database fails over to a standby that lacks the last of it.

mod support;

use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use postrider_testkit::http::{self, Request};
use sqlx::postgres::PgPoolOptions;
use sqlx::{PgPool, Row};
use support::{Folder, RelayProcess, postrider, until_true};
use xtask::postgres::{Cluster, Standby};

/// An HTTP endpoint that answers only while it is open.
#[derive(Clone, Default)]
struct Endpoint(Arc<(Mutex<State>, Condvar)>);

#[derive(Default)]
struct State {
    closed: bool,
    waiting: usize,
    /// The ids of the events that it answered, in order.
    took: Vec<String>,
}

impl Endpoint {
    fn start() -> (Self, SocketAddr) {
        let endpoint = Self::default();
        let serving = endpoint.clone();
        let address = http::listen(move |stream| serving.serve(stream));
        (endpoint, address)
    }

    fn with<T>(&self, look: impl FnOnce(&mut State) -> T) -> T {
        let answer = look(&mut self.0.0.lock().unwrap_or_else(PoisonError::into_inner));
        self.0.1.notify_all();
        answer
    }

    /// Takes one request; nothing when the connection is over.
    fn serve(&self, mut stream: &TcpStream) -> Option<()> {
        let id = Request::read(stream)?.header("ce-id").unwrap_or_default().to_owned();
        let mut state = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.waiting += 1;
        while state.closed {
            state = self.0.1.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.waiting -= 1;
        state.took.push(id);
        drop(state);
        stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").ok()
    }

    fn missing(&self, events: &[String]) -> usize {
        self.with(|state| events.iter().filter(|event| !state.took.contains(event)).count())
    }
}

async fn connect(cluster: &Cluster) -> PgPool {
    PgPoolOptions::new().connect(&cluster.url("postgres")).await.expect("the server answers")
}

/// Records events of a stream, of 20 keys, and gives their ids.
async fn record(pool: &PgPool, stream: &str, count: i64) -> Vec<String> {
    let sql = "select postrider.record($2, 'OrderPaid', 'Order', (n % 20)::text, to_json(n))::text \
               from generate_series(1, $1::bigint) as n";
    let rows = sqlx::query(sql).bind(count).bind(stream).fetch_all(pool).await.expect("recorded");
    rows.iter().map(|row| row.get(0)).collect()
}

/// What is at the endpoint is there; but the relay has passed over rows that vanished, and what is recorded on the new primary
/// has their numbers.
#[tokio::test(flavor = "multi_thread")]
async fn a_relay_delivers_all_that_a_promoted_standby_has_to_its_endpoint() {
    let settings = [("shared_buffers", "32MB"), ("max_connections", "100")];
    let mut primary = Cluster::create(&settings).expect("a server of its own");
    let url = primary.url("postgres");
    let folder = Folder::new();
    assert!(postrider(&url, &["migrate"]).status().expect("it runs").success());
    let mut standby = Standby::of(&primary).expect("a standby");
    let (endpoint, address) = Endpoint::start();
    let text = format!(
        "[relay]\nlease = \"60s\"\npoll_interval = \"200ms\"\n[http]\nlisten = \"off\"\n\
         [[subscription]]\nname = \"hook\"\nstreams = [\"orders\"]\nsink = \"hook\"\nbatch = 500\ntimeout = \"60s\"\n\
         [sink.hook]\ntype = \"http\"\nurl = \"http://{address}/events\"\n"
    );
    let mut relay = RelayProcess::with(folder.path(), &url, "relay", &text);
    let old = connect(&primary).await;
    let first = record(&old, "orders", 10).await;
    until_true("the first are delivered", || endpoint.missing(&first) == 0).await;
    let settled = "select frontier >= (select max(id) from postrider.event) from postrider.lane";
    for attempt in 0.. {
        let row = sqlx::query(settled).fetch_one(&old).await.expect("the lane");
        if row.get::<bool, _>(0) {
            break;
        }
        assert!(attempt < 1000, "the first are not settled");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    // Frozen, so that it reads at once what the standby still gets and what it never does.
    endpoint.with(|state| state.closed = true);
    relay.signal("STOP");
    let mut recorded = record(&old, "orders", 20).await;
    standby.catch_up(&primary).and_then(|()| standby.cut_off()).expect("the standby is cut off");
    record(&old, "refunds", 150).await;
    relay.signal("CONT");
    until_true("they are at the endpoint", || endpoint.with(|state| state.waiting >= 10)).await;

    primary.kill().expect("the primary dies");
    standby.take_address_of(&primary).expect("the standby has its address");
    let promoted = standby.promote().expect("the standby is promoted");
    let new = connect(&promoted).await;
    recorded.extend(record(&new, "orders", 150).await);
    endpoint.with(|state| state.closed = false);
    recorded.extend(record(&new, "orders", 50).await);
    // A relay that lost something says nothing of it: it is waited for until it can be no more.
    for _ in 0..2000 {
        if endpoint.missing(&recorded) == 0 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let missing = endpoint.missing(&recorded);
    assert_eq!(missing, 0, "{missing} of {} never came: {}", recorded.len(), relay.log());
    relay.signal("TERM");
    assert_eq!(relay.ended(), Some(0), "{}", relay.log());
}
