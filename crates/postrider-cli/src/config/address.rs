//! The address of a database, before a driver sees it: what the driver would misread or pass over is refused.

use std::borrow::Cow;

use postrider::store::nearest;

/// What each driver knows behind the `?`.
const POSTGRES: &[&str] = &[
    "application_name",
    "dbname",
    "host",
    "hostaddr",
    "options",
    "password",
    "port",
    "sslcert",
    "sslkey",
    "sslmode",
    "sslrootcert",
    "statement-cache-capacity",
    "user",
];
const MYSQL: &[&str] = &[
    "charset",
    "collation",
    "socket",
    "sslca",
    "sslcert",
    "sslkey",
    "sslmode",
    "statement-cache-capacity",
    "timezone",
];
const SQLITE: &[&str] = &["cache", "immutable", "mode", "vfs"];
/// What vendors write into addresses of PostgreSQL and the driver does not know: understood here, and not shown to it.
const VENDORS: &[&str] = &["channel_binding", "pgbouncer"];
/// Other spellings of the same.
const SPELLINGS: &[&str] = &["ssl-ca", "ssl-cert", "ssl-key", "ssl-mode", "ssl-root-cert", "time-zone"];

/// What is wrong with an address, if anything: a sentence that shows nothing of a password.
pub(crate) fn check(url: &str) -> Result<(), String> {
    if let Some((_, rest)) = url.split_once("://").filter(|_| !url.starts_with("sqlite:")) {
        escaped(rest)?;
    }
    parameters(url)?;
    if is_postgres(url) { vendors(url) } else { Ok(()) }
}

/// Whether the address of a PostgreSQL says that it leads to a pooler in transaction mode.
pub(crate) fn names_a_pooler(url: &str) -> bool {
    is_postgres(url) && settings(url).any(|setting| setting == ("pgbouncer", "true"))
}

/// The address of a PostgreSQL as its driver gets it: without what it does not know, and would warn of.
pub(crate) fn for_driver(url: &str) -> Cow<'_, str> {
    let is_vendors = |setting: &str| VENDORS.contains(&setting.split('=').next().unwrap_or_default());
    match url.split_once('?') {
        Some((place, query)) if query.split('&').any(is_vendors) => {
            let left: Vec<&str> = query.split('&').filter(|setting| !is_vendors(setting)).collect();
            Cow::Owned(format!("{place}?{}", left.join("&")))
        }
        _ => Cow::Borrowed(url),
    }
}

fn is_postgres(url: &str) -> bool {
    url.starts_with("postgres:") || url.starts_with("postgresql:")
}

/// Names and values behind the `?`.
fn settings(url: &str) -> impl Iterator<Item = (&str, &str)> {
    let query = url.split_once('?').map_or("", |(_, query)| query);
    query
        .split('&')
        .filter(|setting| !setting.is_empty())
        .map(|setting| setting.split_once('=').unwrap_or((setting, "")))
}

/// Whether what vendors write can be kept.
fn vendors(url: &str) -> Result<(), String> {
    for (name, value) in settings(url) {
        match (name, value) {
            // The driver never binds the channel, which is what both allow.
            ("channel_binding", "prefer" | "disable") | ("pgbouncer", "true" | "false") => {}
            ("channel_binding", "require") => {
                return Err("its channel_binding=require can't be met, because the driver has no channel binding; write \
                            channel_binding=prefer, and sslmode=verify-full to check who the server is"
                    .to_owned());
            }
            ("channel_binding", _) => {
                return Err("its parameter \"channel_binding\" must be prefer or disable".to_owned());
            }
            ("pgbouncer", _) => return Err("its parameter \"pgbouncer\" must be true or false".to_owned()),
            _ => {}
        }
    }
    Ok(())
}

