//! Free ports on the loopback address.

use std::hash::{BuildHasher, RandomState};
use std::net::{Ipv4Addr, TcpListener};

use crate::task_error::TaskError;

/// Where servers listen: below the range from which systems take the ports of outgoing connections, so that a
/// server that is stopped for a while finds its port free when it comes back.
const FIRST: u16 = 20_000;
const COUNT: u16 = 12_000;

/// A port nobody listens on at this moment.
///
/// Somebody else may take it before the caller does: be ready to ask again.
pub fn free() -> Result<u16, TaskError> {
    let start = (RandomState::new().hash_one(FIRST) % u64::from(COUNT)) as u16;
    (0..COUNT)
        .map(|step| FIRST + (start + step) % COUNT)
        .find(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok())
        .ok_or_else(|| TaskError::new(format!("no port from {FIRST} to {} is free", FIRST + COUNT - 1)))
}
