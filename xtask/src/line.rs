//! A line to a server that can fall silent: its connections stay open, and nothing comes through any more.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// A line to a server. Dropped, it takes no new connections.
#[derive(Debug)]
pub struct Line {
    port: u16,
    state: Arc<State>,
}

#[derive(Debug, Default)]
struct State {
    /// How many connections there were.
    begun: AtomicU64,
    /// Connections with lower numbers are silent.
    silent_below: AtomicU64,
    /// Whether new connections are silent.
    silent: AtomicBool,
    /// After how many bytes of answers a connection falls silent; 0 for never.
    most: AtomicU64,
    /// How many clients keep a connection that is silent.
    kept: AtomicUsize,
    /// The server's ends of connections whose clients have gone without a word.
    left: Mutex<Vec<TcpStream>>,
    ended: AtomicBool,
}

impl Line {
    /// A line to the server at this address, which lets everything through.
    pub fn to(server: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let port = listener.local_addr()?.port();
        let state = Arc::new(State::default());
        let told = Arc::clone(&state);
        std::thread::spawn(move || listen(&listener, server, &told));
        Ok(Self { port, state })
    }

    /// A line to the server that an address such as `postgres://user@127.0.0.1:5432/shop` names, and the address of the same by this line.
    pub fn before(url: &str) -> io::Result<(Self, String)> {
        let wrong = || io::Error::other(format!("{url} names no host and port"));
        let (head, rest) = url.split_once('@').ok_or_else(wrong)?;
        let (host, tail) = rest.split_once('/').ok_or_else(wrong)?;
        let line = Self::to(host.parse().map_err(|_| wrong())?)?;
        let through = format!("{head}@127.0.0.1:{}/{tail}", line.port);
        Ok((line, through))
    }

    /// The port that it is reached by, on the loopback address.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// From now on nothing comes through, on no connection, new ones included.
    pub fn fall_silent(&self) {
        self.state.silent.store(true, Ordering::SeqCst);
        self.state.silent_below.store(self.state.begun.load(Ordering::SeqCst), Ordering::SeqCst);
    }

    /// From now on new connections work. Those that are silent stay so.
    pub fn let_new_ones_through(&self) {
        self.state.silent.store(false, Ordering::SeqCst);
    }

    /// Every new connection falls silent after so many bytes of answers.
    pub fn fall_silent_after(&self, bytes: u64) {
        self.state.most.store(bytes, Ordering::SeqCst);
    }

    /// How many clients keep a connection that is silent.
    pub fn kept(&self) -> usize {
        self.state.kept.load(Ordering::SeqCst)
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.state.ended.store(true, Ordering::SeqCst);
        // It looks at that when somebody comes.
        let _ = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port));
    }
}

fn listen(listener: &TcpListener, server: SocketAddr, state: &Arc<State>) {
    while let Ok((client, _)) = listener.accept() {
        if state.ended.load(Ordering::SeqCst) {
            return;
        }
        let number = state.begun.fetch_add(1, Ordering::SeqCst);
        if state.silent.load(Ordering::SeqCst) {
            state.silent_below.fetch_max(number + 1, Ordering::SeqCst);
        }
        let state = Arc::clone(state);
        std::thread::spawn(move || {
            let Ok(there) = TcpStream::connect(server) else { return };
            let (Ok(from_client), Ok(to_server)) = (client.try_clone(), there.try_clone()) else { return };
            let _ = (client.set_nodelay(true), there.set_nodelay(true));
            let silent = Arc::new(AtomicBool::new(false));
            let (asked, told) = (Arc::clone(&silent), Arc::clone(&state));
            std::thread::spawn(move || questions(from_client, to_server, number, &asked, &told));
            answers(there, client, number, &silent, &state);
        });
    }
}

impl State {
    /// Whether a connection is silent; noted once.
    fn is_silent(&self, number: u64, silent: &AtomicBool) -> bool {
        if number < self.silent_below.load(Ordering::SeqCst) && !silent.swap(true, Ordering::SeqCst) {
            self.kept.fetch_add(1, Ordering::SeqCst);
        }
        silent.load(Ordering::SeqCst)
    }
}

/// What a client asks, until it goes away.
fn questions(mut client: TcpStream, mut server: TcpStream, number: u64, silent: &AtomicBool, state: &State) {
    let mut bytes = vec![0; 1 << 16];
    loop {
        let read = client.read(&mut bytes).unwrap_or(0);
        let is_silent = state.is_silent(number, silent);
        if read == 0 {
            if is_silent {
                state.kept.fetch_sub(1, Ordering::SeqCst);
                // The server is not told.
                state.left.lock().unwrap_or_else(PoisonError::into_inner).push(server);
            } else {
                let _ = server.shutdown(std::net::Shutdown::Both);
            }
            return;
        }
        if !is_silent && server.write_all(&bytes[..read]).is_err() {
            let _ = client.shutdown(std::net::Shutdown::Both);
            return;
        }
    }
}

/// What the server answers.
fn answers(mut server: TcpStream, mut client: TcpStream, number: u64, silent: &AtomicBool, state: &State) {
    let (mut bytes, mut passed) = (vec![0; 1 << 16], 0);
    let most = state.most.load(Ordering::SeqCst);
    loop {
        let read = server.read(&mut bytes).unwrap_or(0);
        if most > 0 && passed >= most && !silent.swap(true, Ordering::SeqCst) {
            state.kept.fetch_add(1, Ordering::SeqCst);
        }
        let is_silent = state.is_silent(number, silent);
        if read == 0 {
            if !is_silent {
                let _ = client.shutdown(std::net::Shutdown::Both);
            }
            return;
        }
        passed += read as u64;
        if !is_silent && client.write_all(&bytes[..read]).is_err() {
            let _ = server.shutdown(std::net::Shutdown::Both);
            return;
        }
    }
}
