//! What an error of `reqwest` means, to the sink and to handlers that call a service.

use postrider_relay::Failure;

use crate::connect_error::reason;

/// How a request came to nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoAnswer {
    /// There was no connection.
    Connect,
    /// No answer came in time.
    Timeout,
    /// The connection broke, or the answer could not be read.
    Broken,
}

impl NoAnswer {
    pub(crate) fn of(error: &reqwest::Error) -> Self {
        match error {
            _ if error.is_connect() => Self::Connect,
            _ if error.is_timeout() => Self::Timeout,
            _ => Self::Broken,
        }
    }

    /// The word for it in metrics and in the code of a failure.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Connect => "connect",
            Self::Timeout => "timeout",
            Self::Broken => "broken",
        }
    }
}

/// The failure of a handler whose request to a service failed with this error.
///
/// | error | the failure |
/// |---|---|
/// | a status, from `error_for_status` | as [`Failure::from_status`] |
/// | no connection | [unavailable](Failure::unavailable): the subscription waits |
/// | no answer in time, or the connection broke | [unclear](Failure::unclear) |
/// | the request could not be made: its URL or a header is invalid | [rejected](Failure::reject) |
///
/// The message names the host. It has neither the path nor the query of the URL, nor its user and password: they may hold a secret.
///
/// ```no_run
/// use postrider_relay::Failure;
/// use postrider_http::failure;
///
/// async fn charge(client: &reqwest::Client, order: i64) -> Result<(), Failure> {
///     let url = format!("https://payments.example.org/charges/{order}");
///     let answer = client.post(url).send().await.map_err(failure)?;
///     answer.error_for_status().map_err(failure)?;
///     Ok(())
/// }
/// ```
pub fn failure(error: reqwest::Error) -> Failure {
    if let Some(failure) = error.status().and_then(|status| Failure::from_status(status.as_u16())) {
        return failure;
    }
    let host = error.url().and_then(|url| url.host_str()).unwrap_or("the service").to_owned();
    if error.is_builder() {
        // The root of such an error may quote the URL.
        return Failure::reject("the request can't be made; its URL and its headers must be valid")
            .code("request");
    }
    let class = NoAnswer::of(&error);
    let reason = reason(&error.without_url());
    let failure = match class {
        NoAnswer::Connect => return Failure::unavailable(format!("can't reach {host}: {reason}")),
        NoAnswer::Timeout => Failure::unclear(format!("{host} did not answer in time")),
        NoAnswer::Broken => Failure::unclear(format!("the request to {host} broke: {reason}")),
    };
    failure.code(class.as_str())
}
