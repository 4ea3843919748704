//! The binary `postrider`, as people have it: a process of its own.

use std::path::PathBuf;

use sqlx::ConnectOptions;
use tokio::process::Command;

use crate::AnyError;
use crate::data::Bench;

pub mod idle;
mod relay_process;
pub mod status;

/// The binary, which `cargo xtask bench cli` has built beside this one, on that log.
pub(crate) fn postrider(bench: &Bench) -> Result<Command, AnyError> {
    let folder = std::env::current_exe()?.parent().map(PathBuf::from).unwrap_or_default();
    let program = folder.join(format!("postrider{}", std::env::consts::EXE_SUFFIX));
    if !program.is_file() {
        return Err(format!("there is no {}: run `cargo xtask bench cli`", program.display()).into());
    }
    let mut command = Command::new(program);
    let url = bench.pool.connect_options().to_url_lossy();
    command.args(["--store", url.as_str(), "--schema", &bench.schema]);
    Ok(command)
}
