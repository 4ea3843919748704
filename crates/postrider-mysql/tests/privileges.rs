//! Who may do what: asked of the server for everything that its catalog has, by users with the rights that the documents grant.

mod support;

use std::time::Duration;

use postrider_conformance::relay::{drain, event, subscribe};
use postrider_core::{Clock, ErrorKind, EventLog, Limits, NewEvent, Subscription};
use postrider_mysql::Outbox;
use sqlx::mysql::{MySqlConnectOptions, MySqlDatabaseError, MySqlPoolOptions};
use sqlx::{AssertSqlSafe, MySqlPool, Row};
use support::{My, MyLog};

/// What the documents tell to grant.
const OPERATIONS: &str = include_str!("../../../docs/operations.md");

/// What a server says to who may not do something: no right to a table, to a column, to a routine, or to what needs more.
const DENIED: [u16; 6] = [1044, 1142, 1143, 1227, 1370, 1410];

/// Users with the rights of the documents; they go with this.
struct Users {
    log: MyLog,
    names: [String; 2],
}

impl Users {
    async fn make() -> Self {
        let log = My::default().my_log(Clock::Database).await;
        let names = ["app", "relay"].map(|role| format!("{role}_{}", &log.database()[1..13]));
        let grants = OPERATIONS.split("```").find(|block| block.contains("create user app@'%'"));
        let grants = grants.expect("the documents say what to grant").trim_start_matches("sql");
        for line in grants.lines().filter(|line| !line.is_empty()) {
            let grant = line
                .split("--")
                .next()
                .expect("a statement")
                .replace("shop.", &format!("{}.", log.database()));
            let grant =
                grant.replace("app@", &format!("{}@", names[0])).replace("relay@", &format!("{}@", names[1]));
            log.run(&grant).await;
        }
        Self { log, names }
    }

    fn pool(&self, user: usize) -> MySqlPool {
        let options: MySqlConnectOptions = self.log.pool.connect_options().as_ref().clone();
        MySqlPoolOptions::new().max_connections(4).connect_lazy_with(options.username(&self.names[user]))
    }

    async fn end(self) {
        for name in &self.names {
            self.log.run(&format!("drop user {name}@'%'")).await;
        }
    }

    async fn names_of(&self, sql: &'static str) -> Vec<(String, String)> {
        let rows = sqlx::query(sql).fetch_all(&self.log.pool).await.expect("the catalog");
        rows.iter().map(|row| (row.get(0), row.get(1))).collect()
    }

    /// A call of each routine, by its name.
    async fn calls(&self) -> Vec<(String, String)> {
        let routines = "select r.routine_name, concat(if(r.routine_type = 'PROCEDURE', 'call ', 'select '), r.routine_name, '(', \
                        coalesce((select group_concat('null') from information_schema.parameters p \
                                  where p.specific_schema = r.routine_schema and p.specific_name = r.specific_name \
                                    and p.ordinal_position > 0), ''), ')') \
                        from information_schema.routines r where r.routine_schema = database()";
        self.names_of(routines).await
    }

    /// Each table and view, with its first column.
    async fn tables(&self) -> Vec<(String, String)> {
        let tables = "select c.table_name, c.column_name from information_schema.columns c \
                      where c.table_schema = database() and c.ordinal_position = 1";
        self.names_of(tables).await
    }
}

/// Whether the server denies a statement; what is refused for another reason was permitted. Nothing of it stays.
async fn is_denied(pool: &MySqlPool, sql: &str) -> bool {
    let mut conn = pool.acquire().await.expect("a connection");
    conn.close_on_drop();
    sqlx::raw_sql("start transaction").execute(&mut *conn).await.expect("begin");
    match sqlx::raw_sql(AssertSqlSafe(sql.to_owned())).execute(&mut *conn).await {
        Ok(_) => false,
        Err(sqlx::Error::Database(error)) => {
            let number = error.downcast_ref::<MySqlDatabaseError>().number();
            DENIED.contains(&number)
        }
        Err(error) => panic!("{sql}: {error}"),
    }
}

