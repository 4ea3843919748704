//! What a broker shall be able to do beside the usual.

/// The options of a throw-away broker. The default is one listener without passwords, and everything allowed.
#[derive(Debug, Clone, Default)]
pub struct Options {
    pub(super) properties: Vec<(String, String)>,
    pub(super) users: Vec<(String, String)>,
    pub(super) tls: Option<String>,
    pub(super) acls: bool,
    pub(super) scram_512: bool,
}

impl Options {
    /// The default.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets a property of the broker; it wins over the usual one.
    #[must_use]
    pub fn property(mut self, name: &str, value: &str) -> Self {
        self.properties.push((name.to_owned(), value.to_owned()));
        self
    }

    /// The largest batch of records, in bytes, that the broker takes.
    #[must_use]
    pub fn message_max_bytes(self, bytes: u32) -> Self {
        self.property("message.max.bytes", &bytes.to_string())
    }

    /// Adds the listener [`Listener::Sasl`] and a user who may log in there by PLAIN and SCRAM-SHA-256.
    ///
    /// Names and passwords are letters and digits: nothing here quotes them.
    #[must_use]
    pub fn user(mut self, name: &str, password: &str) -> Self {
        self.users.push((name.to_owned(), password.to_owned()));
        self
    }

    /// Lets users log in by SCRAM-SHA-512, too.
    #[must_use]
    pub fn scram_512(mut self) -> Self {
        self.scram_512 = true;
        self
    }

    /// Adds the listener [`Listener::Tls`], with a certificate of its own authority for 127.0.0.1 and localhost.
    #[must_use]
    pub fn tls(self) -> Self {
        self.tls_for("dns:localhost,ip:127.0.0.1")
    }

    /// The same with a certificate for other names, as `keytool` writes them: `dns:kafka.example,ip:10.0.0.1`.
    #[must_use]
    pub fn tls_for(mut self, names: &str) -> Self {
        self.tls = Some(names.to_owned());
        self
    }

    /// Has the broker ask its rules who may do what. Without a rule everything is allowed; `User:admin` always may.
    #[must_use]
    pub fn acls(mut self) -> Self {
        self.acls = true;
        self
    }

    /// The kinds of SCRAM that users may log in by.
    pub(super) fn scrams(&self) -> Vec<&'static str> {
        let longer = self.scram_512.then_some("SCRAM-SHA-512");
        ["SCRAM-SHA-256"].into_iter().chain(longer).collect()
    }

    /// The listeners that these options ask for.
    pub(super) fn listeners(&self) -> Vec<Listener> {
        let sasl = !self.users.is_empty();
        let wanted = |listener: &Listener| match listener {
            Listener::Plaintext => true,
            Listener::Sasl => sasl,
            Listener::Tls => self.tls.is_some(),
            Listener::SaslTls => sasl && self.tls.is_some(),
        };
        [Listener::Plaintext, Listener::Sasl, Listener::Tls, Listener::SaslTls]
            .into_iter()
            .filter(wanted)
            .collect()
    }
}

/// A way to talk to a broker, on a port of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listener {
    /// Without a password and in the clear: always there.
    Plaintext,
    /// With a password, in the clear.
    Sasl,
    /// Encrypted, without a password.
    Tls,
    /// Encrypted and with a password: there with both of the others.
    SaslTls,
}

impl Listener {
    /// Its name in the properties.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Plaintext => "PLAINTEXT",
            Self::Sasl => "SASL",
            Self::Tls => "TLS",
            Self::SaslTls => "SASL_TLS",
        }
    }

    /// What Kafka calls that way of talking.
    pub(super) fn protocol(self) -> &'static str {
        match self {
            Self::Plaintext => "PLAINTEXT",
            Self::Sasl => "SASL_PLAINTEXT",
            Self::Tls => "SSL",
            Self::SaslTls => "SASL_SSL",
        }
    }

    pub(super) fn has_passwords(self) -> bool {
        matches!(self, Self::Sasl | Self::SaslTls)
    }

    pub(super) fn is_encrypted(self) -> bool {
        matches!(self, Self::Tls | Self::SaslTls)
    }
}
