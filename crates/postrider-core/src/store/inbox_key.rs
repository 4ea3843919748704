//! Text keys of the inbox, hashed to an id.

use uuid::Uuid;

use crate::{Error, ErrorKind, Limits, Result};

/// The namespace of these ids. It must never change: the marks of earlier versions would be unknown.
const NAMESPACE: Uuid = Uuid::from_u128(0x5f6c_1d0e_8a57_4e0b_9c3d_2b71_d4a6_0e93);

/// The id under which an inbox marks a text key: a UUID of version 5, in a namespace of Postrider's own.
///
/// *Guarantees*: the same text has the same id, on every store, in every version and in every process; two texts have the same id only if
/// their SHA-1 hashes agree in 122 bits. No event has such an id. Texts are compared byte for byte: case, spaces and Unicode forms
/// count. *Caller must*: give 1 to 500 bytes without a NUL character. *On failure*: [`Invalid`](ErrorKind::Invalid); the text is not
/// quoted.
///
/// ```
/// use postrider_core::inbox_key;
///
/// assert_eq!(inbox_key("T-17:A-4")?, inbox_key("T-17:A-4")?);
/// assert_ne!(inbox_key("T-17:A-4")?, inbox_key("t-17:a-4")?);
/// # Ok::<(), postrider_core::Error>(())
/// ```
pub fn inbox_key(key: &str) -> Result<Uuid> {
    if key.is_empty() || key.len() > Limits::KEY || key.contains('\0') {
        let message = format!(
            "a key of an inbox must have 1 to {} bytes and no NUL character, but this one has {} bytes; use a hash of a longer text",
            Limits::KEY,
            key.len()
        );
        return Err(Error::new(ErrorKind::Invalid, "inbox", message));
    }
    Ok(Uuid::new_v5(&NAMESPACE, key.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A mark of today must be found by every later version.
    #[test]
    fn a_key_has_the_id_that_it_always_had() {
        let id = inbox_key("T-17:A-4").expect("a key");
        assert_eq!(id.to_string(), "299e540b-05d6-590f-aa2b-1307ede6942c");
        assert_eq!(id.get_version_num(), 5);
    }

    #[test]
    fn keys_are_compared_byte_for_byte() {
        let alike = ["a:b", "A:b", "a:b ", " a:b", "a:B", "\u{e9}", "e\u{301}"];
        let ids: std::collections::HashSet<Uuid> =
            alike.iter().map(|key| inbox_key(key).expect("a key")).collect();
        assert_eq!(ids.len(), alike.len());
    }

    #[test]
    fn a_key_that_is_empty_or_too_long_is_refused_and_not_quoted() {
        inbox_key(&"k".repeat(Limits::KEY)).expect("the longest");
        for key in [String::new(), "secret".repeat(100), "secret\0".to_owned()] {
            let error = inbox_key(&key).expect_err("refused").to_string();
            assert!(error.contains("1 to 500 bytes") && !error.contains("secret"), "{error}");
        }
    }
}