fn statements(table: &str, column: &str) -> [(&'static str, String); 6] {
    [
        ("select", format!("select 1 from {table} limit 1")),
        ("insert", format!("insert into {table} () values ()")),
        ("update", format!("update {table} set {column} = {column} where false")),
        ("delete", format!("delete from {table} where false")),
        ("truncate", format!("truncate table {table}")),
        ("alter", format!("alter table {table} add column stranger int")),
    ]
}

/// Everything that the catalog has, and of it only what recording needs.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_publisher_may_call_and_touch_only_what_recording_needs() {
    let users = Users::make().await;
    let app = users.pool(0);
    let mut permitted = Vec::new();
    let calls = users.calls().await;
    assert!(calls.len() > 12 && calls.iter().any(|(name, _)| name == "postrider_archive_drop"), "{calls:?}");
    for (name, call) in calls {
        if !is_denied(&app, &call).await {
            permitted.push(name);
        }
    }
    let tables = users.tables().await;
    assert!(tables.len() > 12 && tables.iter().any(|(name, _)| name == "postrider_lane"), "{tables:?}");
    for (table, column) in tables {
        for (what, sql) in statements(&table, &column) {
            if !is_denied(&app, &sql).await {
                permitted.push(format!("{what} {table}"));
            }
        }
    }
    permitted.sort();
    assert_eq!(
        permitted,
        ["insert postrider_event", "postrider_record", "postrider_record_with", "select postrider_migration"]
    );
    app.close().await;
    users.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_publisher_records_by_the_library_and_by_sql_with_its_rights() {
    let users = Users::make().await;
    let app = users.pool(0);
    subscribe(&users.log.patched(), "s").await;
    let outbox = Outbox::connect(&app).await.expect("it sees what it needs");
    Outbox::migrated(&app).await.expect("there is nothing to do");
    let mut tx = app.begin().await.expect("begin");
    outbox.record(&mut tx, &event("a", 1).sequenced()).await.expect("record");
    assert!(outbox.record_once(&mut tx, &event("a", 2)).await.expect("record once"));
    let several = [event("a", 3), event("a", 4).sequenced()];
    outbox.record_all(&mut tx, &several).await.expect("record all");
    for call in [
        "call postrider_record('orders', 'OrderPaid', 'Order', '7', '{}')",
        "call postrider_record_with('orders', 'OrderPaid', 'Order', '8', '{}', null, null, null, null, true)",
    ] {
        sqlx::raw_sql(call).execute(&mut *tx).await.expect(call);
    }
    tx.commit().await.expect("commit");
    assert_eq!(drain(&users.log.patched(), "s").await.len(), 6);
    let error = outbox.store().subscribe(&Subscription::new("t")).await.expect_err("it is no relay");
    assert_eq!(error.kind(), ErrorKind::Denied, "{error}");

    users.log.run("drop trigger postrider_event_record").await;
    let error = Outbox::connect(&app).await.expect_err("a row would have no place");
    assert_eq!(error.kind(), ErrorKind::NotMigrated, "{error}");
    app.close().await;
    users.end().await;
}

/// A program that sets a limit and may only record, or only deliver, starts all the same. The limit is the log's.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_may_not_set_the_limit_of_payloads_starts_and_meets_that_of_the_log() {
    let users = Users::make().await;
    for user in 0..2 {
        let pool = users.pool(user);
        let limits = Limits { payload: 5_000_000, ..Limits::default() };
        for builder in [Outbox::builder(), Outbox::builder().limits(limits)] {
            let outbox =
                builder.migrated(&pool).await.expect("it is not for it to set, and no reason to stop");
            let event = NewEvent::of("s", "T", "A", "1", &"x".repeat(2_000_000)).expect("JSON");
            let refused = outbox.record_outside_transaction(&event).await.expect_err("above the limit");
            let said = "the payload has 2000002 bytes, more than the limit of 1048576; raise the limit or store it \
                        elsewhere and record a reference";
            assert_eq!((refused.kind(), refused.message()), (ErrorKind::Invalid, said));
        }
        pool.close().await;
    }
    users.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_relay_may_call_everything_and_change_no_table() {
    let users = Users::make().await;
    let relay = users.pool(1);
    let store = Outbox::connect(&relay).await.expect("it sees what it needs").store();
    subscribe(&store, "s").await;
    for (_, call) in users.calls().await {
        assert!(!is_denied(&relay, &call).await, "{call}");
    }
    for (table, column) in users.tables().await {
        for (what, sql) in statements(&table, &column) {
            let is_change = ["truncate", "alter"].contains(&what);
            assert!(!is_change || is_denied(&relay, &sql).await, "{sql}");
            assert!(what != "select" || !is_denied(&relay, &sql).await, "{sql}");
        }
    }
    relay.close().await;
    users.end().await;
}

/// MySQL forgets the privileges on a routine that is replaced.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_publisher_may_still_record_after_a_repair_and_a_change_of_the_limit() {
    let users = Users::make().await;
    let (app, database) = (users.pool(0), users.log.database());
    subscribe(&users.log.patched(), "s").await;
    let text = "varchar(500) charset utf8mb4";
    let record =
        format!("in a {text}, in b {text}, in c {text}, in d {text}, in payload longtext charset utf8mb4");
    let with = format!("{record}, in e longtext, in f {text}, in g datetime(6), in h {text}, in i boolean");
    for (name, parameters) in [("postrider_record", record), ("postrider_record_with", with)] {
        users.log.run(&format!("drop procedure {name}")).await;
        users.log.run(&format!("create procedure {name}({parameters}) no sql select 1")).await;
        users
            .log
            .run(&format!("grant execute on procedure {database}.{name} to {}@'%'", users.names[0]))
            .await;
    }
    let ask = format!("grant execute on function {database}.postrider_max_payload to {}@'%'", users.names[0]);
    users.log.run(&ask).await;
    let limits = Limits { payload: 77, ..Limits::default() };
    Outbox::builder().limits(limits).migrated(&users.log.pool).await.expect("repaired");
    for call in [
        "call postrider_record('orders', 'OrderPaid', 'Order', '7', '{}')",
        "call postrider_record_with('orders', 'OrderPaid', 'Order', '8', '{}', null, null, null, null, true)",
    ] {
        sqlx::raw_sql(call).execute(&app).await.expect("it may record as before");
    }
    let limit: i64 =
        sqlx::query_scalar("select postrider_max_payload()").fetch_one(&app).await.expect("it may ask");
    assert_eq!(limit, 77);
    assert_eq!(drain(&users.log.patched(), "s").await.len(), 2);
    app.close().await;
    users.end().await;
}

