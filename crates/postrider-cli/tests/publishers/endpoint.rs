//! An HTTP endpoint that remembers the CloudEvents that were posted to it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};

use crate::fixture::IncomingEvent;

/// An endpoint on a free port. Its thread ends with the test's process.
pub(crate) struct Endpoint {
    address: SocketAddr,
    arrivals: Arc<Mutex<Vec<IncomingEvent>>>,
}

impl Endpoint {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let arrivals = Arc::new(Mutex::new(Vec::new()));
        let written = Arc::clone(&arrivals);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let written = Arc::clone(&written);
                // A relay that went away in the middle of a request is no trouble of the endpoint's.
                std::thread::spawn(move || while serve(&stream, &written).is_some() {});
            }
        });
        Self { address, arrivals }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/events", self.address)
    }

    pub(crate) fn arrivals(&self) -> Vec<IncomingEvent> {
        self.arrivals.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Takes one request; nothing when the connection is over.
fn serve(mut stream: &TcpStream, arrivals: &Mutex<Vec<IncomingEvent>>) -> Option<()> {
    let mut reader = BufReader::new(stream);
    let (mut length, mut event_type) = (0, String::new());
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        let line = line.trim().to_ascii_lowercase();
        match line.split_once(':') {
            _ if line.is_empty() => break,
            Some(("content-length", value)) => length = value.trim().parse().ok()?,
            Some(("ce-type", value)) => value.trim().clone_into(&mut event_type),
            _ => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    assert_eq!(event_type, "orderpaid", "a CloudEvent in binary form");
    let data = serde_json::from_slice(&body).expect("JSON");
    arrivals.lock().unwrap_or_else(PoisonError::into_inner).push(IncomingEvent::of(&data));
    stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").ok()
}
