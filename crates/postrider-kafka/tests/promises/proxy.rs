//! A proxy between a relay and its broker, that can stop in the middle of a request.

use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Small, so that little of a request is in the hands of the system while the proxy reads nothing.
const BUFFER: u32 = 4096;
/// The number of produce requests in Kafka's protocol.
const PRODUCE: [u8; 2] = [0, 0];

/// One relay's way to a broker. Dropped, nobody new can take it.
pub(crate) struct Proxy {
    port: u16,
    gate: Arc<Gate>,
    listening: JoinHandle<()>,
}

struct Gate {
    open: watch::Sender<bool>,
    /// How many produce requests have begun to come through and are not whole.
    half: AtomicI64,
}

impl Proxy {
    /// An open way to the broker at this port.
    pub(crate) fn to(broker: u16) -> io::Result<Self> {
        let socket = TcpSocket::new_v4()?;
        socket.set_recv_buffer_size(BUFFER)?;
        socket.bind(([127, 0, 0, 1], 0).into())?;
        let listener = socket.listen(64)?;
        let port = listener.local_addr()?.port();
        let gate = Arc::new(Gate { open: watch::Sender::new(true), half: AtomicI64::new(0) });
        let listening = tokio::spawn(listen(listener, broker, port, Arc::clone(&gate)));
        Ok(Self { port, gate, listening })
    }

    pub(crate) fn bootstrap(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// From here on a produce request comes through with its first bytes only, and nothing behind it.
    pub(crate) fn shut(&self) {
        self.gate.open.send_replace(false);
    }

    pub(crate) fn open(&self) {
        self.gate.open.send_replace(true);
    }

    /// Whether part of a produce request has come through, and the rest has not.
    pub(crate) fn has_half_a_request(&self) -> bool {
        self.gate.half.load(Ordering::SeqCst) > 0
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

async fn listen(listener: TcpListener, broker: u16, port: u16, gate: Arc<Gate>) {
    while let Ok((relay, _)) = listener.accept().await {
        let Ok(there) = TcpStream::connect(("127.0.0.1", broker)).await else { continue };
        let ((from_relay, to_relay), (from_broker, to_broker)) = (relay.into_split(), there.into_split());
        let gate = Arc::clone(&gate);
        // Each ends with its connection.
        tokio::spawn(async move { requests(from_relay, to_broker, &gate).await });
        tokio::spawn(async move { answers(from_broker, to_relay, broker, port).await });
    }
}

/// The length of what follows, which begins with so many bytes at least.
fn length(bytes: [u8; 4], least: usize) -> io::Result<usize> {
    let length = usize::try_from(i32::from_be_bytes(bytes)).ok().filter(|length| *length >= least);
    length.ok_or_else(|| ErrorKind::InvalidData.into())
}

async fn requests(mut relay: OwnedReadHalf, mut broker: OwnedWriteHalf, gate: &Gate) -> io::Result<()> {
    let mut piece = vec![0; BUFFER as usize];
    loop {
        let (mut size, mut kind) = ([0; 4], [0; 2]);
        relay.read_exact(&mut size).await?;
        relay.read_exact(&mut kind).await?;
        broker.write_all(&[&size[..], &kind[..]].concat()).await?;
        if kind == PRODUCE {
            gate.half.fetch_add(1, Ordering::SeqCst);
            let _ = gate.open.subscribe().wait_for(|open| *open).await;
        }
        let mut left = length(size, kind.len())? - kind.len();
        while left > 0 {
            let most = left.min(piece.len());
            let read = match relay.read(&mut piece[..most]).await? {
                0 => return Ok(()),
                read => read,
            };
            broker.write_all(&piece[..read]).await?;
            left -= read;
        }
        if kind == PRODUCE {
            gate.half.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

/// Passes answers on. Where they name the broker's port, they name the proxy's: whoever asked goes on asking here.
async fn answers(mut broker: OwnedReadHalf, mut relay: OwnedWriteHalf, from: u16, to: u16) -> io::Result<()> {
    let address = |port: u16| [b"127.0.0.1".as_slice(), &i32::from(port).to_be_bytes()].concat();
    let (from, to) = (address(from), address(to));
    loop {
        let mut size = [0; 4];
        broker.read_exact(&mut size).await?;
        let mut answer = vec![0; length(size, 0)?];
        broker.read_exact(&mut answer).await?;
        for start in 0..(answer.len() + 1).saturating_sub(from.len()) {
            if answer[start..].starts_with(&from) {
                answer[start..start + to.len()].copy_from_slice(&to);
            }
        }
        relay.write_all(&size).await?;
        relay.write_all(&answer).await?;
    }
}
