//! Calls of librdkafka that wait for the brokers, beside the runtime.

use postrider_core::{Error, ErrorKind, Result};

/// Runs what waits for the brokers on a thread for that. A panic in it is a bug of ours, and no damage of anything.
pub(crate) async fn blocking<T: Send + 'static>(
    op: &'static str,
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    let ended = tokio::task::spawn_blocking(work).await;
    ended.unwrap_or_else(|error| {
        let message = format!("a task ended unexpectedly: {error}");
        Err(Error::new(ErrorKind::Internal, op, message))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_task_that_panics_is_an_internal_error() {
        let error = blocking::<()>("consume", || panic!("on purpose")).await.expect_err("it panicked");
        assert_eq!(error.kind(), ErrorKind::Internal, "{error}");
        assert!(error.to_string().starts_with("consume: a task ended unexpectedly"), "{error}");
        assert_eq!(blocking("consume", || Ok(7)).await.expect("it ended"), 7);
    }
}
