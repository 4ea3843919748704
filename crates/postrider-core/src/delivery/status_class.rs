//! What an HTTP status means, for the HTTP sink and for handlers that call a service.

use crate::{DeliveryFailure, Outcome};

/// The statuses that are about the event where other keys succeed.
const ABOUT_THE_EVENT: [u16; 5] = [400, 409, 413, 415, 422];

/// What an HTTP status means: success, a bad event, or a failing endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatusClass {
    /// 2xx: it succeeded.
    Success,
    /// 400, 409, 413, 415 and 422: the event is refused, and a retry can't help.
    Event,
    /// All others, 1xx and 3xx too: a retry may help.
    Destination,
}

impl StatusClass {
    /// The class of a status.
    pub fn of(status: u16) -> Self {
        match status {
            200..300 => Self::Success,
            _ if ABOUT_THE_EVENT.contains(&status) => Self::Event,
            _ => Self::Destination,
        }
    }
}

impl Outcome {
    /// What an answer with this HTTP status means: [`Delivered`](Self::Delivered) for 2xx, [`Unclear`](Self::Unclear) for all
    /// others. If the event turns out to be to blame, it is rejected after 400, 409, 413, 415 and 422, and retried after all others.
    pub fn from_status(status: u16) -> Self {
        let rejects = match StatusClass::of(status) {
            StatusClass::Success => return Self::Delivered,
            StatusClass::Event => true,
            StatusClass::Destination => false,
        };
        Self::Unclear { after: None, failure: DeliveryFailure::from_status(status), rejects }
    }
}

impl DeliveryFailure {
    /// The failure that an answer with this HTTP status is; its code is `http_` and the status.
    pub fn from_status(status: u16) -> Self {
        let advice = match status {
            300..400 => ", a redirect; redirects are not followed, so set the final URL",
            _ => "",
        };
        Self::new(format!("http_{status}"), format!("the endpoint answered {status}{advice}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_status_has_one_class() {
        for status in [200, 201, 202, 204, 299] {
            assert_eq!(StatusClass::of(status), StatusClass::Success, "{status}");
            assert_eq!(Outcome::from_status(status), Outcome::Delivered, "{status}");
        }
        for status in ABOUT_THE_EVENT {
            assert_eq!(StatusClass::of(status), StatusClass::Event, "{status}");
            let outcome = Outcome::from_status(status);
            assert!(matches!(outcome, Outcome::Unclear { rejects: true, .. }), "{status}");
        }
        for status in [0, 100, 301, 308, 401, 403, 404, 408, 410, 425, 429, 500, 502, 503, 504, 599, 600] {
            assert_eq!(StatusClass::of(status), StatusClass::Destination, "{status}");
            let outcome = Outcome::from_status(status);
            assert!(matches!(outcome, Outcome::Unclear { after: None, rejects: false, .. }), "{status}");
        }
    }

    #[test]
    fn the_failure_of_a_status_names_it() {
        let failure = DeliveryFailure::from_status(503);
        assert_eq!((&*failure.code, &*failure.message), ("http_503", "the endpoint answered 503"));
        assert!(DeliveryFailure::from_status(302).message.contains("redirects are not followed"));
    }
}
