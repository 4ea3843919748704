//! Errors that librdkafka reports, as sentences that say what to do.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use rdkafka::config::RDKafkaLogLevel;
use rdkafka::error::KafkaError;
use rdkafka::types::RDKafkaErrorCode as Code;

/// An error that librdkafka reported.
#[derive(Debug, Clone)]
pub(crate) struct ClientError {
    code: Option<Code>,
    reason: String,
    pub(crate) at: Instant,
}

/// The last error that a client reported.
#[derive(Default)]
pub(crate) struct ClientErrors(Mutex<Option<ClientError>>);

impl ClientErrors {
    fn lock(&self) -> MutexGuard<'_, Option<ClientError>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hears an error of the client.
    pub(crate) fn hear(&self, error: &KafkaError, reason: &str) {
        tracing::debug!(error = %error, "{reason}");
        let new = ClientError::new(error.rdkafka_error_code(), reason);
        let mut last = self.lock();
        // That all of them are down says less than why the first of them is.
        if last.is_none() || !new.is_summary() {
            *last = Some(new);
        }
    }

    /// Hears what the client writes into its log.
    pub(crate) fn read(&self, level: RDKafkaLogLevel, facility: &str, message: &str) {
        tracing::debug!(level = ?level, facility, "{message}");
        // What is worse comes as an error too, with its code.
        if matches!(level, RDKafkaLogLevel::Warning | RDKafkaLogLevel::Notice | RDKafkaLogLevel::Info)
            && let Some(new) = ClientError::logged(facility, message)
        {
            let mut last = self.lock();
            if last.as_ref().is_none_or(|old| !old.is_lasting()) {
                *last = Some(new);
            }
        }
    }

    /// The last one.
    pub(crate) fn last(&self) -> Option<ClientError> {
        self.lock().clone()
    }

    /// The last one, and what to do about it.
    pub(crate) fn sentence(&self) -> Option<String> {
        self.last().map(|error| error.sentence())
    }

    /// The brokers have answered: what was complained of before is over.
    pub(crate) fn clear(&self) {
        *self.lock() = None;
    }
}

/// What is the matter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ErrorCause {
    /// Nothing listens at the address.
    Absent,
    /// There is no such name.
    Unknown,
    /// The user or its password is wrong.
    Login,
    /// The brokers want another way to log in.
    Mechanism,
    /// The certificate is for another name.
    Name,
    /// The certificate can't be verified; it may be its name, or who signed it.
    Certificate,
    /// It speaks no TLS there.
    Plain,
    /// It hangs up: it speaks TLS, or wants a login.
    Hangs,
    /// The brokers want a certificate of ours, or something else is wrong with TLS.
    Tls,
    /// Anything else.
    Other,
}

impl ClientError {
    pub(crate) fn new(code: Option<Code>, reason: &str) -> Self {
        Self { code, reason: reason.to_owned(), at: Instant::now() }
    }

    /// What the client only writes into its log: that a connection was closed, and what it thinks of it.
    pub(crate) fn logged(facility: &str, message: &str) -> Option<Self> {
        let reason = message.split_once("]: ").map_or(message, |(_, reason)| reason);
        (facility == "FAIL").then(|| Self::new(Some(Code::BrokerTransportFailure), reason))
    }

    /// Whether it is of the whole rather than of one broker: such says less.
    pub(crate) fn is_summary(&self) -> bool {
        self.code == Some(Code::AllBrokersDown)
    }

    /// Whether waiting does not help.
    pub(crate) fn is_lasting(&self) -> bool {
        matches!(self.code, Some(Code::Authentication | Code::SSL))
    }

    /// What is the matter.
    pub(crate) fn cause(&self) -> ErrorCause {
        let says = |words: &[&str]| words.iter().any(|word| self.reason.contains(word));
        match self.code {
            Some(Code::Resolve) => ErrorCause::Unknown,
            Some(Code::Authentication) if says(&["mechanism handshake failed"]) => ErrorCause::Mechanism,
            Some(Code::Authentication) => ErrorCause::Login,
            Some(Code::SSL) if says(&["mismatch"]) => ErrorCause::Name,
            Some(Code::SSL) if says(&["certificate verify failed", "verify broker certificate"]) => {
                ErrorCause::Certificate
            }
            _ if says(&["wrong version number", "PLAINTEXT broker listener"]) => ErrorCause::Plain,
            Some(Code::SSL) => ErrorCause::Tls,
            // It was closed before anything was agreed on.
            _ if says(&["in state SSL_HANDSHAKE"]) => ErrorCause::Plain,
            _ if says(&["security.protocol", "SASL authentication", "SSL listener"]) => ErrorCause::Hangs,
            _ if says(&["refused", "unreachable", "No route to host", "timed out", "timeout"]) => {
                ErrorCause::Absent
            }
            _ => ErrorCause::Other,
        }
    }

