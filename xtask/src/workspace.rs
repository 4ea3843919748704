//! Where this workspace lies and how its `cargo` is called.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The folder of the workspace.
pub fn root() -> &'static Path {
    let xtask = Path::new(env!("CARGO_MANIFEST_DIR"));
    xtask.parent().unwrap_or(xtask)
}

/// The folder that build results go to.
pub fn target() -> PathBuf {
    root().join(env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into()))
}

/// `cargo`, the same that runs this, in the folder of the workspace.
pub fn cargo() -> Command {
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(root());
    // What `cargo run` says of this package is not to be seen: build scripts that watch it would run again, and half of all
    // dependencies be built anew, whenever `cargo xtask` and `cargo` take turns.
    for (name, _) in env::vars_os() {
        let of_this_package =
            |name: &str| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_");
        if name.to_str().is_some_and(of_this_package) {
            cargo.env_remove(name);
        }
    }
    cargo
}
