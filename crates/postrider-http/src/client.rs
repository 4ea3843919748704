//! The HTTP client, made the same way for everybody: one provider of TLS, no redirects, no proxy.

use std::error::Error as StdError;
use std::sync::Arc;
use std::time::Duration;

use postrider_core::{Error, ErrorKind, Result};
use reqwest::Client;

/// A client that trusts this certificate (DER) besides those that everybody does.
pub fn client(root: Option<&[u8]>) -> Result<Client> {
    let invalid = |message: String| Error::new(ErrorKind::Invalid, "http", message);
    let tls = tls(root).map_err(|error| invalid(format!("the certificate can't be used: {error}")))?;
    Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .tls_backend_preconfigured(tls)
        .no_proxy()
        .connect_timeout(Duration::from_secs(10))
        .build()
        .map_err(|error| invalid(format!("the HTTP client can't be made: {error}")))
}

/// TLS with one provider, whatever else is in the process.
fn tls(root: Option<&[u8]>) -> Result<rustls::ClientConfig, rustls::Error> {
    let mut roots = rustls::RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    if let Some(der) = root {
        roots.add(der.to_vec().into())?;
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder =
        rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}

/// The reason of an error, down to its root, without the address: that may hold a secret.
pub fn reason(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut deepest: &dyn StdError = &error;
    while let Some(source) = deepest.source() {
        deepest = source;
    }
    deepest.to_string()
}
