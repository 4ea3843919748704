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
        "its certificate is not signed by a trusted authority; set `authority` to the certificate of the authority that signed it",
    ),
    (
        &["NotValidForName", "not valid for name"],
        "its certificate is for another host name; use a name that the certificate contains",
    ),
    (
        &["Expired", "NotValidYet"],
        "its certificate has expired or is not valid yet; check its dates and the clock of this machine",
    ),
    (
        &["InvalidContentType", "corrupt message", "handshake eof"],
        "it does not use TLS on this port; use http:// in the URL, or another port",
    ),
    (&["refused"], "connection refused; check the URL, and that the endpoint is running"),
    (&["lookup", "not known", "No address"], "the host name does not exist; check the URL"),
];

/// The reason of an error, down to its root, without the address: that may hold a secret.
pub fn reason(error: &dyn StdError) -> String {
    let mut deepest = error;
    while let Some(source) = deepest.source() {
        deepest = source;
    }
    deepest.to_string()
}
