//! What order is kept by, as a number.

use postrider_core::Recorded;

/// The hash of an event's key. Two keys of one hash are kept in order together, which harms neither.
pub(crate) fn key_hash(event: &Recorded) -> u64 {
    match &event.ordering_key {
        Some(key) => fold(START, key),
        None => fold(fold(fold(START, &event.aggregate_type), ":"), &event.aggregate_id),
    }
}

const START: u64 = 0xcbf2_9ce4_8422_2325;

fn fold(hash: u64, text: &str) -> u64 {
    text.bytes().fold(hash, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}
