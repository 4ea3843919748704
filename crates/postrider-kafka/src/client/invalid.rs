//! A setting that can't be used, as an error.

use postrider_core::{Error, ErrorKind};
use rdkafka::error::KafkaError;

/// One sentence about a setting: what is wrong with it and what to do.
pub(crate) fn invalid(message: &str) -> Error {
    Error::new(ErrorKind::Invalid, "kafka", message)
}

/// Why a client could not be made, without the value of any setting: it may be a secret.
pub(crate) fn refused(error: &KafkaError) -> Error {
    match error {
        KafkaError::ClientConfig(_, description, name, _) => {
            let description = description.trim_end_matches('.');
            if description.contains("No such configuration property") {
                return invalid(&format!(
                    "{name:?} is not a property of librdkafka; look it up in its CONFIGURATION.md"
                ));
            }
            invalid(&format!("the property {name:?} has an invalid value: {}", first_sentence(description)))
        }
        other => invalid(&format!("can't create the client: {other}")),
    }
}

/// Up to the value that a description quotes.
fn first_sentence(description: &str) -> &str {
    description.split('"').next().unwrap_or(description).trim()
}