    /// The same at the very start, when a connection that is closed means more than that a broker went away.
    pub(crate) fn cause_at_start(&self) -> ErrorCause {
        let closed = ["Disconnected", "Broken pipe", "reset by peer"];
        match self.cause() {
            ErrorCause::Other if closed.iter().any(|word| self.reason.contains(word)) => ErrorCause::Hangs,
            cause => cause,
        }
    }

    /// What is the matter and what to do about it, with the client's own words.
    pub(crate) fn sentence(&self) -> String {
        self.sentence_for(self.cause())
    }

    /// The same, where more is known of the cause.
    pub(crate) fn sentence_for(&self, cause: ErrorCause) -> String {
        let advice = match cause {
            ErrorCause::Absent => {
                "no broker answers at this address; check the address, and that the broker is running"
            }
            ErrorCause::Unknown => "the host name does not exist; check the address",
            ErrorCause::Login => {
                "the brokers refused the login; check the user, the password and the SASL mechanism"
            }
            ErrorCause::Mechanism => {
                "the brokers do not accept this SASL mechanism; use one that they support"
            }
            ErrorCause::Name => {
                "the broker certificate is for another host name; use a name that the certificate contains"
            }
            ErrorCause::Certificate => {
                "the broker certificate is not trusted; set ssl.ca.location and check its expiry date"
            }
            ErrorCause::Plain => {
                "the listener does not use TLS; use the port of a TLS listener, or turn TLS off"
            }
            ErrorCause::Hangs => {
                "the broker closed the connection; the listener may require TLS or a login: check security.protocol"
            }
            ErrorCause::Tls => {
                "the TLS handshake failed; the brokers may require a client certificate (ssl.certificate.location, \
                 ssl.key.location)"
            }
            ErrorCause::Other => return self.reason.clone(),
        };
        format!("{advice} ({})", self.reason)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_cause_is_known_by_what_the_client_says() {
        for (code, reason, wanted) in [
            (
                Code::BrokerTransportFailure,
                "127.0.0.1:1/bootstrap: Connect to ipv4#127.0.0.1:1 failed: Connection refused",
                ErrorCause::Absent,
            ),
            (Code::Resolve, "nowhere:9092/bootstrap: Failed to resolve 'nowhere:9092'", ErrorCause::Unknown),
            (Code::Authentication, "SASL authentication error: Authentication failed", ErrorCause::Login),
            (
                Code::Authentication,
                "SASL SCRAM-SHA-512 mechanism handshake failed: Broker: Unsupported SASL mechanism",
                ErrorCause::Mechanism,
            ),
            (Code::SSL, "certificate verify failed: hostname mismatch", ErrorCause::Name),
            (
                Code::SSL,
                "SSL handshake failed: error:0A000086:SSL routines::certificate verify failed",
                ErrorCause::Certificate,
            ),
            (
                Code::SSL,
                "SSL handshake failed: error:0A00010B:SSL routines::wrong version number",
                ErrorCause::Plain,
            ),
            (Code::SSL, "SSL handshake failed: unexpected message", ErrorCause::Tls),
            (
                Code::BrokerTransportFailure,
                "Disconnected: verify that security.protocol is correctly configured",
                ErrorCause::Hangs,
            ),
            (
                Code::BrokerTransportFailure,
                "Disconnected: SSL connection closed by peer (after 0ms in state SSL_HANDSHAKE)",
                ErrorCause::Plain,
            ),
            (Code::BrokerTransportFailure, "something new", ErrorCause::Other),
        ] {
            let error = ClientError::new(Some(code), reason);
            assert_eq!(error.cause(), wanted, "{reason}");
            assert!(error.sentence().contains(reason));
        }
    }
}