/// Who holds the lock of migrations is named, and not taken for another migration: any user can take it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_migration_that_a_stranger_locks_out_says_who_it_is() {
    let users = Users::make().await;
    let mut stranger = users.pool(0).acquire().await.expect("a connection").detach();
    let lock = "select cast(connection_id() as signed), \
                cast(get_lock(concat('postrider migrate ', left(sha2(database(), 256), 32)), 0) as signed)";
    let row = sqlx::query(lock).fetch_one(&mut stranger).await.expect("a lock");
    let (connection, locked): (i64, i64) = (row.get(0), row.get(1));
    assert_eq!(locked, 1);
    // There is something to do.
    users.log.run("drop trigger postrider_event_record").await;
    let hasty = || Outbox::builder().migration_patience(Duration::from_millis(300));
    let locked_out = hasty().migrated(&users.log.pool).await.expect_err("it is locked");
    assert_eq!(locked_out.kind(), ErrorKind::Conflict);
    let sentence = locked_out.to_string();
    let said = format!("is held by connection {connection} of the database ({}@", users.names[0]);
    assert!(sentence.contains(&said), "{sentence}");
    let remedy = locked_out.hint().unwrap_or_default();
    assert!(remedy.contains(&format!("`kill {connection}`")), "{remedy}");
    // It is given back, and nobody is in the way.
    sqlx::query("do release_all_locks()").execute(&mut stranger).await.expect("released");
    hasty().migrated(&users.log.pool).await.expect("nobody has it");
    drop(stranger);
    users.end().await;
}
