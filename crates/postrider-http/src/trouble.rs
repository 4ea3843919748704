//! What keeps an endpoint from being reached, as a sentence that says what to do.

use std::error::Error as StdError;

/// Why there is no connection: what is the matter, and what to do about it.
pub(crate) fn sentence(error: &dyn StdError) -> String {
    let reason = reason(error);
    let advice = ADVICE.iter().find(|(words, _)| words.iter().any(|word| reason.contains(word)));
    match advice {
        Some((_, advice)) => format!("{advice} ({reason})"),
        None => reason,
    }
}

const ADVICE: &[(&[&str], &str)] = &[
    (
        &["UnknownIssuer", "BadSignature", "CaUsedAsEndEntity"],
        "no authority that is trusted here has signed its certificate; give the certificate of the authority that has",
    ),
    (
        &["NotValidForName", "not valid for name"],
        "its certificate is for another name; use one that is in the certificate",
    ),
    (
        &["Expired", "NotValidYet"],
        "its certificate is not valid now; see its dates, and this machine's clock",
    ),
    (
        &["InvalidContentType", "corrupt message", "handshake eof"],
        "it speaks no TLS there; use http:// in its address, or the port that does",
    ),
    (&["refused"], "nobody listens there; check the address, and that the endpoint runs"),
    (&["lookup", "not known", "No address"], "there is no such name; check the address"),
];

/// The reason of an error, down to its root, without the address: that may hold a secret.
pub fn reason(error: &dyn StdError) -> String {
    let mut deepest = error;
    while let Some(source) = deepest.source() {
        deepest = source;
    }
    deepest.to_string()
}
