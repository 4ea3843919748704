//! An HTTP endpoint that remembers the CloudEvents that were posted to it.

use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};

use postrider_testkit::http::{self, Request};

use crate::fixture::IncomingEvent;

/// An endpoint on a free port. Its thread ends with the test's process.
pub(crate) struct Endpoint {
    address: SocketAddr,
    arrivals: Arc<Mutex<Vec<IncomingEvent>>>,
}

impl Endpoint {
    pub(crate) fn start() -> Self {
        let arrivals = Arc::new(Mutex::new(Vec::new()));
        let written = Arc::clone(&arrivals);
        let address = http::listen(move |stream| serve(stream, &written));
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
    let request = Request::read(stream)?;
    assert_eq!(request.header("ce-type"), Some("OrderPaid"), "a CloudEvent in binary form");
    let data = serde_json::from_slice(&request.body).expect("JSON");
    arrivals.lock().unwrap_or_else(PoisonError::into_inner).push(IncomingEvent::of(&data));
    stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").ok()
}
