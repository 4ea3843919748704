//! What an answer means.

use std::collections::BTreeMap;
use std::time::Duration;

use postrider_core::{
    DeliveryFailure, Error, ErrorKind, Excerpt, OffsetDateTime, Outcome, Result, StatusClass,
};
use time::format_description::BorrowedFormatItem;
use time::macros::format_description;

/// A date as HTTP writes it: `Sun, 06 Nov 1994 08:49:37 GMT`.
const DATE: &[BorrowedFormatItem<'static>] =
    format_description!("[weekday repr:short], [day] [month repr:short] [year] [hour]:[minute]:[second] GMT");
/// The longest `Retry-After` that is respected by default.
pub(crate) const LONGEST: Duration = Duration::from_secs(3600);

/// Who is blamed for a status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatusRule {
    /// The endpoint, while no other key succeeds: no event loses an attempt. While others succeed, the event loses an attempt and
    /// is retried.
    Endpoint,
    /// Also the endpoint, while no other key succeeds. While others succeed, the event is dead at once.
    Event,
    /// Always the event: it loses an attempt and is retried. An endpoint that gives this answer to everything kills its events.
    Retry,
    /// Always the event: it is dead at once.
    Reject,
}

impl StatusRule {
    /// Who is blamed by default.
    fn usual(status: u16) -> Self {
        match StatusClass::of(status) {
            StatusClass::Event => Self::Event,
            StatusClass::Success | StatusClass::Destination => Self::Endpoint,
        }
    }
}

/// What the statuses of an endpoint mean.
#[derive(Debug, Clone)]
pub(crate) struct Answers {
    /// What was set.
    blame: BTreeMap<u16, StatusRule>,
    longest: Duration,
}

impl Default for Answers {
    fn default() -> Self {
        Self { blame: BTreeMap::new(), longest: LONGEST }
    }
}

impl Answers {
    pub(crate) fn set(&mut self, status: u16, blame: StatusRule) {
        self.blame.insert(status, blame);
    }

    pub(crate) fn believe(&mut self, longest: Duration) {
        self.longest = longest;
    }

    /// Whether it can be used.
    pub(crate) fn check(&self) -> Result<()> {
        let wrong = self.blame.keys().find(|status| !(300..600).contains(*status));
        match wrong {
            Some(status) => Err(Error::new(
                ErrorKind::Invalid,
                "http",
                format!(
                    "status {status} can't be configured; it must be between 300 and 599 (2xx always means delivered)"
                ),
            )),
            None => Ok(()),
        }
    }

    /// What a status means for the event.
    #[cfg(test)]
    fn outcome(&self, status: u16, retry_after: Option<&str>, now: OffsetDateTime) -> Outcome {
        self.outcome_of(status, retry_after, None, now)
    }

    /// The same with the beginning of the answer's body.
    pub(crate) fn outcome_of(
        &self,
        status: u16,
        retry_after: Option<&str>,
        body: Option<Excerpt>,
        now: OffsetDateTime,
    ) -> Outcome {
        if StatusClass::of(status) == StatusClass::Success {
            return Outcome::Delivered;
        }
        let failure = DeliveryFailure::from_status(status).answer(body);
        let after = retry_after.and_then(|value| pause(value, now)).map(|pause| pause.min(self.longest));
        match self.blame.get(&status).copied().unwrap_or_else(|| StatusRule::usual(status)) {
            StatusRule::Endpoint => Outcome::Unclear { after, failure, rejects: false },
            StatusRule::Event => Outcome::Unclear { after, failure, rejects: true },
            StatusRule::Retry => Outcome::Retry { after, failure },
            StatusRule::Reject => Outcome::Reject { failure },
        }
    }
}

/// `Retry-After`: seconds, or a date.
fn pause(value: &str, now: OffsetDateTime) -> Option<Duration> {
    let value = value.trim();
    if let Ok(seconds) = value.parse::<u64>() {
        return Some(Duration::from_secs(seconds));
    }
    let date = time::PrimitiveDateTime::parse(value, DATE).ok()?.assume_utc();
    Some(Duration::try_from(date - now).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_status_means_one_thing() {
        let (now, answers) = (OffsetDateTime::UNIX_EPOCH, Answers::default());
        for status in [200, 201, 202, 204] {
            assert_eq!(answers.outcome(status, None, now), Outcome::Delivered, "{status}");
        }
        let of_the_endpoint = [
            301, 302, 307, 308, 401, 402, 403, 404, 405, 408, 410, 418, 425, 429, 500, 502, 503, 504, 599,
            600,
        ];
        for status in of_the_endpoint {
            let outcome = answers.outcome(status, None, now);
            assert!(matches!(outcome, Outcome::Unclear { after: None, rejects: false, .. }), "{status}");
        }
        for status in [400, 409, 413, 415, 422] {
            let outcome = answers.outcome(status, None, now);
            assert!(matches!(outcome, Outcome::Unclear { rejects: true, .. }), "{status}");
        }
    }

    #[test]
    fn which_status_is_which_is_a_setting() {
        let (now, mut answers) = (OffsetDateTime::UNIX_EPOCH, Answers::default());
        answers.set(404, StatusRule::Event);
        answers.set(409, StatusRule::Endpoint);
        answers.set(422, StatusRule::Reject);
        answers.set(503, StatusRule::Retry);
        assert!(matches!(answers.outcome(503, None, now), Outcome::Retry { after: None, .. }));
        answers.check().expect("good");
        assert!(matches!(answers.outcome(404, None, now), Outcome::Unclear { rejects: true, .. }));
        assert!(matches!(answers.outcome(409, None, now), Outcome::Unclear { rejects: false, .. }));
        assert!(matches!(answers.outcome(422, None, now), Outcome::Reject { .. }));
        for status in [0, 204, 299, 600] {
            let mut answers = Answers::default();
            answers.set(status, StatusRule::Event);
            let error = answers.check().expect_err("refused").to_string();
            assert!(
                error.contains(&format!("status {status} ")) && error.contains("between 300 and 599"),
                "{error}"
            );
        }
    }

    #[test]
    fn retry_after_is_seconds_or_a_date_and_has_a_limit() {
        let (now, mut answers) = (time::macros::datetime!(1994-11-06 08:49:07 UTC), Answers::default());
        let after = |answers: &Answers, value| match answers.outcome(429, Some(value), now) {
            Outcome::Unclear { after, .. } => after,
            other => panic!("{other:?}"),
        };
        assert_eq!(after(&answers, "120"), Some(Duration::from_secs(120)));
        assert_eq!(after(&answers, "Sun, 06 Nov 1994 08:49:37 GMT"), Some(Duration::from_secs(30)));
        assert_eq!(after(&answers, "Sun, 06 Nov 1994 08:49:00 GMT"), Some(Duration::ZERO), "it is over");
        assert_eq!(after(&answers, "soon"), None);
        assert_eq!(after(&answers, "99999999999"), Some(LONGEST));
        answers.believe(Duration::from_secs(5));
        assert_eq!(after(&answers, "120"), Some(Duration::from_secs(5)));
    }
}
