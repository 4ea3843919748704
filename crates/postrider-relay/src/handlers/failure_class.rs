//! Failures of handlers that call a service: by HTTP status or I/O error.

use std::io;

use postrider_core::{DeliveryFailure, StatusClass};

use crate::handlers::failure::{Failure, FailureClass};

impl Failure {
    /// Converts an HTTP status into a failure; `None` for 2xx. The HTTP sink uses the same classes.
    ///
    /// | status | the failure |
    /// |---|---|
    /// | 2xx | none |
    /// | 400, 409, 413, 415, 422 | [unclear](Self::unclear), and the event is rejected if it is to blame |
    /// | all others | [unclear](Self::unclear), and the event is retried if it is to blame |
    ///
    /// A Kafka consumer always blames the event. Its [code](Self::code) is `http_` and the status.
    ///
    /// ```
    /// use postrider_relay::Failure;
    ///
    /// fn answered(status: u16, body: &[u8]) -> Result<(), Failure> {
    ///     match Failure::from_status(status) {
    ///         Some(failure) => Err(failure.answer(body)),
    ///         None => Ok(()),
    ///     }
    /// }
    ///
    /// assert!(answered(204, b"").is_ok());
    /// assert!(answered(503, b"busy").is_err_and(|failure| failure.is_retry()));
    /// assert!(answered(422, b"no such order").is_err_and(|failure| !failure.is_retry()));
    /// ```
    pub fn from_status(status: u16) -> Option<Self> {
        let rejects = match StatusClass::of(status) {
            StatusClass::Success => return None,
            StatusClass::Event => true,
            StatusClass::Destination => false,
        };
        let DeliveryFailure { code, message, .. } = DeliveryFailure::from_status(status);
        Some(Self::new(FailureClass::Unclear { rejects }, &code, message))
    }

    /// Converts an I/O error into a failure.
    ///
    /// | error | the failure |
    /// |---|---|
    /// | no connection: refused, host or network unreachable, network down | [unavailable](Self::unavailable) |
    /// | a timeout, or a connection that broke: reset, aborted, closed in the middle | [unclear](Self::unclear) |
    /// | permission denied, invalid data, invalid input, unsupported | [rejected](Self::reject) |
    /// | all others | [retried](Self::retry) |
    ///
    /// The message is the error's own text.
    ///
    /// ```
    /// use postrider_relay::Failure;
    ///
    /// fn connect() -> Result<std::net::TcpStream, Failure> {
    ///     // Nobody listens on port 1.
    ///     std::net::TcpStream::connect("127.0.0.1:1").map_err(|error| Failure::from_io(&error))
    /// }
    ///
    /// assert!(connect().is_err_and(|failure| !failure.is_retry()), "the subscription waits");
    /// ```
    pub fn from_io(error: &io::Error) -> Self {
        use io::ErrorKind as Kind;
        match error.kind() {
            Kind::ConnectionRefused
            | Kind::HostUnreachable
            | Kind::NetworkUnreachable
            | Kind::NetworkDown => Self::unavailable(error),
            Kind::TimedOut => Self::unclear(error).code("timeout"),
            Kind::ConnectionReset
            | Kind::ConnectionAborted
            | Kind::NotConnected
            | Kind::BrokenPipe
            | Kind::UnexpectedEof => Self::unclear(error).code("broken"),
            Kind::PermissionDenied | Kind::InvalidData | Kind::InvalidInput | Kind::Unsupported => {
                Self::reject(error)
            }
            _ => Self::retry(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind as Kind;

    use postrider_core::Outcome;

    use super::*;

    /// The HTTP sink says the same of the same status, in the same words.
    #[test]
    fn a_status_means_what_it_means_to_the_sink() {
        for status in 100..=600 {
            let outcome = Failure::from_status(status).map_or(Outcome::Delivered, Failure::into_outcome);
            assert_eq!(outcome, Outcome::from_status(status), "{status}");
        }
    }

    #[test]
    fn each_class_of_statuses_is_one_failure() {
        for status in [200, 204, 299] {
            assert_eq!(Failure::from_status(status), None, "{status}");
        }
        for status in [400, 409, 413, 415, 422] {
            assert!(!Failure::from_status(status).expect("a failure").is_retry(), "{status}");
        }
        for status in [301, 401, 403, 404, 408, 410, 425, 429, 500, 502, 503, 504] {
            let failure = Failure::from_status(status).expect("a failure");
            assert!(failure.is_retry() && failure.message().contains(&status.to_string()), "{status}");
        }
    }

    #[test]
    fn each_class_of_io_errors_is_one_failure() {
        let class = |kind: Kind| Failure::from_io(&io::Error::new(kind, "no")).class;
        for kind in
            [Kind::ConnectionRefused, Kind::HostUnreachable, Kind::NetworkUnreachable, Kind::NetworkDown]
        {
            assert_eq!(class(kind), FailureClass::Wait, "{kind}");
        }
        for kind in [
            Kind::TimedOut,
            Kind::ConnectionReset,
            Kind::ConnectionAborted,
            Kind::NotConnected,
            Kind::BrokenPipe,
            Kind::UnexpectedEof,
        ] {
            assert_eq!(class(kind), FailureClass::Unclear { rejects: false }, "{kind}");
        }
        for kind in [Kind::PermissionDenied, Kind::InvalidData, Kind::InvalidInput, Kind::Unsupported] {
            assert_eq!(class(kind), FailureClass::Reject, "{kind}");
        }
        for kind in [Kind::NotFound, Kind::StorageFull, Kind::Interrupted, Kind::WouldBlock, Kind::Other] {
            assert_eq!(class(kind), FailureClass::Retry(None), "{kind}");
        }
    }
}
