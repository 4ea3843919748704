//! The versions of a schema. Forward only.

use postrider_core::{Error, ErrorKind, Result};

/// A step from one version of the schema to the next. Never changed once released.
#[derive(Debug, Clone, Copy)]
pub struct Migration {
    /// The version that it makes.
    pub version: i64,
    /// Its name.
    pub name: &'static str,
    /// Its statements.
    pub text: &'static str,
}

/// Refuses a schema that a newer program has made.
pub fn refuse_newer(found: i64, latest: i64, op: &'static str) -> Result<()> {
    if found <= latest {
        return Ok(());
    }
    let message = format!(
        "the schema is at version {found}, newer than version {latest} that this program knows; upgrade the program"
    );
    Err(Error::new(ErrorKind::SchemaTooNew, op, message))
}

/// Refuses a schema that is not the latest.
pub fn refuse_other(found: i64, latest: i64, op: &'static str) -> Result<()> {
    refuse_newer(found, latest, op)?;
    if found == latest {
        return Ok(());
    }
    let there = if found == 0 { "no Postrider tables".to_owned() } else { format!("schema version {found}") };
    let message = format!(
        "the database has {there}, but this program needs version {latest}; run `postrider migrate` or call \
         Outbox::migrated"
    );
    Err(Error::new(ErrorKind::NotMigrated, op, message))
}
