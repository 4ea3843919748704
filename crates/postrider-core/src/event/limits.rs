//! How large the parts of an event may be.

use crate::{Error, ErrorKind, Payload, Result};

/// The limits that `record` checks before anything reaches the database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// The largest payload in bytes. Default: 1 MiB.
    pub payload: usize,
    /// The largest size of all headers together, as JSON, in bytes. Default: 64 KiB.
    pub headers: usize,
}

impl Limits {
    /// The default largest payload in bytes: 1 MiB. It is also the limit of a new log.
    pub const PAYLOAD: usize = 1 << 20;
    /// The longest stream, event type and aggregate type, in bytes. The tables have the same limit.
    pub const NAME: usize = 200;
    /// The longest aggregate id and ordering key, in bytes. The tables have the same limit.
    pub const KEY: usize = 500;

    /// Checks that an inbox can keep the name of a consumer.
    pub fn check_consumer(consumer: &str) -> Result<()> {
        if consumer.is_empty() || consumer.len() > Self::NAME || consumer.contains('\0') {
            let message =
                format!("a consumer's name must have 1 to {} bytes and no NUL character", Self::NAME);
            return Err(Error::new(ErrorKind::Invalid, "inbox", message));
        }
        Ok(())
    }

    pub(crate) fn check_text(what: &str, value: &str, longest: usize) -> Result<()> {
        let problem = if value.is_empty() {
            "must not be empty".to_owned()
        } else if value.len() > longest {
            format!("has {} bytes; at most {longest} are allowed", value.len())
        } else if value.contains('\0') {
            "must not contain a NUL character".to_owned()
        } else {
            return Ok(());
        };
        Err(Error::new(ErrorKind::Invalid, "record", format!("the {what} {problem}")))
    }

    pub(crate) fn check_payload(&self, payload: &Payload) -> Result<()> {
        let size = payload.as_bytes().len();
        if size > self.payload {
            return Err(Error::new(
                ErrorKind::Invalid,
                "record",
                format!(
                    "the payload has {size} bytes, more than the limit of {}; raise the limit or store it elsewhere and record a reference",
                    self.payload
                ),
            ));
        }
        Ok(())
    }

    pub(crate) fn check_headers(&self, json: &str) -> Result<()> {
        if json.len() > self.headers {
            return Err(Error::new(
                ErrorKind::Invalid,
                "record",
                format!("the headers have {} bytes, more than the limit of {}", json.len(), self.headers),
            ));
        }
        Ok(())
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self { payload: Self::PAYLOAD, headers: 64 << 10 }
    }
}
