//! The binary `postrider`, as people wait for it: a process of its own, from its start to its end.

use std::path::PathBuf;

use tokio::process::Command;

use crate::Failure;

pub mod status;

/// The binary, which `cargo xtask bench cli` has built beside this one.
pub(crate) fn postrider(schema: &str) -> Result<Command, Failure> {
    let folder = std::env::current_exe()?.parent().map(PathBuf::from).unwrap_or_default();
    let program = folder.join(format!("postrider{}", std::env::consts::EXE_SUFFIX));
    if !program.is_file() {
        return Err(format!("there is no {}: run `cargo xtask bench cli`", program.display()).into());
    }
    let url = std::env::var("POSTRIDER_TEST_POSTGRES")
        .map_err(|_| "POSTRIDER_TEST_POSTGRES is not set: run `cargo xtask bench`")?;
    let mut command = Command::new(program);
    command.args(["--store", &url, "--schema", schema]);
    Ok(command)
}
