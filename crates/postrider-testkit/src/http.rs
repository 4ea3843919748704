//! A client and a server of HTTP, as small as a test needs them.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

/// Sends a request without a body to `host:port`, and returns the whole answer; nothing if nobody answers.
pub fn request(method: &str, address: &str, path: &str) -> Option<String> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(5))).ok()?;
    write!(stream, "{method} {path} HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
        .ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    Some(answer)
}

/// Asks `host:port` for a path.
pub fn get(address: &str, path: &str) -> Option<String> {
    request("GET", address, path)
}

/// A request that an endpoint of a test has read.
#[derive(Debug)]
pub struct Request {
    /// Their names in lower case.
    headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

impl Request {
    /// The next request of a connection; nothing when the connection is over.
    pub fn read(stream: &TcpStream) -> Option<Self> {
        let mut reader = BufReader::new(stream);
        let mut headers = Vec::new();
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).ok()? == 0 {
                return None;
            }
            match line.trim().split_once(':') {
                Some((name, value)) => headers.push((name.to_ascii_lowercase(), value.trim().to_owned())),
                None if line.trim().is_empty() => break,
                None => {}
            }
        }
        let mut request = Self { headers, body: Vec::new() };
        let length = request.header("content-length").map_or(Some(0), |length| length.parse().ok())?;
        request.body = vec![0; length];
        reader.read_exact(&mut request.body).ok()?;
        Some(request)
    }

    /// A header, by its name in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(header, _)| header == name).map(|(_, value)| value.as_str())
    }
}

/// Starts an endpoint on a free port. `serve` takes one request of a connection and answers it; it gives nothing when the connection
/// is over. The threads end with the test's process.
pub fn listen(serve: impl Fn(&TcpStream) -> Option<()> + Clone + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let serve = serve.clone();
            // A client that went away in the middle of a request is no trouble of the endpoint's.
            std::thread::spawn(move || while serve(&stream).is_some() {});
        }
    });
    address
}
