//! A database that is not as it should be, and secrets that nobody is to see.

use std::process::Stdio;

use postrider_testkit::address;
use sqlx::PgPool;
use xtask::postgres::Cluster;

use crate::support::log::{Log, Mess, said};
use crate::support::{Database, Folder, postrider};

/// Every command that opens the log.
fn commands(event: &str) -> Vec<Vec<&str>> {
    let all: [&[&str]; 12] = [
        &["status"],
        &["events"],
        &["events", "show", event],
        &["dead", "list"],
        &["dead", "show", event],
        &["dead", "requeue", "--all", "--yes"],
        &["subscriptions", "list"],
        &["subscriptions", "create", "x"],
        &["subscriptions", "pause", "x", "--yes"],
        &["replay", "x", "--since", "1h", "--yes"],
        &["record", "--stream", "s", "--type", "T", "--aggregate", "A", "1", "{}"],
        &["audit"],
    ];
    all.iter().map(|each| each.to_vec()).collect()
}

const NOBODY: &str = "00000000-0000-4000-8000-000000000000";

/// What each command says of a database: one sentence, exit code 1.
fn sentences(url: &str) -> Vec<String> {
    let children = commands(NOBODY).into_iter().map(|arguments| {
        let mut command = postrider(url, &arguments);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts")
    });
    let children: Vec<_> = children.collect();
    children.into_iter().map(|child| said(&child.wait_with_output().expect("it ends")).sentence(1)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_schema_that_was_not_migrated_is_a_sentence() {
    let database = Database::new().await;
    let folder = Folder::new();
    let file = folder.file("empty.db", "");
    for url in [database.url(), format!("sqlite:{}", file.display())] {
        for sentence in sentences(&url) {
            assert!(sentence.contains("postrider migrate"), "{sentence}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_is_away_is_a_sentence() {
    let port = address::nobody().port();
    for (url, place) in [
        (
            format!("postgres://user:planted-password@127.0.0.1:{port}/shop"),
            format!("host 127.0.0.1, port {port}, database shop"),
        ),
        (
            format!("mysql://user:planted-password@127.0.0.1:{port}/shop"),
            format!("host 127.0.0.1, port {port}, database shop"),
        ),
        ("sqlite:/nowhere/at/all/shop.db".to_owned(), "the file /nowhere/at/all/shop.db".to_owned()),
    ] {
        for sentence in sentences(&url) {
            assert!(sentence.contains(&format!("the address is {place}")), "{sentence}");
            assert!(!sentence.contains("planted-password"), "{sentence}");
        }
    }
    let missing = address::postgres()
        .rsplit_once('/')
        .map(|(base, _)| format!("{base}/not_there"))
        .expect("an address");
    for sentence in sentences(&missing) {
        assert!(sentence.contains("there is no such database"), "{sentence}");
        assert!(sentence.contains("database not_there"), "{sentence}");
    }
}

#[test]
fn a_file_that_is_no_database_is_named() {
    let folder = Folder::new();
    let file = folder.file("notes.txt", &"not a database\n".repeat(100));
    let url = format!("sqlite:{}", file.display());
    for arguments in [&["migrate"][..], &["status"]] {
        let sentence = said(&postrider(&url, arguments).output().expect("it runs")).sentence(1);
        assert!(sentence.contains(&format!("the file {}", file.display())), "{sentence}");
    }
}

/// A server that takes connections and says nothing.
#[test]
fn a_database_that_says_nothing_is_named() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = silent.local_addr().expect("its address").port();
    let url = format!("postgres://user:planted-password@127.0.0.1:{port}/shop");
    let sentence = said(&postrider(&url, &["status"]).output().expect("it runs")).sentence(1);
    assert!(sentence.contains(&format!("host 127.0.0.1, port {port}, database shop")), "{sentence}");
    assert!(!sentence.contains("planted-password"), "{sentence}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_password_is_a_sentence_without_it() {
    let mut cluster = Cluster::create(&[]).expect("this test has a PostgreSQL of its own");
    let pool = PgPool::connect(&cluster.url("postgres")).await.expect("connected");
    sqlx::raw_sql("create role app login password 'right'").execute(&pool).await.expect("a role");
    pool.close().await;
    let rules = "host all app 127.0.0.1/32 scram-sha-256\nhost all all 127.0.0.1/32 trust\n";
    std::fs::write(cluster.data_dir().join("pg_hba.conf"), rules).expect("the rules");
    cluster.stop().expect("stopped");
    cluster.start().expect("started");
    let address = cluster.url("postgres");
    let (_, host) = address.rsplit_once('@').expect("an address with a user");
    for sentence in sentences(&format!("postgres://app:planted-password@{host}")) {
        assert!(sentence.contains("refused the login; check user and password"), "{sentence}");
        assert!(sentence.contains("the address is host 127.0.0.1, port "), "{sentence}");
        assert!(!sentence.contains("planted-password"), "{sentence}");
    }
}

/// As `psql` does; without the features that postrider-postgres asks for, the driver would log in as `anonymous`.
#[tokio::test(flavor = "multi_thread")]
async fn where_no_user_is_named_it_is_the_one_who_runs_the_program() {
    let cluster = Cluster::create(&[]).expect("this test has a PostgreSQL of its own");
    let user = std::process::Command::new("id").arg("-un").output().expect("id").stdout;
    let user = String::from_utf8(user).expect("a name").trim().to_owned();
    let address = cluster.url("postgres");
    let (_, host) = address.rsplit_once('@').expect("an address with a user");
    let url = format!("postgres://{host}");
    let pool = PgPool::connect(&address).await.expect("connected");
    let role = format!("create role \"{user}\" superuser login");
    sqlx::raw_sql(sqlx::AssertSqlSafe(role)).execute(&pool).await.expect("a role");
    pool.close().await;
    let migrated = postrider(&url, &["migrate"]).output().expect("it runs");
    assert!(migrated.status.success(), "{}", String::from_utf8_lossy(&migrated.stderr));
}

#[test]
fn no_database_at_all_is_a_sentence_that_says_how_to_name_one() {
    for arguments in commands(NOBODY) {
        let mut command = postrider("", &arguments);
        let sentence =
            said(&command.env_remove("POSTRIDER_STORE_URL").output().expect("it runs")).sentence(2);
        assert!(sentence.contains("POSTRIDER_STORE_URL or with --store"), "{sentence}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_makes_no_sense_is_the_caller_s_mistake() {
    let log = Log::postgres().await;
    let sentence = log.run(&["status", "--schema", "Not A Schema"]).sentence(2);
    assert!(sentence.contains("a schema's name must have"), "{sentence}");
    let sentence = log.run(&["status", "--store", "oracle://shop"]).sentence(2);
    assert!(sentence.contains("it must begin with postgres://"), "{sentence}");
    for arguments in
        [&["events", "--since", "yesterday"][..], &["events", "--limit", "0"], &["dead"], &["statsu"]]
    {
        assert_eq!(log.run(arguments).code, Some(2), "{arguments:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_secret_and_no_payload_is_in_any_output() {
    let mess = Mess::new(Log::postgres().await).await;
    let (scheme, rest) = mess.log.url.split_once("://").expect("an address");
    let (user, host) = rest.split_once('@').expect("a user");
    let url = format!("{scheme}://{user}:planted-password@{host}");
    let settings = "[sink.hook]\ntype = \"http\"\nurl = \"http://u:planted-login@hook.invalid/planted-path\"\ntoken = \"planted-token\"\n\
         [[subscription]]\nname = \"hook\"\nsink = \"hook\"\n";
    let file = mess.log.folder.file("p.toml", settings).display().to_string();
    let event = mess.dead.to_string();
    let mut all: Vec<Vec<&str>> = commands(&event);
    for more in [
        &["status", "--json"][..],
        &["events", "--json"],
        &["events", "show", &event, "--json"],
        &["dead", "list", "--json"],
        &["subscriptions", "create"],
        &["subscriptions", "list", "--json"],
        &["replay", "mail", "--since", "1h", "--dry-run"],
        &["audit", "--json"],
        &["config", "check"],
        &["migrate"],
        &["migrate", "--json"],
        &["migrate", "--print"],
        // Neither can start, and each says why.
        &["relay", "--set", "store.schema=not_there", "--set", "http.listen=off"],
        &["relay", "--store", "postgres://ada:planted-password@127.0.0.1:port/shop"],
    ] {
        all.push(more.to_vec());
    }
    for mut arguments in all {
        arguments.extend(["--config", &file]);
        let said = said(&postrider(&url, &arguments).output().expect("it runs"));
        let shown = said.out + &said.err;
        assert!(!shown.contains("planted"), "{arguments:?}: {shown}");
    }
}
