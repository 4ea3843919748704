//! The settings of the sink, and what is wrong with them.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use postrider_core::{CloudEvents, Envelope, Error, ErrorKind, OptionalAttribute, Recorded, Result};
use reqwest::Url;
use reqwest::header::HeaderValue;

use crate::answer::{Answers, LONGEST, StatusRule};
use crate::client::{client_with, tls};
use crate::request::{Format, Message};
use crate::signature::Secret;
use crate::sink::Http;

/// The settings of an [`Http`] sink.
///
/// ```
/// use std::time::Duration;
///
/// use postrider_http::{Http, Secret, StatusRule};
///
/// # fn main() -> postrider::Result<()> {
/// let http = Http::builder()
///     .sign(Secret::parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")?)
///     .status(409, StatusRule::Reject)
///     .longest_retry_after(Duration::from_secs(60))
///     .build("https://shop.example.org/events")?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Default)]
pub struct HttpBuilder {
    pub(crate) format: Format,
    pub(crate) events: CloudEvents,
    pub(crate) envelope: Option<Envelope>,
    pub(crate) secret: Option<Secret>,
    pub(crate) bearer: Option<String>,
    root: Option<Vec<u8>>,
    authority: Option<PathBuf>,
    pub(crate) answers: Answers,
    keep_answers: Option<bool>,
}

impl HttpBuilder {
    /// The longest `Retry-After` that is respected by default.
    pub const LONGEST_RETRY_AFTER: Duration = LONGEST;

    /// The default of [`keep_answers`](HttpBuilder::keep_answers).
    pub const KEEP_ANSWERS: bool = true;

    /// How events are written into requests; by default binary.
    #[must_use]
    pub fn format(mut self, format: Format) -> Self {
        self.format = format;
        self
    }

    /// Sends one request per event, with this JSON object as the body, instead of the [format](HttpBuilder::format). The content
    /// type is `application/json`; the event's `traceparent` is a header. Attributes are refused.
    #[must_use]
    pub fn envelope(mut self, envelope: Envelope) -> Self {
        self.envelope = Some(envelope);
        self
    }

    /// How events are written as CloudEvents. [Attributes](HttpBuilder::attributes) that were set before stay set.
    #[must_use]
    pub fn events(mut self, events: CloudEvents) -> Self {
        self.events = events.with_optional(self.events.optional);
        self
    }

    /// Also writes these optional attributes; by default none. [`CloudEvents::each`] lists those that are always written.
    #[must_use]
    pub fn attributes(mut self, attributes: impl IntoIterator<Item = OptionalAttribute>) -> Self {
        self.events = self.events.with_optional(attributes);
        self
    }

    /// Signs each request according to Standard Webhooks.
    #[must_use]
    pub fn sign(mut self, secret: Secret) -> Self {
        self.secret = Some(secret);
        self
    }

    /// Sends this token as `Authorization: Bearer …`.
    #[must_use]
    pub fn bearer(mut self, token: impl Into<String>) -> Self {
        self.bearer = Some(token.into());
        self
    }

    /// Trusts this certificate (DER), in addition to the public root certificates (Mozilla's list).
    #[must_use]
    pub fn root_certificate(mut self, der: Vec<u8>) -> Self {
        self.root = Some(der);
        self
    }

    /// Trusts the certificate of this authority, a file in PEM format, in addition to the public root certificates (Mozilla's list).
    #[must_use]
    pub fn authority(mut self, file: impl Into<PathBuf>) -> Self {
        self.authority = Some(file.into());
        self
    }

    /// Sets who is blamed for a status from 300 to 599. By default it is the [event](StatusRule::Event) for 400, 409, 413, 415 and
    /// 422, and the [endpoint](StatusRule::Endpoint) for all others.
    #[must_use]
    pub fn status(mut self, status: u16, blame: StatusRule) -> Self {
        self.answers.set(status, blame);
        self
    }

    /// The longest `Retry-After` that is respected; by default an hour.
    #[must_use]
    pub fn longest_retry_after(mut self, longest: Duration) -> Self {
        self.answers.believe(longest);
        self
    }

    /// Whether the beginning of the body of a failed answer is stored with the attempt, for operators; by default it is. Turn it
    /// off for an endpoint whose answers repeat what it was sent. It is never logged.
    #[must_use]
    pub fn keep_answers(mut self, keep: bool) -> Self {
        self.keep_answers = Some(keep);
        self
    }

    /// Whether they are kept.
    pub(crate) fn keeps_answers(&self) -> bool {
        self.keep_answers.unwrap_or(Self::KEEP_ANSWERS)
    }

    /// How many events a request may have, where it has several.
    pub(crate) fn batched(&self) -> Option<usize> {
        match (&self.envelope, self.format) {
            (None, Format::Batched(most)) => Some(most),
            _ => None,
        }
    }

    /// The request for events.
    pub(crate) fn message(&self, events: &[&Arc<Recorded>]) -> Message {
        match (&self.envelope, events) {
            (Some(envelope), [event]) => Message::of_envelope(envelope.to_json(&self.events, event), event),
            _ => self.format.message(&self.events, events),
        }
    }

    /// The sink, for an endpoint.
    pub fn build(self, url: &str) -> Result<Http> {
        let invalid = |message: String| Error::new(ErrorKind::Invalid, "http", message);
        let parsed =
            Url::parse(url).ok().filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
        let url = parsed
            .ok_or_else(|| invalid("the URL of an endpoint must be like https://host/path".to_owned()))?;
        if self.format == Format::Batched(0) {
            return Err(invalid("a batched request must have at least 1 event".to_owned()));
        }
        if let (Some(_), Some(attribute)) = (&self.envelope, self.events.optional.first()) {
            return Err(invalid(format!(
                "the attribute {:?} can't be written: an envelope has no CloudEvents attributes; leave the attributes out",
                attribute.as_str()
            )));
        }
        if self
            .bearer
            .as_ref()
            .is_some_and(|token| HeaderValue::from_str(&format!("Bearer {token}")).is_err())
        {
            return Err(invalid(
                "the bearer token contains characters that are not allowed in a header (the value is not shown)".to_owned(),
            ));
        }
        self.answers.check()?;
        let tls = tls(self.root.as_deref(), self.authority.as_deref())?;
        let client = client_with(tls.clone())?;
        Ok(Http { client, url, settings: self, tls: Arc::new(tls) })
    }
}
