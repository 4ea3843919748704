//! The address of a database, before a driver sees it: what the driver would misread or pass over is refused.

use super::nearest::nearest;

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
/// Other spellings of the same.
const SPELLINGS: &[&str] = &["ssl-ca", "ssl-cert", "ssl-key", "ssl-mode", "ssl-root-cert", "time-zone"];

/// What is wrong with an address, if anything: a sentence that shows nothing of a password.
pub(crate) fn check(url: &str) -> Result<(), String> {
    if let Some((_, rest)) = url.split_once("://").filter(|_| !url.starts_with("sqlite:")) {
        escaped(rest)?;
    }
    parameters(url)
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
    let names = query.split('&').map(|setting| setting.split('=').next().unwrap_or_default());
    for name in names.filter(|name| !name.is_empty()) {
        let is_option = name.starts_with("options[") || name.to_lowercase().starts_with("options%5b");
        let is_postgres = std::ptr::eq(known, POSTGRES);
        let is_spelling = SPELLINGS.contains(&name) && !std::ptr::eq(known, SQLITE);
        if known.contains(&name) || is_spelling || (is_option && is_postgres) {
            continue;
        }
        // A `&` in a password may have ended it.
        if query.to_lowercase().contains("password") || query.contains('@') {
            return Err(format!(
                "the URL has an unknown parameter; the known ones are {}; write & in a password as %26",
                known.join(", ")
            ));
        }
        let what = match nearest(name, known.iter().copied()) {
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
            ("mysql://db/shop?options[a]=b", "unknown parameter \"options[a]\""),
        ] {
            let sentence = check(url).expect_err(url);
            assert!(sentence.contains(words), "{url}: {sentence}");
        }
        let sentence = check("postgres://db/shop?password=ge&heim=x").expect_err("a part of a password");
        assert!(sentence.contains("%26") && !sentence.contains("heim"), "{sentence}");
    }
}
