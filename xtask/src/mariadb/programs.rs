//! Finding the programs of a MariaDB, or of a MySQL, on this machine.

use std::env;
use std::path::{Path, PathBuf};

use crate::kind::Kind;
use crate::task_error::TaskError;

/// The variable that names the folder of the installation to use: the one with `bin` in it.
pub const VARIABLE: &str = "POSTRIDER_TEST_MYSQL_BASE";

/// Where distributions keep an installation.
const BASES: [&str; 3] = ["/usr", "/usr/local", "/opt/homebrew"];

/// Where in an installation programs lie.
const FOLDERS: [&str; 4] = ["bin", "sbin", "libexec", "scripts"];

/// The programs of one installation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Programs {
    /// The folder of the installation, where it was named.
    base: Option<PathBuf>,
    /// The server.
    pub server: PathBuf,
    /// What makes a data folder; MySQL's server does so itself.
    pub install: Option<PathBuf>,
}

impl Programs {
    /// The programs in the folder that [`VARIABLE`] names, else those of this machine; `None` if there are none.
    pub fn find() -> Result<Option<Self>, TaskError> {
        if let Some(named) = env::var_os(VARIABLE).filter(|value| !value.is_empty()) {
            let named = PathBuf::from(named);
            let found = Self::below(&named);
            let lacks = || {
                TaskError::new(format!(
                    "{VARIABLE} names {}, which has neither mariadbd with mariadb-install-db nor mysqld",
                    named.display()
                ))
            };
            return found.map(Some).ok_or_else(lacks);
        }
        let found = BASES.iter().find_map(|base| Self::below(Path::new(base)));
        Ok(found.map(|programs| Self { base: None, ..programs }))
    }

    /// The programs of the installation at `base`.
    pub fn below(base: &Path) -> Option<Self> {
        let program = |names: [&str; 2]| {
            let paths = FOLDERS.iter().flat_map(|folder| names.map(|name| base.join(folder).join(name)));
            paths.into_iter().find(|path| path.is_file())
        };
        let server = program(["mariadbd", "mysqld"])?;
        let install = program(["mariadb-install-db", "mysql_install_db"]);
        // Without it a MariaDB is of no use; a MySQL has none.
        let is_mysql = server.file_name().is_some_and(|name| name == "mysqld");
        (install.is_some() || is_mysql).then(|| Self { base: Some(base.to_owned()), server, install })
    }

    /// The folder of the installation, where it was named.
    pub fn base(&self) -> Option<&Path> {
        self.base.as_deref()
    }

    /// Whether they are those of MySQL.
    pub fn is_mysql(&self) -> bool {
        self.install.is_none()
    }

    /// What the server is called.
    pub fn name(&self) -> &'static str {
        if self.is_mysql() { "MySQL" } else { "MariaDB" }
    }

    /// What all programs have to be told.
    pub(super) fn options(&self) -> Vec<String> {
        let Some(base) = &self.base else { return Vec::new() };
        let mut options = vec![format!("--basedir={}", base.display())];
        if self.is_mysql() {
            options.push(format!("--lc-messages-dir={}", base.join("share/mysql").display()));
        }
        options
    }
}

/// The failure to find any, saying what to install.
pub fn missing() -> TaskError {
    TaskError::new(format!(
        "MariaDB is missing: install it (Debian and Ubuntu: `apt-get install mariadb-server`; Fedora: `dnf install \
         mariadb-server`; Homebrew: `brew install mariadb`), name the folder of an installation in {VARIABLE}, or a \
         server in {}",
        Kind::Mysql.variable()
    ))
}
