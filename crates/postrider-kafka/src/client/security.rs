//! How a client and the brokers authenticate each other: SASL and TLS.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use postrider_core::Result;

use crate::client::invalid::invalid;

/// A SASL mechanism.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Mechanism {
    /// Sends the password itself: use it only over TLS, or within a trusted network.
    Plain,
    /// Sends a proof of the password. Needs a build with TLS.
    ScramSha256,
    /// The same with a longer hash.
    ScramSha512,
}

impl Mechanism {
    /// Its name in Kafka.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Plain => "PLAIN",
            Self::ScramSha256 => "SCRAM-SHA-256",
            Self::ScramSha512 => "SCRAM-SHA-512",
        }
    }
}

/// The methods of a builder for login and TLS; it has a field `security`.
macro_rules! security_methods {
    () => {
        /// Logs in as a user. SCRAM needs a build with TLS. The password is never shown: not by `Debug`, an error or a log.
        #[must_use]
        pub fn sasl(
            mut self,
            mechanism: $crate::Mechanism,
            user: impl Into<String>,
            password: impl Into<String>,
        ) -> Self {
            self.security.sasl = Some((mechanism, user.into(), password.into()));
            self
        }

        /// Uses TLS. The certificates of the brokers must be trusted by this machine, and contain the host names that are used.
        #[must_use]
        pub fn tls(mut self) -> Self {
            self.security.tls = true;
            self
        }

        /// Uses TLS with brokers whose certificate is signed by your own authority: the file of its certificate, in PEM format.
        #[must_use]
        pub fn tls_authority(mut self, file: impl Into<std::path::PathBuf>) -> Self {
            self.security.authority = Some(file.into());
            self.tls()
        }
    };
}
pub(crate) use security_methods;

/// What was asked for by name rather than by properties. What it shows of itself has no secret in it.
#[derive(Clone, Default)]
pub(crate) struct Security {
    pub(crate) sasl: Option<(Mechanism, String, String)>,
    pub(crate) tls: bool,
    pub(crate) authority: Option<PathBuf>,
}

impl Security {
    /// The properties of librdkafka that say the same.
    pub(crate) fn properties(&self) -> Vec<(&'static str, String)> {
        let mut properties = Vec::new();
        let protocol = match (self.sasl.is_some(), self.tls) {
            (false, false) => return properties,
            (true, false) => "SASL_PLAINTEXT",
            (false, true) => "SSL",
            (true, true) => "SASL_SSL",
        };
        properties.push(("security.protocol", protocol.to_owned()));
        if let Some((mechanism, user, password)) = &self.sasl {
            properties.push(("sasl.mechanism", mechanism.as_str().to_owned()));
            properties.push(("sasl.username", user.clone()));
            properties.push(("sasl.password", password.clone()));
        }
        if let Some(authority) = &self.authority {
            properties.push(("ssl.ca.location", authority.display().to_string()));
        }
        properties
    }
}

impl fmt::Debug for Security {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Security")
            .field("sasl", &self.sasl.as_ref().map(|(mechanism, ..)| mechanism))
            .field("tls", &self.tls)
            .field("authority", &self.authority)
            .finish()
    }
}

/// Refuses what a build without TLS can't do, by the first setting that asks for it. Its value is not shown.
pub(crate) fn without_tls(properties: &BTreeMap<String, String>) -> Result<()> {
    let asks = |(name, value): &(&String, &String)| {
        let value = value.to_ascii_uppercase();
        match name.as_str() {
            "security.protocol" => value.contains("SSL"),
            "sasl.mechanism" | "sasl.mechanisms" => value != "PLAIN",
            name => name.starts_with("ssl.") || name == "enable.ssl.certificate.verification",
        }
    };
    match properties.iter().find(asks) {
        Some((name, _)) => Err(invalid(&format!(
            "{name} needs TLS or SCRAM, which this build does not have; build it with the feature `kafka-tls` \
             (`tls` of postrider-kafka)"
        ))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(name: &str, value: &str) -> Option<String> {
        let properties = BTreeMap::from([(name.to_owned(), value.to_owned())]);
        without_tls(&properties).err().map(|error| error.to_string())
    }

    #[test]
    fn a_build_without_tls_says_which_feature_adds_it() {
        for (name, value) in [
            ("security.protocol", "ssl"),
            ("security.protocol", "SASL_SSL"),
            ("sasl.mechanism", "SCRAM-SHA-256"),
            ("sasl.mechanisms", "SCRAM-SHA-512"),
            ("ssl.ca.location", "/etc/planted-secret"),
        ] {
            let sentence = refused(name, value).expect("refused");
            assert!(sentence.contains(name) && sentence.contains("`kafka-tls`"), "{sentence}");
            assert!(!sentence.contains("planted-secret"), "{sentence}");
        }
    }

    #[test]
    fn a_password_in_the_clear_needs_no_tls() {
        assert_eq!(refused("security.protocol", "SASL_PLAINTEXT"), None);
        assert_eq!(refused("sasl.mechanism", "PLAIN"), None);
    }

    #[test]
    fn what_is_asked_for_decides_the_protocol() {
        let sasl = Some((Mechanism::Plain, "alice".to_owned(), "planted-secret".to_owned()));
        for (sasl, tls, wanted) in [
            (None, false, None),
            (None, true, Some("SSL")),
            (sasl.clone(), false, Some("SASL_PLAINTEXT")),
            (sasl, true, Some("SASL_SSL")),
        ] {
            let security = Security { sasl, tls, authority: None };
            let properties = security.properties();
            assert_eq!(properties.first().map(|(_, value)| value.as_str()), wanted);
            assert!(!format!("{security:?}").contains("planted-secret"));
        }
    }
}
