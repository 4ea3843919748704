//! Who runs this program, by the operating system: the user that PostgreSQL is asked for where an address names none, as `psql` does.

/// The name of the user that runs this process, if it can be told.
pub(crate) fn name() -> Option<String> {
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    account().or_else(|| variable("USER")).or_else(|| variable("LOGNAME"))
}

/// The name in the list of accounts. Variables may be another's: under `sudo`, in containers.
#[cfg(unix)]
fn account() -> Option<String> {
    use std::os::unix::fs::MetadataExt;
    let id = std::fs::metadata("/proc/self").ok()?.uid();
    name_of(id, &std::fs::read_to_string("/etc/passwd").ok()?)
}

#[cfg(not(unix))]
fn account() -> Option<String> {
    None
}

/// The name of a user id in a list of accounts: `name:password:id:…`, a line each.
fn name_of(id: u32, accounts: &str) -> Option<String> {
    let name = |line: &str| {
        let mut fields = line.split(':');
        let (name, of) = (fields.next()?, fields.nth(1)?);
        (of.parse() == Ok(id) && !name.is_empty()).then(|| name.to_owned())
    };
    accounts.lines().find_map(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_found_by_its_id() {
        let accounts = "root:x:0:0:root:/root:/bin/bash\n\n+nis\nada:x:1000:1000::/home/ada:/bin/sh\n";
        assert_eq!(name_of(0, accounts).as_deref(), Some("root"));
        assert_eq!(name_of(1000, accounts).as_deref(), Some("ada"));
        assert_eq!(name_of(7, accounts), None);
    }
}
