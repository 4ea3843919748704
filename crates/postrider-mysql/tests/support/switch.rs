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

use super::{run, until};

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
}

impl Pair {
    pub async fn start() -> Self {
        let settings =
            |id| [("log-bin", "1"), ("server-id", id), ("binlog-format", "ROW"), ("log-slave-updates", "1")];
        let primary = Mariadb::create(&settings("1")).expect("a primary");
        let replica = Mariadb::create(&settings("2")).expect("a replica");
        let follow = format!(
            "change master to master_host = '127.0.0.1', master_port = {}, master_user = 'root', master_use_gtid = slave_pos; \
             start slave",
            primary.port()
        );
        run(&mut connection(&replica).await, &follow).await;
        let switch = Switch::to(primary.port()).await;
        Self { primary: Some(primary), replica, switch }
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
        until("the replica has caught up", Duration::from_secs(30), async || {
            let written: String = one(&mut primary, "select @@gtid_binlog_pos").await;
            written == one(&mut replica, "select @@gtid_slave_pos").await
        })
        .await;
        run(&mut replica, "stop slave").await;
    }

    /// The primary is gone, and the replica takes its place at the same address.
    pub async fn promote(&mut self) {
        run(&mut connection(&self.replica).await, "reset slave all").await;
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
