//! Talking to a broker in its own protocol, as far as starting one and making topics needs it.
//!
//! Only versions without tagged fields are spoken: they are plain sequences of numbers and texts. This is no
//! client: the tests of Kafka destinations use a real one.

use std::io::{Error, ErrorKind, Read, Result, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

/// How long a broker may take to answer one request.
const PATIENCE: Duration = Duration::from_secs(30);

/// How long an answer may be; a longer one is no answer of a broker.
const LONGEST: usize = 16 * 1024 * 1024;

/// A request that a broker knows, in the version that is spoken here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Api {
    /// Which brokers and topics there are.
    Metadata,
    /// New topics.
    CreateTopics,
    /// Fewer topics.
    DeleteTopics,
    /// New rules on who may do what.
    CreateAcls,
    /// Fewer of them.
    DeleteAcls,
}

impl Api {
    /// Its number and version.
    fn key(self) -> (i16, i16) {
        match self {
            Self::Metadata => (3, 1),
            Self::CreateTopics => (19, 4),
            Self::DeleteTopics => (20, 1),
            Self::CreateAcls => (30, 1),
            Self::DeleteAcls => (31, 1),
        }
    }
}

/// Asks the broker on a loopback port, on a connection of its own.
pub fn call(port: u16, api: Api, request: &Request) -> Result<Answer> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;

    let (key, version) = api.key();
    let mut message = Request::default();
    // Then the number of the request, which the answer repeats, and no name of a client.
    message.int16(key).int16(version).int32(i32::from(key)).int16(-1);
    message.bytes.extend_from_slice(&request.bytes);
    let length = u32::try_from(message.bytes.len()).map_err(|_| malformed("a request that is too long"))?;
    stream.write_all(&[&length.to_be_bytes(), message.bytes.as_slice()].concat())?;

    let mut length = [0; 4];
    stream.read_exact(&mut length)?;
    let length = u32::from_be_bytes(length) as usize;
    if length > LONGEST {
        return Err(malformed("an answer that is too long"));
    }
    let mut bytes = vec![0; length];
    stream.read_exact(&mut bytes)?;
    let mut answer = Answer { bytes, at: 0 };
    if answer.int32()? != i32::from(key) {
        return Err(malformed("an answer to another request"));
    }
    Ok(answer)
}

/// What a request says, written field by field.
#[derive(Debug, Default)]
pub struct Request {
    bytes: Vec<u8>,
}

impl Request {
    /// A small number, or yes and no.
    pub fn int8(&mut self, value: i8) -> &mut Self {
        self.bytes.extend_from_slice(&value.to_be_bytes());
        self
    }

    /// A number of two bytes.
    pub fn int16(&mut self, value: i16) -> &mut Self {
        self.bytes.extend_from_slice(&value.to_be_bytes());
        self
    }

    /// A number of four bytes.
    pub fn int32(&mut self, value: i32) -> &mut Self {
        self.bytes.extend_from_slice(&value.to_be_bytes());
        self
    }

    /// A text, of which the protocol takes 32 kB at most.
    pub fn text(&mut self, value: &str) -> &mut Self {
        let bytes = &value.as_bytes()[..value.len().min(i16::MAX as usize)];
        self.int16(bytes.len() as i16);
        self.bytes.extend_from_slice(bytes);
        self
    }

    /// A list, each item written by `write`.
    pub fn list<T>(
        &mut self,
        items: &[T],
        write: impl for<'a> Fn(&'a mut Self, &T) -> &'a mut Self,
    ) -> &mut Self {
        self.int32(items.len() as i32);
        for item in items {
            write(self, item);
        }
        self
    }
}

/// What a broker answered, read field by field.
#[derive(Debug)]
pub struct Answer {
    bytes: Vec<u8>,
    at: usize,
}

impl Answer {
    /// A small number, or yes and no.
    pub fn int8(&mut self) -> Result<i8> {
        self.take().map(i8::from_be_bytes)
    }

    /// A number of two bytes.
    pub fn int16(&mut self) -> Result<i16> {
        self.take().map(i16::from_be_bytes)
    }

    /// A number of four bytes.
    pub fn int32(&mut self) -> Result<i32> {
        self.take().map(i32::from_be_bytes)
    }

    /// A text that may be missing.
    pub fn text(&mut self) -> Result<Option<String>> {
        let Ok(length) = usize::try_from(self.int16()?) else { return Ok(None) };
        let bytes = self.bytes.get(self.at..self.at + length).ok_or_else(cut_off)?;
        let text = String::from_utf8_lossy(bytes).into_owned();
        self.at += length;
        Ok(Some(text))
    }

    /// A list, each item read by `read`; one that is missing has no items.
    pub fn list<T>(&mut self, read: impl Fn(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        let length = self.int32()?;
        (0..length).map(|_| read(self)).collect()
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N]> {
        let bytes = self.bytes.get(self.at..).and_then(<[u8]>::first_chunk).ok_or_else(cut_off)?;
        self.at += N;
        Ok(*bytes)
    }
}

fn cut_off() -> Error {
    malformed("an answer that is cut off")
}

fn malformed(what: &str) -> Error {
    Error::new(ErrorKind::InvalidData, what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_read_as_it_was_written_and_no_further() {
        let mut request = Request::default();
        request
            .int8(1)
            .int16(-2)
            .int32(3)
            .text("four")
            .int16(-1)
            .list(&[5, 6], |list, item| list.int32(*item));
        let mut answer = Answer { bytes: request.bytes, at: 0 };
        assert_eq!(answer.int8().expect("a number"), 1);
        assert_eq!(answer.int16().expect("a number"), -2);
        assert_eq!(answer.int32().expect("a number"), 3);
        assert_eq!(answer.text().expect("a text"), Some("four".to_owned()));
        assert_eq!(answer.text().expect("no text"), None);
        assert_eq!(answer.list(Answer::int32).expect("a list"), [5, 6]);
        assert!(answer.int8().is_err());
    }
}
