//! Fetching jars with Maven.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::process;
use crate::task_error::TaskError;

/// What can be fetched: its group, its name, its version.
pub type Artifact = (&'static str, &'static str, &'static str);

/// Whether Maven is there.
pub fn is_there() -> bool {
    process::output(Command::new("mvn").arg("--version"), "ask Maven for its version").is_ok()
}

/// Fetches artifacts, with what they need to run, into the folder `lib`, which must not exist yet: all of them, or none.
pub fn fetch(artifacts: &[Artifact], lib: &Path) -> Result<(), TaskError> {
    let (pom, partial) = (lib.with_file_name("pom.xml"), lib.with_extension("partial"));
    let folder = lib.parent().unwrap_or(lib);
    let _ = fs::remove_dir_all(&partial);
    fs::write(&pom, project(artifacts)).map_err(|error| unwritable(&pom, &error))?;
    let mut maven = Command::new("mvn");
    maven
        .args(["-q", "-B", "-Dstyle.color=never", "-f"])
        .arg(&pom)
        .args(["dependency:copy-dependencies", "-DincludeScope=runtime"])
        .arg(format!("-DoutputDirectory={}", partial.display()))
        .current_dir(folder);
    process::output(&mut maven, "fetch jars with Maven")?;
    // A fetch that was interrupted starts again.
    fs::rename(&partial, lib).map_err(|error| unwritable(lib, &error))
}

/// A project of Maven with nothing but the artifacts.
fn project(artifacts: &[Artifact]) -> String {
    let dependencies: String = artifacts
        .iter()
        .map(|(group, artifact, version)| {
            format!(
                "<dependency><groupId>{group}</groupId><artifactId>{artifact}</artifactId>\
                 <version>{version}</version></dependency>"
            )
        })
        .collect();
    format!(
        "<project><modelVersion>4.0.0</modelVersion><groupId>postrider</groupId><artifactId>jars</artifactId>\
         <version>1</version><packaging>pom</packaging><dependencies>{dependencies}</dependencies></project>\n"
    )
}

fn unwritable(path: &Path, error: &std::io::Error) -> TaskError {
    TaskError::new(format!("could not write {}: {error}", path.display()))
}
