//! The routines that a MySQL server has before a migration: what each does, and who may call it.
//!
//! MySQL can't replace a routine. It drops it, and forgets every privilege that somebody has on it alone. So one that is as it should be
//! is left alone, and what takes the place of another gets its privileges. MariaDB replaces a routine and keeps them.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};

use postrider_core::{ErrorKind, Result};
use postrider_sql::Columns;
use sqlx_core::query::query;
use sqlx_mysql::{MySqlConnection, MySqlRow};

use crate::error::failed;
use crate::script::{Definition, plain};
use crate::server::Kind;

const BODIES: &str = "select routine_name as name, routine_definition as body from information_schema.routines \
     where routine_schema = database() and routine_name like 'postrider\\_%'";

/// The privileges on single routines, without those of who asks: the server gives them to whoever makes a routine.
const PRIVILEGES: &str = "select cast(routine_name as char) as name, cast(routine_type as char) as sort, cast(user as char) as user, \
            cast(host as char) as host, cast(proc_priv as char) as privileges \
     from mysql.procs_priv where db = database() and routine_name like 'postrider\\_%' and concat(user, '@', host) <> current_user()";

/// What all statements begin with that give a privilege.
const GRANT: &str = "grant ";

/// What is there.
#[derive(Debug, Default)]
pub(crate) struct Existing {
    /// What each routine does, where this user may see it.
    bodies: HashMap<String, Option<String>>,
    /// The statements that give the privileges on a routine.
    grants: HashMap<String, Vec<String>>,
    /// This user may not see who has a privilege.
    is_blind: bool,
    /// The routines that were there.
    before: Vec<String>,
    /// Those of them whose privileges are lost.
    forgotten: BTreeSet<String>,
}

impl Existing {
    pub(crate) async fn of(conn: &mut MySqlConnection, kind: Kind, op: &'static str) -> Result<Self> {
        let mut existing = Self::default();
        if kind == Kind::Mariadb {
            return Ok(existing);
        }
        for row in query(BODIES).fetch_all(&mut *conn).await.map_err(failed(op))? {
            let body = row.maybe_text("body", op)?.map(|body| plain(&body));
            let name = row.text("name", op)?.into_owned();
            existing.before.push(name.clone());
            existing.bodies.insert(name, body);
        }
        match query(PRIVILEGES).fetch_all(conn).await.map_err(failed(op)) {
            Ok(rows) => {
                for row in rows {
                    let grants = existing.grants.entry(row.text("name", op)?.into_owned()).or_default();
                    grants.push(grant(&row, op)?);
                }
            }
            Err(error) if error.kind() == ErrorKind::Denied => existing.is_blind = true,
            Err(error) => return Err(error),
        }
        Ok(existing)
    }

    /// Whether there is a routine that does just this, as far as its body says so.
    pub(crate) fn has(&self, definition: &Definition<'_>) -> bool {
        let body = self.bodies.get(definition.name).and_then(Option::as_deref);
        body.is_some_and(|body| body == definition.body()) && definition.is_told_by_its_body()
    }

    /// Notes that a routine takes the place of what had its name; gives the statements that give its privileges again.
    pub(crate) fn replace(&mut self, definition: &Definition<'_>) -> &[String] {
        let name = definition.name;
        if self.is_blind && self.before.iter().any(|before| before == name) {
            self.forgotten.insert(name.to_owned());
        }
        self.bodies.insert(name.to_owned(), Some(definition.body()));
        self.grants.get(name).map_or(&[], Vec::as_slice)
    }

    /// Notes that a routine is gone.
    pub(crate) fn remove(&mut self, name: &str) {
        self.bodies.remove(name);
    }

    /// What to say if privileges are lost because this user can't see them.
    pub(crate) fn warning(&self) -> Option<String> {
        let names: Vec<&str> = self.forgotten.iter().map(String::as_str).collect();
        (!names.is_empty()).then(|| {
            format!(
                "MySQL forgets the privileges on routines that are replaced, and this user may not read them (select on mysql.procs_priv): \
                 grant execute again to every user who had it on one of these alone: {}",
                names.join(", ")
            )
        })
    }
}

/// Whether a statement gives a privilege.
pub(crate) fn is_grant(statement: &str) -> bool {
    statement.starts_with(GRANT)
}

/// The statement that gives a user the privileges of a row.
fn grant(row: &MySqlRow, op: &'static str) -> Result<String> {
    let text = |column: &str| row.text(column, op).map(Cow::into_owned);
    Ok(granting(&text("name")?, &text("sort")?, [&text("user")?, &text("host")?], &text("privileges")?))
}

fn granting(name: &str, sort: &str, [user, host]: [&str; 2], privileges: &str) -> String {
    let quoted = |name: &str| format!("`{}`", name.replace('`', "``"));
    let privileges = privileges.to_lowercase();
    let (may_give, given): (Vec<&str>, Vec<&str>) = privileges
        .split(',')
        .filter(|privilege| !privilege.is_empty())
        .partition(|privilege| *privilege == "grant");
    let given = if given.is_empty() { "usage".to_owned() } else { given.join(", ") };
    let option = if may_give.is_empty() { "" } else { " with grant option" };
    format!("{GRANT}{given} on {} {name} to {}@{}{option}", sort.to_lowercase(), quoted(user), quoted(host))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_privilege_is_given_again_as_it_was() {
        assert_eq!(
            granting("postrider_record", "PROCEDURE", ["app", "%"], "Execute"),
            "grant execute on procedure postrider_record to `app`@`%`"
        );
        assert_eq!(
            granting("f", "FUNCTION", ["o`b", "10.%"], "Execute,Alter Routine,Grant"),
            "grant execute, alter routine on function f to `o``b`@`10.%` with grant option"
        );
        assert_eq!(
            granting("f", "FUNCTION", ["a", ""], "Grant"),
            "grant usage on function f to `a`@`` with grant option"
        );
    }

    #[test]
    fn who_can_not_see_privileges_is_told_what_to_grant_again() {
        let made = ["p", "q"].map(|name| format!("create procedure {name}()\n    no sql\n    select 1"));
        let warned = |is_blind| {
            let mut existing = Existing { is_blind, before: vec!["p".to_owned()], ..Existing::default() };
            for statement in &made {
                existing.replace(&Definition::of(statement).expect("a procedure"));
            }
            existing.warning()
        };
        assert!(
            warned(true).is_some_and(|said| said.ends_with("on one of these alone: p")),
            "q was not there"
        );
        assert_eq!(warned(false), None, "they are given again");
    }
}
