//! The keys of an encrypted listener: an authority made for the occasion, and a certificate by it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::kit::Kit;
use crate::process;
use crate::task_error::TaskError;

/// The password of the key store, which Java insists on.
pub const PASSWORD: &str = "postrider";

/// The algorithm and life of both keys.
const KEY: [&str; 6] = ["-keyalg", "EC", "-groupname", "secp256r1", "-validity", "3650"];

/// The key store of the broker whose folder is `folder`.
pub fn keys(folder: &Path) -> PathBuf {
    folder.join("keys.p12")
}

/// The certificate of the authority, in the form that clients read.
pub fn authority(folder: &Path) -> PathBuf {
    folder.join("authority.pem")
}

/// Makes an authority and, signed by it, a key for `names`.
pub fn make(kit: &Kit, folder: &Path, names: &str) -> Result<(), TaskError> {
    let run = |command: &str, arguments: &[&str]| {
        let mut keytool = kit.keytool();
        keytool.arg(command).args(arguments);
        finished(&mut keytool, folder)
    };
    let name = ["-dname", "CN=Postrider test authority", "-ext", "bc:c"];
    run("-genkeypair", &[&["-alias", "authority"][..], &KEY, &name].concat())?;
    let names = format!("san={names}");
    let name = ["-dname", "CN=broker", "-ext", &names];
    run("-genkeypair", &[&["-alias", "server", "-signer", "authority"][..], &KEY, &name].concat())?;
    let certificate = authority(folder).display().to_string();
    run("-exportcert", &["-alias", "authority", "-rfc", "-file", &certificate])?;
    // With two keys in the store the broker might show the wrong one.
    run("-delete", &["-alias", "authority"])
}

/// Gives the broker in `to` the keys of the one in `from`.
pub fn copy(from: &Path, to: &Path) -> Result<(), TaskError> {
    fs::copy(keys(from), keys(to))
        .and_then(|_| fs::copy(authority(from), authority(to)))
        .map(drop)
        .map_err(|error| TaskError::new(format!("could not copy keys to {}: {error}", to.display())))
}

fn finished(keytool: &mut Command, folder: &Path) -> Result<(), TaskError> {
    keytool.args(["-storetype", "PKCS12", "-storepass", PASSWORD, "-keystore"]).arg(keys(folder));
    process::output(keytool, "make keys for Kafka").map(drop)
}