/// Whether user and password are written so that they end where they are meant to.
fn escaped(rest: &str) -> Result<(), String> {
    let unescaped = |sign: char, code: &str| {
        Err(format!(
            "the user or password contains an unescaped {sign}; write it as {code} (%40 for @, %23 for #, %2F for /, \
             %3F for ?)"
        ))
    };
    let (authority, behind) = match rest.find(['/', '?', '#']) {
        Some(end) => rest.split_at(end),
        None => (rest, ""),
    };
    if authority.matches('@').count() > 1 {
        return unescaped('@', "%40");
    }
    // Nothing of a database is behind a `#`.
    if behind.contains('#') {
        return match behind.split_once('#').is_some_and(|(_, behind)| behind.contains('@')) {
            true => unescaped('#', "%23"),
            false => Err("the URL contains an unescaped #; write it as %23".to_owned()),
        };
    }
    let before_at = |text: &str| text.split_once('@').map(|(before, _)| before.to_owned());
    // What looks like a host and its port is a user and the first part of a password.
    let is_port = authority.rsplit_once(':').is_none_or(|(_, port)| port.chars().all(|c| c.is_ascii_digit()));
    match behind.chars().next() {
        _ if authority.contains('@') && !behind.contains('@') => Ok(()),
        // No name of a database has one: it ends a password.
        Some('/')
            if !authority.contains('@')
                && behind.split('?').next().is_some_and(|path| path.contains('@')) =>
        {
            unescaped('/', "%2F")
        }
        Some('/') if !authority.contains('@') && !is_port && behind.contains('@') => unescaped('/', "%2F"),
        Some('?') if before_at(behind).is_some_and(|part| !part.contains('=') || !is_port) => {
            unescaped('?', "%3F")
        }
        // The `@` in the password ended it, and the rest of it is read as the host.
        Some('/')
            if authority.contains('@') && behind.split('?').next().is_some_and(|path| path.contains('@')) =>
        {
            unescaped('@', "%40")
        }
        _ => Ok(()),
    }
}

