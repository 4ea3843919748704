//! `postrider migrate`, and what it prints.

use sqlx::AssertSqlSafe;

use crate::support::{Fixture, until_true};

/// What a DBA runs by hand is what `migrate` would have run.
#[tokio::test(flavor = "multi_thread")]
async fn the_printed_migration_makes_a_schema_that_a_relay_works_with() {
    let fixture = Fixture::new().await;
    let (code, sql) = fixture.run(&["migrate", "--print"]);
    assert_eq!(code, Some(0), "{sql}");
    let (code, said) = fixture.run(&["status"]);
    assert!(code == Some(1) && said.contains("postrider migrate"), "nothing was run: {said}");
    sqlx::raw_sql(AssertSqlSafe(sql)).execute(&fixture.pool).await.expect("it runs by hand");
    let relay_process = fixture.relay("one");
    fixture.record(0, 3).await;
    until_true("all are delivered", || relay_process.lines().len() == 3).await;
    let (code, said) = fixture.run(&["migrate", "--json"]);
    let said: serde_json::Value = serde_json::from_str(&said).expect("JSON");
    assert_eq!((code, &said["done"], &said["schema"]), (Some(0), &"nothing".into(), &"postrider".into()));
    assert_eq!(said["up_to_date"], true);
}

/// Made, brought up to date, or left alone: each is said, with its versions.
#[tokio::test(flavor = "multi_thread")]
async fn a_migration_says_what_it_did() {
    let fixture = Fixture::new().await;
    let latest = postrider::postgres::schema_version();
    let (_, all) = fixture.run(&["migrate", "--print", "--all"]);
    let (code, said) = fixture.run(&["migrate"]);
    assert_eq!((code, said), (Some(0), format!("created the schema postrider, version {latest}\n")));
    let nothing = format!("nothing to do: the schema postrider is up to date, at version {latest}\n");
    assert_eq!(fixture.run(&["migrate"]), (Some(0), nothing));
    // As an older version left it.
    let (older, _) = all.split_once("\n-- migration 4:").expect("a fourth migration");
    let older = AssertSqlSafe(format!("drop schema postrider cascade;\n{older}\ncommit;"));
    sqlx::raw_sql(older).execute(&fixture.pool).await.expect("an older schema");
    let (code, said) = fixture.run(&["migrate", "--json"]);
    let said: serde_json::Value = serde_json::from_str(&said).expect("JSON");
    assert_eq!((code, &said["done"]), (Some(0), &"updated".into()));
    assert_eq!((&said["from"], &said["to"]), (&3.into(), &latest.into()));
    let url = format!("sqlite:{}", fixture.folder.path().join("shop.db").display());
    let (code, said) = fixture.run(&["migrate", "--store", &url]);
    assert!(code == Some(0) && said.starts_with("created the schema, version "), "{said}");
    let (code, said) = fixture.run(&["migrate", "--store", &url]);
    assert!(code == Some(0) && said.starts_with("nothing to do: the schema is up to date"), "{said}");
    for url in [&fixture.url, &url] {
        let limit = ["migrate", "--store", url, "--set", "store.max_payload=50"];
        let (code, said) = fixture.run(&limit);
        assert!(
            code == Some(0) && said.starts_with("set the payload limit to 50 bytes; the schema"),
            "{said}"
        );
        let (code, said) = fixture.run(&limit);
        assert!(code == Some(0) && said.starts_with("nothing to do: the schema"), "it is set: {said}");
        let (code, said) =
            fixture.run(&["migrate", "--json", "--store", url, "--set", "store.max_payload=60"]);
        let said: serde_json::Value = serde_json::from_str(&said).expect("JSON");
        assert_eq!((code, &said["done"], &said["max_payload"]), (Some(0), &"limited".into(), &60.into()));
    }
}

/// A schema that is there is not made again: what it has is left out, and where nothing is lacking nothing is to be run.
#[tokio::test(flavor = "multi_thread")]
async fn only_what_the_database_lacks_is_printed_unless_all_is_asked_for() {
    let fixture = Fixture::new().await;
    let (code, all) = fixture.run(&["migrate", "--print", "--all"]);
    assert!(code == Some(0) && all.contains("-- migration 1: log"), "{all}");
    // As an older version left it.
    let (older, _) = all.split_once("\n-- migration 4:").expect("a fourth migration");
    let older = AssertSqlSafe(format!("{older}\ncommit;"));
    sqlx::raw_sql(older).execute(&fixture.pool).await.expect("an older schema");
    let (code, pending) = fixture.run(&["migrate", "--print"]);
    assert!(code == Some(0) && !pending.contains("-- migration 3:"), "{pending}");
    assert!(pending.contains("-- migration 4:"), "{pending}");
    sqlx::raw_sql(AssertSqlSafe(pending.clone())).execute(&fixture.pool).await.expect("it runs by hand");
    let (code, said) = fixture.run(&["migrate", "--print"]);
    assert!(code == Some(0) && said.starts_with("-- the schema postrider is up to date"), "{said}");
    let again =
        sqlx::raw_sql(AssertSqlSafe(pending)).execute(&fixture.pool).await.expect_err("it was run already");
    assert!(again.to_string().contains("is for the schema postrider at version 3"), "{again}");
    let nowhere = format!("postgres://nobody@{}/nowhere", postrider_testkit::address::nobody());
    let (code, said) = fixture.run(&["migrate", "--print", "--store", &nowhere]);
    assert!(code == Some(1) && said.contains("--print --all"), "{said}");
}
