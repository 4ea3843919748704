//! One client's connection through the proxy.

use std::collections::HashMap;
use std::io::{Error, ErrorKind, Result};
use std::net::Ipv4Addr;
use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::watch;

use super::message::{SSL_REQUEST, SYNC, code, first, opening, texts};
use super::{Board, Clients, Orders, Stand};

/// What a session has set for itself, by the text of the statement that did it: it is done again on the next server.
const SETTINGS: [&str; 3] = ["set_config(", "LISTEN ", "SET "];

pub(super) struct Session {
    client: TcpStream,
    server: Option<TcpStream>,
    orders: watch::Receiver<Orders>,
    number: u64,
    board: Arc<Board>,
    /// The server that it leads to.
    leads_to: u64,
    startup: Vec<u8>,
    /// The `Parse` of each prepared statement, by its name.
    statements: HashMap<String, Vec<u8>>,
    /// The text of each.
    texts: HashMap<String, String>,
    /// What set something for the session, in order.
    settings: Vec<Vec<u8>>,
    /// What the client sent since its last `Sync`, and whether that sets something.
    cycle: Vec<u8>,
    setting: bool,
    /// What the client and the server sent that is not whole yet, or held.
    from_client: Vec<u8>,
    from_server: Vec<u8>,
    /// How many answers are outstanding.
    asked: usize,
    /// The server's last word on its transaction: `I` is none.
    status: u8,
    held: bool,
}

impl Session {
    pub(super) fn new(
        client: TcpStream,
        orders: watch::Receiver<Orders>,
        number: u64,
        board: Arc<Board>,
    ) -> Self {
        Self {
            client,
            server: None,
            orders,
            number,
            board,
            leads_to: 0,
            startup: Vec::new(),
            statements: HashMap::new(),
            texts: HashMap::new(),
            settings: Vec::new(),
            cycle: Vec::new(),
            setting: false,
            from_client: Vec::new(),
            from_server: Vec::new(),
            asked: 0,
            status: b'I',
            held: false,
        }
    }

    pub(super) async fn run(mut self) -> Result<()> {
        self.client.set_nodelay(true)?;
        self.open().await?;
        let (mut here, mut there) = ([0; 16384], [0; 16384]);
        loop {
            self.obey().await?;
            self.pass_on().await?;
            self.board
                .note(self.number, Stand { server: self.leads_to, held: self.held, quiet: self.is_quiet() });
            let listens = !self.held && self.server.is_some();
            tokio::select! {
                changed = self.orders.changed() => changed.map_err(|_| broken("the proxy is gone"))?,
                count = self.client.read(&mut here), if listens => match count? {
                    0 => return Ok(()),
                    count => self.from_client.extend(&here[..count]),
                },
                count = read(&mut self.server, &mut there) => match count {
                    Ok(count @ 1..) => self.answer(&there[..count]).await?,
                    _ if self.orders.borrow().clients == Clients::Kept && self.is_quiet() => self.server = None,
                    _ => return Err(broken("the server is gone")),
                },
            }
        }
    }

    /// Takes the client's opening message, and connects it.
    async fn open(&mut self) -> Result<()> {
        let mut bytes = [0; 4096];
        loop {
            while let Some(message) = opening(&self.from_client).map(<[u8]>::to_vec) {
                self.from_client.drain(..message.len());
                if code(&message) == Some(SSL_REQUEST) {
                    self.client.write_all(b"N").await?;
                    continue;
                }
                self.startup = message;
                let orders = self.orders.borrow_and_update().clone();
                let mut server = connect(orders.port).await?;
                server.write_all(&self.startup).await?;
                (self.server, self.leads_to, self.asked) = (Some(server), orders.server, 1);
                return Ok(());
            }
            match self.client.read(&mut bytes).await? {
                0 => return Err(broken("the client is gone")),
                count => self.from_client.extend(&bytes[..count]),
            }
        }
    }

    /// Whether it could go on with another server: nothing is under way.
    fn is_quiet(&self) -> bool {
        self.asked == 0 && self.cycle.is_empty() && self.status == b'I'
    }

    /// Goes over to another server, if that is wanted and possible now.
    async fn obey(&mut self) -> Result<()> {
        let orders = self.orders.borrow_and_update().clone();
        if orders.server == self.leads_to {
            return Ok(());
        }
        match orders.clients {
            Clients::Cut => Err(broken("clients are cut")),
            Clients::Kept if self.is_quiet() => {
                self.server = Some(self.take_along(orders.port).await?);
                self.from_server.clear();
                self.leads_to = orders.server;
                Ok(())
            }
            // After the answer that is under way; or never, if its server is gone.
            Clients::Kept => Ok(()),
        }
    }

