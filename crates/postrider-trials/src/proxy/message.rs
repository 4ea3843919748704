//! Messages of PostgreSQL's protocol: where they end, and of a few of them what they name.

/// What a client sends before anything else to ask for encryption.
pub(super) const SSL_REQUEST: u32 = 80_877_103;

/// The first whole message in `bytes`, with its type in front, if all of it is there.
pub(super) fn first(bytes: &[u8]) -> Option<&[u8]> {
    let length = u32::from_be_bytes(bytes.get(1..5)?.try_into().ok()?) as usize;
    bytes.get(..length + 1)
}

/// The first whole message of a connection, which has no type, if all of it is there.
pub(super) fn opening(bytes: &[u8]) -> Option<&[u8]> {
    let length = u32::from_be_bytes(bytes.get(..4)?.try_into().ok()?) as usize;
    bytes.get(..length)
}

/// The number after the length of an opening message: the version, or a request.
pub(super) fn code(opening: &[u8]) -> Option<u32> {
    Some(u32::from_be_bytes(opening.get(4..8)?.try_into().ok()?))
}

/// The texts at the beginning of a message's body, each ended by a zero.
pub(super) fn texts(body: &[u8]) -> impl Iterator<Item = String> {
    body.split(|byte| *byte == 0).map(|text| String::from_utf8_lossy(text).into_owned())
}

/// A `Sync`.
pub(super) const SYNC: [u8; 5] = [b'S', 0, 0, 0, 4];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_taken_only_when_it_is_whole() {
        let bytes = [b'Q', 0, 0, 0, 7, b'a', b'b', 0, b'S', 0];
        assert_eq!(first(&bytes), Some(&bytes[..8]));
        assert_eq!(first(&bytes[..7]), None);
        assert_eq!(first(&bytes[8..]), None);
        assert_eq!(texts(&bytes[5..8]).next().as_deref(), Some("ab"));
    }
}
