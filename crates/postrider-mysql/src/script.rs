//! Migrations as statements, and what the two kinds of servers make of them.
//!
//! This module owns how a trigger or a routine takes the place of another: without a moment in which there is none, except for a routine on
//! MySQL, which is left alone unless it changes.

use crate::existing::Existing;
use crate::migrate::all_statements;
use crate::server::Kind;

/// What is made by a statement and can be made anew without touching a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Object {
    Trigger,
    Procedure,
    Function,
    View,
}

/// A statement that makes such a thing.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Definition<'t> {
    pub(crate) object: Object,
    pub(crate) name: &'t str,
    /// All that follows the name.
    rest: &'t str,
}

impl Object {
    const ALL: [Self; 4] = [Self::Trigger, Self::Procedure, Self::Function, Self::View];

    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Trigger => "trigger",
            Self::Procedure => "procedure",
            Self::Function => "function",
            Self::View => "view",
        }
    }
}

impl<'t> Definition<'t> {
    pub(crate) fn of(statement: &'t str) -> Option<Self> {
        let rest = statement.strip_prefix("create ")?;
        let rest = rest.strip_prefix("or replace ").unwrap_or(rest);
        let (word, rest) = rest.split_once(' ')?;
        let object = Object::ALL.into_iter().find(|object| object.word() == word)?;
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_')?;
        Some(Self { object, name: &rest[..end], rest: &rest[end..] })
    }

    /// What it does, without its parameters, comments and line breaks: as the server keeps it.
    pub(crate) fn body(&self) -> String {
        let ends = ["sql data\n", "no sql\n", "for each row\n", " as\n"];
        let body = ends.iter().find_map(|end| self.rest.split_once(end)).map_or(self.rest, |(_, body)| body);
        plain(body)
    }

    /// Whether what has its name and its body is the same: no migration ever made one that differs in its parameters alone.
    pub(crate) fn is_told_by_its_body(&self) -> bool {
        all_statements().iter().filter_map(|statement| Definition::of(statement)).all(|other| {
            other.name != self.name || other.body() != self.body() || plain(other.rest) == plain(self.rest)
        })
    }

    /// The statements that put it in the place of what has its name. Somebody who writes meanwhile has the old trigger, view or routine or
    /// the new one; on MySQL somebody who calls a routine that changes may find none: the call fails and did nothing.
    fn statements(&self, kind: Kind, existing: &mut Existing) -> Vec<String> {
        let Self { object, name, rest } = *self;
        let word = object.word();
        if kind == Kind::Mariadb || object == Object::View {
            return vec![format!("create or replace {word} {name}{rest}")];
        }
        let made = |name: &str| format!("create {word} {name}{rest}");
        let gone = |name: &str| format!("drop {word} if exists {name}");
        let table =
            rest.split_once(" on ").and_then(|(_, rest)| rest.split_once(' ')).map(|(table, _)| table);
        match table.filter(|_| object == Object::Trigger) {
            // Nobody writes while the table is locked. A server that may make no trigger says so before the old one is gone, and who is
            // cut off in the middle leaves one of the two.
            Some(table) => {
                let spare = format!("{name}_spare");
                let lock = format!("lock tables {table} write");
                let swap = [gone(&spare), made(&spare), gone(name), made(name), gone(&spare)];
                [lock].into_iter().chain(swap).chain(["unlock tables".to_owned()]).collect()
            }
            None if existing.has(self) => Vec::new(),
            None => {
                let mut statements = vec![gone(name), made(name)];
                statements.extend_from_slice(existing.replace(self));
                statements
            }
        }
    }
}

/// Text to be compared: without comments and quotation marks, which servers keep in ways of their own, and with single spaces.
pub(crate) fn plain(text: &str) -> String {
    let lines = text.lines().filter(|line| !line.trim_start().starts_with("--"));
    let words: Vec<&str> = lines.flat_map(str::split_whitespace).collect();
    words.join(" ").trim_end_matches(';').replace('\'', "")
}

