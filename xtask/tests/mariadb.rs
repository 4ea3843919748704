//! The promises of a MariaDB of one's own.

use std::time::Duration;

use xtask::mariadb::Mariadb;
use xtask::process;

#[test]
fn a_mariadb_comes_back_after_a_kill_and_leaves_nothing_behind() {
    let mut server = Mariadb::create(&[]).expect("a server");
    let (folder, first) = (server.folder().to_owned(), server.pid().expect("it runs"));
    server.kill().expect("killed");
    assert!(server.pid().is_none() && !process::is_running(first, &folder));
    server.start().expect("started again");
    let second = server.pid().expect("it runs");
    server.stop().expect("stopped");
    server.start().expect("started once more");
    drop(server);
    assert!(process::wait_until(Duration::from_secs(20), || !process::is_running(second, &folder)));
    assert!(!folder.exists());
}

#[test]
fn a_mariadb_that_does_not_start_says_why() {
    let failure = Mariadb::create(&[("innodb-page-size", "17")]).expect_err("no such size");
    assert!(failure.to_string().contains("did not start; the end of its log"), "{failure}");
}