    /// A connection to the server on `port` on which the session is as it was.
    async fn take_along(&self, port: u16) -> Result<TcpStream> {
        let mut server = connect(port).await?;
        let mut all = self.startup.clone();
        let mut answers = 1;
        for parse in self.statements.values() {
            all.extend(parse);
            all.extend(SYNC);
            answers += 1;
        }
        for setting in &self.settings {
            all.extend(setting);
            answers += 1;
        }
        server.write_all(&all).await?;
        let (mut bytes, mut said) = ([0; 16384], Vec::new());
        while answers > 0 {
            match server.read(&mut bytes).await? {
                0 => return Err(broken("the new server is gone")),
                count => said.extend(&bytes[..count]),
            }
            while let Some(message) = first(&said) {
                answers -= usize::from(message[0] == b'Z');
                let length = message.len();
                said.drain(..length);
            }
        }
        Ok(server)
    }

    /// Passes on what the client has sent, up to what is held.
    async fn pass_on(&mut self) -> Result<()> {
        let hold = self.orders.borrow().hold.clone();
        self.held = false;
        let mut out = Vec::new();
        let Some(server) = &mut self.server else { return Ok(()) };
        while let Some(message) = first(&self.from_client).map(<[u8]>::to_vec) {
            let (kind, body) = (message[0], &message[5..]);
            let text = match kind {
                // The name of the portal comes first.
                b'B' => texts(body).nth(1).and_then(|name| self.texts.get(&name).cloned()),
                b'Q' => texts(body).next(),
                _ => None,
            };
            if let (Some(text), Some(hold)) = (&text, &hold)
                && text.contains(hold)
                && !self.board.may_pass()
            {
                self.held = true;
                break;
            }
            self.from_client.drain(..message.len());
            match kind {
                b'P' => {
                    let mut named = texts(body);
                    let (name, text) = (named.next().unwrap_or_default(), named.next().unwrap_or_default());
                    self.texts.insert(name.clone(), text);
                    self.statements.insert(name, message.clone());
                }
                b'C' if body.first() == Some(&b'S') => {
                    let name = texts(&body[1..]).next().unwrap_or_default();
                    self.statements.remove(&name);
                    self.texts.remove(&name);
                }
                _ => {}
            }
            self.setting |= text.is_some_and(|text| SETTINGS.iter().any(|setting| text.contains(setting)));
            self.cycle.extend(&message);
            if matches!(kind, b'S' | b'Q') {
                self.asked += 1;
                let cycle = std::mem::take(&mut self.cycle);
                // What a transaction sets for itself ends with it.
                if std::mem::take(&mut self.setting) && self.status == b'I' {
                    self.settings.push(cycle);
                }
            }
            out.extend(&message);
        }
        if !out.is_empty() {
            server.write_all(&out).await?;
        }
        Ok(())
    }

    /// Passes on what the server has sent.
    async fn answer(&mut self, bytes: &[u8]) -> Result<()> {
        self.from_server.extend(bytes);
        let keeps = self.orders.borrow().clients == Clients::Kept;
        let mut out = Vec::new();
        while let Some(message) = first(&self.from_server).map(<[u8]>::to_vec) {
            self.from_server.drain(..message.len());
            // A server that ends tells those who asked for nothing: they are to be kept.
            if message[0] == b'E' && keeps && self.is_quiet() {
                continue;
            }
            if message[0] == b'Z' {
                self.asked = self.asked.saturating_sub(1);
                self.status = message.get(5).copied().unwrap_or(b'I');
            }
            out.extend(message);
        }
        self.client.write_all(&out).await
    }
}

async fn connect(port: u16) -> Result<TcpStream> {
    let server = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await?;
    server.set_nodelay(true)?;
    Ok(server)
}

/// Reads from the server; while there is none, never.
async fn read(server: &mut Option<TcpStream>, bytes: &mut [u8]) -> Result<usize> {
    match server {
        Some(server) => server.read(bytes).await,
        None => std::future::pending().await,
    }
}

fn broken(why: &str) -> Error {
    Error::new(ErrorKind::ConnectionAborted, why)
}
