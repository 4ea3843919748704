//! A proxy between relays and a broker that can be closed, and can lose the broker's answers.

use std::collections::HashSet;
use std::io::{self, ErrorKind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// The number of produce requests in Kafka's protocol.
const PRODUCE: [u8; 2] = [0, 0];

/// The way of relays to a broker on loopback. Dropped, nobody new can take it.
#[derive(Debug)]
pub struct Proxy {
    port: u16,
    state: Arc<State>,
    listening: JoinHandle<()>,
}

#[derive(Debug)]
struct State {
    /// Whether anybody comes through.
    open: watch::Sender<bool>,
    /// Whether answers to produce requests are lost.
    deaf: AtomicBool,
    /// How many were lost.
    lost: AtomicU64,
}

impl Proxy {
    /// A way to the broker at this port.
    pub async fn to(broker: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let port = listener.local_addr().expect("its address").port();
        let (deaf, lost) = (AtomicBool::new(false), AtomicU64::new(0));
        let state = Arc::new(State { open: watch::Sender::new(true), deaf, lost });
        let listening = tokio::spawn(listen(listener, broker, port, Arc::clone(&state)));
        Self { port, state, listening }
    }

    /// Its address, for relays.
    pub fn bootstrap(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// From now on, whether anybody comes through. Closed, it ends every connection: to a relay, the broker is away.
    pub fn open(&self, open: bool) {
        self.state.open.send_replace(open);
    }

    /// From now on, whether the answers to produce requests are lost: the broker has taken the records, and nobody hears of it.
    pub fn lose_answers(&self, lose: bool) {
        self.state.deaf.store(lose, Ordering::SeqCst);
    }

    /// How many answers were lost.
    pub fn lost(&self) -> u64 {
        self.state.lost.load(Ordering::SeqCst)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

/// The numbers of the produce requests of a connection that have no answer yet.
type Produces = Arc<Mutex<HashSet<[u8; 4]>>>;

async fn listen(listener: TcpListener, broker: u16, port: u16, state: Arc<State>) {
    while let Ok((relay, _)) = listener.accept().await {
        if !*state.open.borrow() {
            continue;
        }
        let Ok(there) = TcpStream::connect(("127.0.0.1", broker)).await else { continue };
        let ((from_relay, to_relay), (from_broker, to_broker)) = (relay.into_split(), there.into_split());
        let (produces, state) = (Produces::default(), Arc::clone(&state));
        let asked = Arc::clone(&produces);
        // It ends with its connection, or when the proxy is closed.
        tokio::spawn(async move {
            let mut open = state.open.subscribe();
            tokio::select! {
                _ = requests(from_relay, to_broker, &asked) => {}
                _ = answers(from_broker, to_relay, [broker, port], &produces, &state) => {}
                _ = open.wait_for(|open| !open) => {}
            }
        });
    }
}

async fn message(from: &mut OwnedReadHalf) -> io::Result<Vec<u8>> {
    let length = from.read_i32().await?;
    let length = usize::try_from(length).map_err(|_| io::Error::from(ErrorKind::InvalidData))?;
    let mut bytes = vec![0; length];
    from.read_exact(&mut bytes).await?;
    Ok(bytes)
}

async fn pass(bytes: &[u8], to: &mut OwnedWriteHalf) -> io::Result<()> {
    to.write_i32(bytes.len() as i32).await?;
    to.write_all(bytes).await
}

/// A request begins with its kind, its version and its number.
async fn requests(mut relay: OwnedReadHalf, mut broker: OwnedWriteHalf, asked: &Produces) -> io::Result<()> {
    loop {
        let request = message(&mut relay).await?;
        if let (Some(kind), Some(number)) = (request.get(..2), request.get(4..8))
            && kind == PRODUCE
        {
            let number = number.try_into().unwrap_or_default();
            asked.lock().unwrap_or_else(PoisonError::into_inner).insert(number);
        }
        pass(&request, &mut broker).await?;
    }
}

/// An answer begins with the number of its request. Where it names the broker's port, it names the proxy's: whoever asked goes on
/// asking here.
async fn answers(
    mut broker: OwnedReadHalf,
    mut relay: OwnedWriteHalf,
    ports: [u16; 2],
    asked: &Produces,
    state: &State,
) -> io::Result<()> {
    let [from, to] = ports.map(|port| [b"127.0.0.1".as_slice(), &i32::from(port).to_be_bytes()].concat());
    loop {
        let mut answer = message(&mut broker).await?;
        let number: [u8; 4] = answer.get(..4).and_then(|bytes| bytes.try_into().ok()).unwrap_or_default();
        let produced = asked.lock().unwrap_or_else(PoisonError::into_inner).remove(&number);
        if produced && state.deaf.load(Ordering::SeqCst) {
            state.lost.fetch_add(1, Ordering::SeqCst);
            continue;
        }
        for start in 0..(answer.len() + 1).saturating_sub(from.len()) {
            if answer[start..].starts_with(&from) {
                answer[start..start + to.len()].copy_from_slice(&to);
            }
        }
        pass(&answer, &mut relay).await?;
    }
}
