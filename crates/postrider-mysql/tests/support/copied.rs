//! A log on a server of its own, and copies of it as the server's programs make them.

use std::io::Write as _;
use std::process::{Command, Stdio};
use std::str::FromStr;

use postrider_core::Clock;
use sqlx::mysql::MySqlConnectOptions;
use xtask::mariadb::Mariadb;

use super::{My, MyLog};

/// A log on a server of its own, and a copy of it to go back to.
pub struct Copied {
    pub server: Mariadb,
    pub log: MyLog,
}

impl Copied {
    pub async fn start() -> Self {
        let server = Mariadb::create(&[]).expect("a MariaDB");
        let options = MySqlConnectOptions::from_str(&server.url("test")).expect("an address");
        let log = My::default().log_on(options, Clock::Database).await;
        Self { server, log }
    }

    pub fn client(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.arg("--no-defaults").args(["-h127.0.0.1", "-uroot"]).arg(format!("-P{}", self.server.port()));
        command
    }

    pub fn dump(&self, options: &[&str]) -> Vec<u8> {
        let mut dump = self.client("mariadb-dump");
        let dump =
            dump.arg("--single-transaction").args(options).arg(self.log.database()).output().expect("a dump");
        assert!(dump.status.success(), "{}", String::from_utf8_lossy(&dump.stderr));
        dump.stdout
    }

    /// Puts a dump into a database, whatever of it fails.
    pub fn restore(&self, database: &str, dump: &[u8]) {
        let mut client = self.client("mariadb");
        let client = client.arg("--force").arg(database).stdin(Stdio::piped()).stderr(Stdio::null());
        let mut client = client.spawn().expect("a client");
        client.stdin.take().expect("its input").write_all(dump).expect("written");
        client.wait().expect("its end");
    }
}