/// Whether the driver knows what is behind the `?`; it would pass over what it does not know.
fn parameters(url: &str) -> Result<(), String> {
    let known = match url.split(':').next() {
        Some("sqlite") => SQLITE,
        Some("mysql" | "mariadb") => MYSQL,
        _ => POSTGRES,
    };
    let Some((_, query)) = url.split_once('?') else { return Ok(()) };
    for (name, _) in settings(url) {
        let is_option = name.starts_with("options[") || name.to_lowercase().starts_with("options%5b");
        let is_postgres = std::ptr::eq(known, POSTGRES);
        let is_spelling = SPELLINGS.contains(&name) && !std::ptr::eq(known, SQLITE);
        let is_vendors = VENDORS.contains(&name) && is_postgres;
        if known.contains(&name) || is_spelling || is_vendors || (is_option && is_postgres) {
            continue;
        }
        // A `&` in a password may have ended it.
        if query.to_lowercase().contains("password") || query.contains('@') {
            return Err(format!(
                "the URL has an unknown parameter; the known ones are {}; write & in a password as %26",
                known.join(", ")
            ));
        }
        let vendors = VENDORS.iter().filter(|_| is_postgres);
        let what = match nearest(name, known.iter().chain(vendors).copied()) {
            Some(meant) => format!("did you mean {meant:?}?"),
            None => format!("the known ones are {}", known.join(", ")),
        };
        return Err(format!("unknown parameter {name:?}; {what}"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sign_that_is_not_escaped_is_named_with_how_to_write_it() {
        for (url, words) in [
            ("postgres://ada:ge@heim@db/shop", "an unescaped @; write it as %40"),
            ("postgres://ada:ge#heim@db/shop", "an unescaped #; write it as %23"),
            ("postgres://ada:12#34@db/shop", "an unescaped #; write it as %23"),
            ("postgres://ada:ge@h#eim@db/shop", "an unescaped #; write it as %23"),
            ("mysql://ada:ge/heim@db/shop", "an unescaped /; write it as %2F"),
            ("mysql://ada:ge?heim@db/shop", "an unescaped ?; write it as %3F"),
            ("postgres://ada:ge?heim=x@db/shop", "an unescaped ?; write it as %3F"),
            ("postgres://ada:/heim@db/shop", "an unescaped /; write it as %2F"),
            ("postgres://ada:12/heim@db/shop", "an unescaped /; write it as %2F"),
            ("postgres://ada:ge@he/im@db/shop", "an unescaped @; write it as %40"),
            ("postgres://db/shop?user=ada&password=ge#heim", "an unescaped #; write it as %23"),
            ("postgres://db/shop#heim", "an unescaped #; write it as %23"),
        ] {
            let sentence = check(url).expect_err(url);
            assert!(sentence.contains(words), "{url}: {sentence}");
            assert!(!sentence.contains("heim") && !sentence.contains("ge@"), "{sentence}");
        }
    }

    #[test]
    fn what_a_driver_understands_is_not_refused() {
        for url in [
            "postgres://ada:ge%40h%23eim@db:5432/shop?sslmode=require",
            "postgres://db/shop",
            "postgres:///shop?host=/run/postgresql",
            "postgres://%2Frun%2Fpostgresql/shop",
            "postgres://db:5432/shop?application_name=a@b",
            "postgres://ada@db/shop?sslmode=require&channel_binding=prefer",
            "postgresql://ada@db/shop?channel_binding=disable&pgbouncer=false",
            "postgres://ada@db:6543/shop?pgbouncer=true",
            "postgres://ada@db/shop?options[search_path]=x&options=-c%20a=b",
            "mariadb://ada@db/shop?ssl-mode=REQUIRED",
            "sqlite:shop.db?mode=rwc",
            "sqlite:/a@b/c#d.db",
            "sqlite://shop.db",
        ] {
            assert_eq!(check(url), Ok(()), "{url}");
        }
    }

    #[test]
    fn a_parameter_that_no_driver_knows_is_refused() {
        for (url, words) in [
            ("postgres://db/shop?sslmod=require", "unknown parameter \"sslmod\"; did you mean \"sslmode\"?"),
            (
                "mysql://db/shop?connect_timeout=3",
                "unknown parameter \"connect_timeout\"; the known ones are charset",
            ),
            ("sqlite:shop.db?sslmode=require", "unknown parameter \"sslmode\""),
            ("mysql://db/shop?pgbouncer=true", "unknown parameter \"pgbouncer\""),
            ("postgres://db/shop?pgbouncer=yes", "its parameter \"pgbouncer\" must be true or false"),
            ("postgres://db/shop?pgbounce=true", "did you mean \"pgbouncer\"?"),
            ("postgres://db/shop?channel_binding=on", "must be prefer or disable"),
            (
                "postgres://db/shop?sslmode=require&channel_binding=require",
                "because the driver has no channel binding; write channel_binding=prefer, and sslmode=verify-full",
            ),
            ("mysql://db/shop?options[a]=b", "unknown parameter \"options[a]\""),
        ] {
            let sentence = check(url).expect_err(url);
            assert!(sentence.contains(words), "{url}: {sentence}");
        }
        let sentence = check("postgres://db/shop?password=ge&heim=x").expect_err("a part of a password");
        assert!(sentence.contains("%26") && !sentence.contains("heim"), "{sentence}");
    }

    #[test]
    fn the_driver_does_not_see_what_vendors_write() {
        for (url, seen) in [
            ("postgres://db/shop?pgbouncer=true", "postgres://db/shop?"),
            (
                "postgres://db/shop?sslmode=require&channel_binding=prefer&user=ada",
                "postgres://db/shop?sslmode=require&user=ada",
            ),
            ("postgres://db/shop?options=-c%20a=b", "postgres://db/shop?options=-c%20a=b"),
        ] {
            assert_eq!(for_driver(url), seen);
        }
        assert!(names_a_pooler("postgres://db/shop?sslmode=require&pgbouncer=true"));
        for url in
            ["postgres://db/shop?pgbouncer=false", "postgres://db/pgbouncer=true", "sqlite:a?pgbouncer=true"]
        {
            assert!(!names_a_pooler(url), "{url}");
        }
    }
}
