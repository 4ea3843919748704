//! What kind of server this is, and whether it will do.

use postrider_core::{Error, ErrorKind, Result};
use postrider_sql::Columns;
use sqlx_core::query::query;
use sqlx_mysql::MySqlConnection;

use crate::error::failed;

const SETTINGS: &str = "select version() as version, @@global.read_only as read_only, \
     @@default_storage_engine as engine, \
     (select count(*) from information_schema.engines where engine = 'InnoDB' and support in ('YES', 'DEFAULT')) as innodb, \
     database() as name";

/// What is missing in older ones: `SKIP LOCKED`, JSON_TABLE and window functions.
const OLDEST_MARIADB: Version = Version(10, 6, 0);
const OLDEST_MYSQL: Version = Version(8, 0, 11);

/// A version of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Version(u32, u32, u32);

impl Version {
    /// The numbers at the beginning of what a server says of itself. Some MariaDB put an old MySQL version in front.
    fn of(text: &str) -> Self {
        let text = text.strip_prefix("5.5.5-").unwrap_or(text);
        let numbers = text.split(|c: char| !c.is_ascii_digit() && c != '.').next().unwrap_or_default();
        let mut numbers = numbers.split('.').map(|number| number.parse().unwrap_or(0));
        let mut next = || numbers.next().unwrap_or(0);
        Self(next(), next(), next())
    }
}

/// The two kinds of servers, where they differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Mariadb,
    Mysql,
}

/// Whether the server calls itself MariaDB; the others are MySQL.
pub(crate) fn is_mariadb(version: &str) -> bool {
    version.to_lowercase().contains("mariadb")
}

/// Refuses a server that can't keep the promises, each with what to do about it; says of which kind it is.
pub(crate) async fn check(conn: &mut MySqlConnection, op: &'static str) -> Result<Kind> {
    let row = query(SETTINGS).fetch_one(conn).await.map_err(failed(op))?;
    let version = row.text("version", op)?;
    old(&version).map_or(Ok(()), |message| Err(Error::new(ErrorKind::Invalid, op, message)))?;
    if row.flag("read_only", op)? {
        let message = "the server is read-only; connect to the primary";
        return Err(Error::new(ErrorKind::Denied, op, message));
    }
    if !row.flag("innodb", op)? {
        let message = "InnoDB is off, so the server has no transactions; turn it on";
        return Err(Error::new(ErrorKind::Invalid, op, message));
    }
    let engine = row.text("engine", op)?;
    if !engine.eq_ignore_ascii_case("InnoDB") {
        let message = format!(
            "default_storage_engine is {engine}, which has no transactions; set default_storage_engine = InnoDB"
        );
        return Err(Error::new(ErrorKind::Invalid, op, message));
    }
    if row.maybe_text("name", op)?.is_none() {
        let message = "the URL must name a database, as in mysql://…/shop";
        return Err(Error::new(ErrorKind::Invalid, op, message));
    }
    Ok(if is_mariadb(&version) { Kind::Mariadb } else { Kind::Mysql })
}

/// What is wrong with a version, if anything.
fn old(version: &str) -> Option<String> {
    let (name, oldest) =
        if is_mariadb(version) { ("MariaDB", OLDEST_MARIADB) } else { ("MySQL", OLDEST_MYSQL) };
    let Version(major, minor, patch) = oldest;
    (Version::of(version) < oldest).then(|| {
        format!(
            "this is {name} {version}; {major}.{minor}.{patch} or later is required (SKIP LOCKED and JSON_TABLE)"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_server_is_told_by_its_version() {
        for (version, name) in [
            ("10.5.23-MariaDB-0+deb11u1", "MariaDB 10.5.23"),
            ("5.5.5-10.3.39-MariaDB", "MariaDB"),
            ("8.0.0-dmr", "MySQL 8.0.0"),
            ("5.7.44-log", "MySQL 5.7.44"),
            ("nonsense", "MySQL nonsense"),
        ] {
            let said = old(version).expect(version);
            assert!(said.contains(name) && said.contains("or later is required"), "{said}");
        }
    }

    #[test]
    fn a_new_server_will_do() {
        for version in [
            "10.6.0-MariaDB",
            "10.11.19-MariaDB-0+deb12u1",
            "11.4.2-MariaDB-log",
            "8.0.11",
            "8.4.3",
            "9.1.0-cloud",
        ] {
            assert_eq!(old(version), None, "{version}");
        }
    }
}
