//! The OpenSSL that the tests' Kafka client is built with: the machine's, so that none has to be built.

use std::env;
use std::process::Command;

use crate::task_error::TaskError;
use crate::{package, process, say};

/// Debian's and Ubuntu's packages of what is needed to build with it.
pub const PACKAGES: &[&str] = &["libssl-dev", "pkg-config"];

/// Sees that OpenSSL can be built with, before anything is built: where its headers are missing they are installed.
///
/// Where they can't be, it says so and goes on. The build looks in more places than this, and says what it lacks.
pub fn prepare() -> Result<(), TaskError> {
    if is_there() {
        return Ok(());
    }
    if package::can_install()? {
        return package::install("what is needed to build with OpenSSL", PACKAGES);
    }
    if cfg!(target_os = "linux") {
        say(&format!(
            "OpenSSL's headers are not found: if the build fails, install them (Debian and Ubuntu: `apt-get install {}`; \
             Fedora: `dnf install openssl-devel pkgconf`) or name their folder in OPENSSL_DIR",
            PACKAGES.join(" ")
        ));
    }
    Ok(())
}

fn is_there() -> bool {
    env::var_os("OPENSSL_DIR").is_some()
        || process::output(Command::new("pkg-config").args(["--exists", "openssl"]), "look for OpenSSL")
            .is_ok()
}