/// The statements of a migration, as a kind of server takes them that has these routines.
pub(crate) fn for_server(statements: &[String], kind: Kind, existing: &mut Existing) -> Vec<String> {
    let mut taken = Vec::new();
    for (place, statement) in statements.iter().enumerate() {
        let next = statements.get(place + 1).and_then(|next| Definition::of(next));
        match Definition::of(statement) {
            Some(definition) => taken.extend(definition.statements(kind, existing)),
            // What is made next takes its place.
            None if next.is_some_and(|next| dropped(statement) == Some(next.name)) => {}
            None => {
                dropped(statement).into_iter().for_each(|name| existing.remove(name));
                taken.push(statement.clone());
            }
        }
    }
    taken
}

/// What a statement takes away, if it takes away such a thing.
pub(crate) fn dropped(statement: &str) -> Option<&str> {
    let rest = statement.strip_prefix("drop ")?;
    Object::ALL.iter().find_map(|object| rest.strip_prefix(object.word())?.strip_prefix(" if exists "))
}

/// The statements of a migration: each begins a line and ends before an empty one; what is within one is indented.
pub(crate) fn statements(text: &str) -> Vec<String> {
    let (mut statements, mut statement) = (Vec::new(), String::new());
    let mut lines = text.lines().filter(|line| !line.starts_with("--")).peekable();
    while let Some(line) = lines.next() {
        statement.push_str(line);
        statement.push('\n');
        let is_last = line.ends_with(';') && lines.peek().is_none_or(|next| next.is_empty());
        if is_last && (!line.starts_with(' ') || !statement.contains("\nbegin\n")) {
            statements.push(statement.trim().trim_end_matches(';').to_owned());
            statement.clear();
        }
    }
    statements
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRIGGER: &str =
        "create or replace trigger t before insert on shop for each row\nbegin\n    set new.n = 1;\nend";

    #[test]
    fn a_trigger_is_replaced_and_never_missing() {
        let replaced = ["drop trigger if exists t".to_owned(), TRIGGER.to_owned()];
        assert_eq!(for_server(&replaced, Kind::Mariadb, &mut Existing::default()), [TRIGGER]);
        let mysql = for_server(&replaced, Kind::Mysql, &mut Existing::default());
        let begins: Vec<_> =
            mysql.iter().map(|line| line.split(" before").next().unwrap_or_default()).collect();
        let expected = [
            "lock tables shop write",
            "drop trigger if exists t_spare",
            "create trigger t_spare",
            "drop trigger if exists t",
            "create trigger t",
            "drop trigger if exists t_spare",
            "unlock tables",
        ];
        assert_eq!(begins, expected);
        let gone = ["drop procedure if exists p".to_owned()];
        assert_eq!(for_server(&gone, Kind::Mysql, &mut Existing::default()), gone);
    }

    #[test]
    fn a_routine_is_left_alone_only_where_its_body_tells_it_from_every_earlier_one() {
        let statements = all_statements();
        let last = |name: &str| {
            let mut made = statements.iter().filter_map(|statement| Definition::of(statement));
            made.rfind(|made| made.name == name).expect("a routine")
        };
        let mut existing = Existing::default();
        for (name, is_left) in
            [("postrider_record", true), ("postrider_record_with", true), ("postrider_stand", false)]
        {
            assert!(!existing.has(&last(name)), "{name} is not there");
            existing.replace(&last(name));
            assert_eq!(existing.has(&last(name)), is_left, "{name}");
        }
    }

    #[test]
    fn a_body_is_told_from_what_surrounds_it() {
        let body = Definition::of(TRIGGER).expect("a trigger").body();
        assert_eq!(body, "begin set new.n = 1; end");
        let call = "create procedure p(\n    in a int)\n    modifies sql data\n    call q(a)";
        assert_eq!(
            Definition::of(call).map(|made| (made.name, made.body())),
            Some(("p", "call q(a)".to_owned()))
        );
        assert!(Definition::of("create table if not exists t (\n    n int)").is_none());
    }
}
