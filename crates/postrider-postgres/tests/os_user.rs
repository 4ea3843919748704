//! Who logs in where an address names no user.

use std::process::Command;
use std::str::FromStr;

use sqlx::postgres::PgConnectOptions;

/// An application's own pool, too: the driver is the same one.
#[test]
fn an_address_without_a_user_is_of_who_runs_the_program() {
    let told = Command::new("id").arg("-un").output().expect("id").stdout;
    let told = String::from_utf8(told).expect("a name").trim().to_owned();
    let user = std::env::var("PGUSER").unwrap_or(told);
    assert_eq!(PgConnectOptions::new().get_username(), user);
    let options = PgConnectOptions::from_str("postgres://localhost/shop").expect("an address");
    assert_eq!(options.get_username(), user);
}
