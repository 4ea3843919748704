//! One address for a database that moves from server to server, as a load balancer or a pooler gives it.
//!
//! Some cut their clients' connections when the server changes; some keep them, and give each a connection to the new server
//! behind its back. Both are here. What a statement means is not known here, only where messages begin and end.

mod message;
mod session;

use std::collections::HashMap;
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use session::Session;

/// How long connections may take to be where they are wanted.
const PATIENCE: Duration = Duration::from_secs(30);

/// What becomes of clients' connections when the server changes, or breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clients {
    /// They are cut, and connect anew.
    Cut,
    /// They never notice: each gets a connection to the new server between two statements, with its settings and prepared
    /// statements, and waits while there is no server. One that is in the middle of a transaction is cut.
    Kept,
}

/// What the connections are told.
#[derive(Debug, Clone)]
struct Orders {
    clients: Clients,
    port: u16,
    /// Which server it is, counted from 1.
    server: u64,
    /// A statement with this text in it is not passed on.
    hold: Option<String>,
    /// Counted up when connections are to look again.
    look: u64,
}

/// How a connection is doing.
#[derive(Debug, Clone, Copy, Default)]
struct Stand {
    server: u64,
    held: bool,
    quiet: bool,
}

/// What the connections say of themselves.
#[derive(Debug, Default)]
struct Board {
    stands: Mutex<HashMap<u64, Stand>>,
    /// How many statements that are to be held may pass.
    passes: AtomicU64,
}

impl Board {
    fn note(&self, session: u64, stand: Stand) {
        self.stands.lock().unwrap_or_else(PoisonError::into_inner).insert(session, stand);
    }

    fn gone(&self, session: u64) {
        self.stands.lock().unwrap_or_else(PoisonError::into_inner).remove(&session);
    }

    /// Whether a statement that is to be held may pass: each pass is for one.
    fn may_pass(&self) -> bool {
        let take = |passes: u64| passes.checked_sub(1);
        self.passes.fetch_update(Ordering::AcqRel, Ordering::Acquire, take).is_ok()
    }

    fn count(&self, which: impl Fn(&Stand) -> bool) -> usize {
        self.stands
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .values()
            .filter(|stand| which(stand))
            .count()
    }
}

/// A loopback address in front of a PostgreSQL server, and of the next one after it.
#[derive(Debug)]
pub struct Proxy {
    port: u16,
    orders: watch::Sender<Orders>,
    board: Arc<Board>,
    listening: JoinHandle<()>,
}

impl Proxy {
    /// Listens on a free port, in front of the server on `server`.
    pub async fn before(server: u16, clients: Clients) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a free port");
        let port = listener.local_addr().expect("its address").port();
        let (orders, told) = watch::channel(Orders { clients, port: server, server: 1, hold: None, look: 0 });
        let board = Arc::new(Board::default());
        let listening = tokio::spawn(listen(listener, told, Arc::clone(&board)));
        Self { port, orders, board, listening }
    }

    /// The address of a database behind it.
    pub fn url(&self, database: &str) -> String {
        format!("postgres://postgres@127.0.0.1:{}/{database}", self.port)
    }

    /// Leads to another server from now on, and waits until no connection leads to the old one.
    pub async fn lead_to(&self, server: u16) {
        self.orders.send_modify(|orders| {
            orders.port = server;
            orders.server += 1;
        });
        let number = self.orders.borrow().server;
        self.wait("connections still lead to the old server", |board| {
            board.count(|stand| stand.server != number) == 0
        })
        .await;
    }

    /// Passes on no statement with this text in it, and nothing behind it on its connection, until [`let_go`](Self::let_go).
    pub fn hold(&self, text: &str) {
        self.orders.send_modify(|orders| orders.hold = Some(text.to_owned()));
    }

    /// Waits until so many connections are held.
    pub async fn holds(&self, connections: usize) {
        self.wait("the statements to hold did not come", |board| {
            board.count(|stand| stand.held) >= connections
        })
        .await;
    }

    /// Passes on so many of the statements that are held, or that come, and holds those behind them.
    pub fn let_pass(&self, statements: u64) {
        self.board.passes.store(statements, Ordering::Release);
        self.orders.send_modify(|orders| orders.look += 1);
    }

    /// Waits until as many statements have passed as were let, and were answered.
    pub async fn passed(&self) {
        self.wait("what was let pass did not come", |board| {
            board.passes.load(Ordering::Acquire) == 0 && board.count(|stand| !stand.quiet) == 0
        })
        .await;
    }

    /// Passes on what was held.
    pub fn let_go(&self) {
        self.orders.send_modify(|orders| orders.hold = None);
    }

    async fn wait(&self, trouble: &str, done: impl Fn(&Board) -> bool) {
        let end = Instant::now() + PATIENCE;
        while !done(&self.board) {
            assert!(Instant::now() < end, "{trouble}, {PATIENCE:?} long");
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

async fn listen(listener: TcpListener, told: watch::Receiver<Orders>, board: Arc<Board>) {
    let next = AtomicU64::new(0);
    // Ended with this task: nothing is passed on by a proxy that is gone.
    let mut sessions = tokio::task::JoinSet::new();
    while let Ok((client, _)) = listener.accept().await {
        while sessions.try_join_next().is_some() {}
        let number = next.fetch_add(1, Ordering::Relaxed);
        let (told, board) = (told.clone(), Arc::clone(&board));
        sessions.spawn(async move {
            // A connection that broke is what clients of a proxy live with.
            let _ = Session::new(client, told, number, Arc::clone(&board)).run().await;
            board.gone(number);
        });
    }
}
