//! An address behind which servers change, and a pair of servers to change: what a failover looks like to a relay.

use std::net::SocketAddr;
use std::str::FromStr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sqlx::mysql::MySqlConnectOptions;
use sqlx::{Connection, MySqlConnection, Row};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use xtask::mariadb::Mariadb;

use super::{run, until_within};

/// A loopback port that leads to one server at a time.
pub struct Switch {
    pub port: u16,
    state: Arc<Mutex<(u16, JoinSet<()>)>>,
    accepting: tokio::task::JoinHandle<()>,
}

impl Switch {
    pub async fn to(port: u16) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
        let state = Arc::new(Mutex::new((port, JoinSet::new())));
        let own = listener.local_addr().expect("an address").port();
        let shared = Arc::clone(&state);
        let accepting = tokio::spawn(async move {
            while let Ok((mut client, _)) = listener.accept().await {
                let mut state = shared.lock().expect("the state");
                let server = SocketAddr::from(([127, 0, 0, 1], state.0));
                state.1.spawn(async move {
                    if let Ok(mut server) = TcpStream::connect(server).await {
                        let _ = copy_bidirectional(&mut client, &mut server).await;
                    }
                });
            }
        });
        Self { port: own, state, accepting }
    }

    /// Leads to another server from now on; who was connected is cut off.
    pub fn change(&self, port: u16) {
        let mut state = self.state.lock().expect("the state");
        *state = (port, JoinSet::new());
    }
}

impl Drop for Switch {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// A primary and the replica that follows it, behind one address.
pub struct Pair {
    primary: Option<Mariadb>,
    replica: Mariadb,
    pub switch: Switch,
    words: Words,
}

/// What the two kinds of servers call the same thing.
#[derive(Clone, Copy)]
struct Words {
    settings: &'static [(&'static str, &'static str)],
    follow: &'static str,
    written: &'static str,
    applied: &'static str,
    stop: &'static str,
    forget: &'static str,
}

impl Words {
    fn of_servers() -> Self {
        if Mariadb::is_mysql() {
            return Self {
                settings: &[("gtid-mode", "ON"), ("enforce-gtid-consistency", "ON")],
                follow: "change replication source to source_host = '127.0.0.1', source_port = {port}, source_user = 'root', \
                         source_auto_position = 1, get_source_public_key = 1; start replica",
                written: "select @@global.gtid_executed",
                applied: "select @@global.gtid_executed",
                stop: "stop replica",
                forget: "reset replica all",
            };
        }
        Self {
            settings: &[("log-slave-updates", "1")],
            // From 11.4 on a replica asks for a certificate unless it is told otherwise.
            follow: "change master to master_host = '127.0.0.1', master_port = {port}, master_user = 'root', master_ssl = 0, \
                     master_use_gtid = slave_pos; start slave",
            written: "select @@gtid_binlog_pos",
            applied: "select @@gtid_slave_pos",
            stop: "stop slave",
            forget: "reset slave all",
        }
    }
}

impl Pair {
    pub async fn start() -> Self {
        let words = Words::of_servers();
        let settings = |id| {
            let settings = [("log-bin", "1"), ("server-id", id), ("binlog-format", "ROW")];
            [settings.as_slice(), words.settings].concat()
        };
        let primary = Mariadb::create(&settings("1")).expect("a primary");
        let replica = Mariadb::create(&settings("2")).expect("a replica");
        let follow = words.follow.replace("{port}", &primary.port().to_string());
        run(&mut connection(&replica).await, &follow).await;
        let switch = Switch::to(primary.port()).await;
        Self { primary: Some(primary), replica, switch, words }
    }

    pub fn options(&self) -> MySqlConnectOptions {
        let url = format!("mysql://root@127.0.0.1:{}/mysql", self.switch.port);
        MySqlConnectOptions::from_str(&url).expect("an address")
    }

    /// Waits until the replica has all that the primary has, and lets it get no more.
    pub async fn cut(&self) {
        let primary = self.primary.as_ref().expect("the primary");
        let mut primary = connection(primary).await;
        let mut replica = connection(&self.replica).await;
        until_within("the replica has caught up", Duration::from_secs(30), async || {
            let written: String = one(&mut primary, self.words.written).await;
            written == one(&mut replica, self.words.applied).await
        })
        .await;
        run(&mut replica, self.words.stop).await;
    }

    /// The primary is gone, and the replica takes its place at the same address.
    pub async fn promote(&mut self) {
        run(&mut connection(&self.replica).await, self.words.forget).await;
        self.switch.change(self.replica.port());
        drop(self.primary.take());
    }
}

async fn connection(server: &Mariadb) -> MySqlConnection {
    let options = MySqlConnectOptions::from_str(&server.url("mysql")).expect("an address");
    MySqlConnection::connect_with(&options).await.expect("the server answers")
}

async fn one(connection: &mut MySqlConnection, sql: &'static str) -> String {
    sqlx::query(sql).fetch_one(connection).await.expect(sql).get(0)
}
