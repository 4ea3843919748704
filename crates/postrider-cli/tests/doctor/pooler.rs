//! What a pooler does to LISTEN: everything goes through but notifications.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// Passes connections on to a PostgreSQL, and swallows its notifications. Dropped, it ends.
pub(crate) struct Pooler {
    pub(crate) port: u16,
    task: JoinHandle<()>,
}

impl Pooler {
    pub(crate) async fn before(server: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let task = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let server = TcpStream::connect(("127.0.0.1", server)).await.expect("PostgreSQL answers");
                tokio::spawn(pass_on(client, server));
            }
        });
        Self { port, task }
    }
}

impl Drop for Pooler {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn pass_on(client: TcpStream, server: TcpStream) {
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    tokio::spawn(async move { tokio::io::copy(&mut from_client, &mut to_server).await });
    // A message of the server: a letter, its length with itself, and the rest. The answer to a request for TLS is a letter.
    let mut encrypted = true;
    loop {
        let mut letter = [0; 1];
        if from_server.read_exact(&mut letter).await.is_err() {
            return;
        }
        if std::mem::take(&mut encrypted) && letter == *b"N" {
            if to_client.write_all(&letter).await.is_err() {
                return;
            }
            continue;
        }
        let mut length = [0; 4];
        if from_server.read_exact(&mut length).await.is_err() {
            return;
        }
        let mut rest = vec![0; u32::from_be_bytes(length) as usize - 4];
        if from_server.read_exact(&mut rest).await.is_err() {
            return;
        }
        let message = [&letter[..], &length[..], &rest[..]].concat();
        if letter != *b"A" && to_client.write_all(&message).await.is_err() {
            return;
        }
    }
}
