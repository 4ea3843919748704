//! An HTTP endpoint that takes everything and keeps nothing.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};

use crate::AnyError;

/// Starts one on a free port: its address. Its threads end with the process.
pub(crate) fn start() -> Result<String, AnyError> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = format!("http://{}/", listener.local_addr()?);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || while serve(&stream).is_some() {});
        }
    });
    Ok(address)
}

/// Takes one request; nothing when the connection is over.
fn serve(mut stream: &TcpStream) -> Option<()> {
    let mut reader = BufReader::new(stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        let line = line.trim().to_ascii_lowercase();
        match line.split_once(':') {
            _ if line.is_empty() => break,
            Some(("content-length", value)) => length = value.trim().parse().ok()?,
            _ => {}
        }
    }
    std::io::copy(&mut reader.take(length), &mut std::io::sink()).ok()?;
    stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").ok()
}
