//! The HTTP client, made the same way for everybody: one provider of TLS, no redirects, no proxy.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use postrider_core::{Error, ErrorKind, Result};
use reqwest::Client;
use rustls::ClientConfig;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

/// How long a connection may take.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// A client that trusts the public root certificates (Mozilla's list).
pub fn client() -> Result<Client> {
    client_with(tls(None, None)?)
}

/// A client with these settings of TLS.
pub(crate) fn client_with(tls: ClientConfig) -> Result<Client> {
    Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .tls_backend_preconfigured(tls)
        .no_proxy()
        .connect_timeout(PATIENCE)
        .build()
        .map_err(|error| invalid(format!("can't create the HTTP client: {error}")))
}

/// TLS with one provider, whatever else is in the process, that trusts a certificate (DER) and those in a file (PEM), in
/// addition to the public root certificates.
pub(crate) fn tls(root: Option<&[u8]>, authority: Option<&Path>) -> Result<ClientConfig> {
    let unusable = |error: rustls::Error| invalid(format!("can't use the certificate: {error}"));
    let mut trusted: Vec<_> = root.map(|der| CertificateDer::from(der.to_vec())).into_iter().collect();
    if let Some(file) = authority {
        let found = CertificateDer::pem_file_iter(file).and_then(Iterator::collect::<Result<Vec<_>, _>>);
        match found {
            Ok(found) if !found.is_empty() => trusted.extend(found),
            _ => {
                return Err(invalid(format!(
                    "can't read the certificate {}; it must be a file in PEM format",
                    file.display()
                )));
            }
        }
    }
    let mut roots = rustls::RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    for certificate in trusted {
        roots.add(certificate).map_err(unusable)?;
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    Ok(builder.map_err(unusable)?.with_root_certificates(roots).with_no_client_auth())
}

fn invalid(message: String) -> Error {
    Error::new(ErrorKind::Invalid, "http", message)
}
