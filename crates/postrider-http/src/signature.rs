//! The signature of Standard Webhooks.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use postrider_core::{Error, ErrorKind, Result};
use sha2::Sha256;

/// The key that signs requests. It is never printed.
///
/// ```
/// use postrider_http::{Http, Secret};
///
/// let secret = Secret::parse("whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3")?;
/// assert_eq!(format!("{secret:?}"), "Secret(hidden)");
/// let builder = Http::builder().sign(secret);
/// # Ok::<(), postrider::Error>(())
/// ```
#[derive(Clone)]
pub struct Secret(Vec<u8>);

impl Secret {
    /// Parses a secret of 24 to 64 bytes: base64, with or without the prefix `whsec_` of Standard Webhooks.
    pub fn parse(text: &str) -> Result<Self> {
        let text = text.trim();
        let key = STANDARD.decode(text.strip_prefix("whsec_").unwrap_or(text)).ok();
        match key {
            Some(key) if (24..=64).contains(&key.len()) => Ok(Self(key)),
            _ => {
                let message = "a signing secret must be `whsec_` followed by 24 to 64 bytes in base64 (the value is not shown)";
                Err(Error::new(ErrorKind::Invalid, "http", message))
            }
        }
    }

    /// The value of `webhook-signature`.
    pub(crate) fn sign(&self, id: &str, timestamp: i64, body: &[u8]) -> String {
        // A key of any length will do for HMAC.
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(&self.0) else { return String::new() };
        mac.update(format!("{id}.{timestamp}.").as_bytes());
        mac.update(body);
        format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(hidden)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of the Standard Webhooks specification's reference libraries.
    #[test]
    fn a_signature_is_the_one_that_others_make() {
        let secret = Secret::parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").expect("a secret");
        let signature =
            secret.sign("msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, br#"{"test": 2432232314}"#);
        assert_eq!(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    #[test]
    fn what_is_no_secret_is_refused_and_never_shown() {
        for text in ["", "whsec_", "whsec_short", "hunter2", "whsec_MfKQ9r8"] {
            let error = Secret::parse(text).expect_err(text).to_string();
            assert!(text.is_empty() || text == "whsec_" || !error.contains(text), "{error}");
        }
        let secret = Secret::parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").expect("a secret");
        assert_eq!(format!("{secret:?}"), "Secret(hidden)");
    }
}
