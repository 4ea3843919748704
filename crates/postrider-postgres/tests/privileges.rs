//! What a publisher's role may do, by the catalog of the database: whatever a migration adds is found here.

mod support;

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use postrider_conformance::relay::{drain, event, subscribe};
use postrider_core::{Clock, ErrorKind, EventLog, Limits, Operate, Replay, ReplayFrom, Sweep};
use postrider_postgres::{Outbox, migration_sql};
use sqlx::postgres::PgPoolOptions;
use sqlx::{AssertSqlSafe, Connection, Executor, PgConnection, Row};
use support::{Pg, PgLog, server};

/// What a publisher may do with a relation, and nothing else: `insert` on the log, to read the ids in it, and the schema's version.
const MAY: &[&str] = &["event insert", "event select (event_id)", "migration select", "migration select (*)"];

/// Functions with the owner's rights that anybody may call: they say something that is no secret, and change nothing.
const HARMLESS: &[&str] = &["this_system()"];

/// A role that may record, in a log of its own.
struct Publisher {
    log: PgLog,
    role: String,
}

impl Publisher {
    async fn new() -> Self {
        let log = Pg::default().pg_log(Clock::Database).await;
        let role = format!("publisher_{}", &log.schema[..12]);
        log.run(&format!("create role {role} login")).await;
        log.outbox.grant_record(&role).await.expect("grant");
        Self { log, role }
    }

    async fn connect(&self) -> PgConnection {
        PgConnection::connect_with(&server().username(&self.role)).await.expect("connect")
    }

    async fn rows(&self, sql: &str) -> Vec<String> {
        let sql = self.log.sql(&sql.replace("{role}", &self.role).replace("{name}", &self.log.schema));
        let rows = sqlx::query(sql).fetch_all(&self.log.pool).await.expect("the catalog");
        rows.iter().map(|row| row.get(0)).collect()
    }

    async fn end(self) {
        self.log.run(&format!("drop owned by {}", self.role)).await;
        let sql = format!("drop role {}", self.role);
        sqlx::raw_sql(AssertSqlSafe(sql)).execute(&self.log.pool).await.expect("drop role");
    }
}

#[tokio::test]
async fn a_publisher_may_do_what_is_listed_here_with_the_relations_of_the_schema_and_nothing_else() {
    let publisher = Publisher::new().await;
    let tables = publisher
        .rows(
            "select c.relname || ' ' || p.privilege from pg_class c, \
             unnest('{select,insert,update,delete,truncate,references,trigger}'::text[] \
                 || case when current_setting('server_version_num')::int >= 170000 then '{maintain}'::text[] end) as p(privilege) \
             where c.relnamespace = '{schema}'::regnamespace and c.relkind in ('r', 'p', 'v', 'm', 'f') \
               and c.relname not in ('app', 'touched') and has_table_privilege('{role}', c.oid, p.privilege)",
        )
        .await;
    let columns = publisher
        .rows(
            "select distinct c.relname || ' ' || p.privilege || ' (' \
                 || case when has_table_privilege('{role}', c.oid, p.privilege) then '*' else a.attname end || ')' \
             from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped, \
             unnest('{select,update,references}'::text[]) as p(privilege) \
             where c.relnamespace = '{schema}'::regnamespace and c.relkind in ('r', 'p', 'v', 'm', 'f') \
               and c.relname not in ('app', 'touched') and has_column_privilege('{role}', c.oid, a.attnum, p.privilege)",
        )
        .await;
    let sequences = publisher
        .rows(
            "select c.relname || ' ' || p.privilege from pg_class c, unnest('{usage,select,update}'::text[]) as p(privilege) \
             where c.relnamespace = '{schema}'::regnamespace and c.relkind = 'S' and has_sequence_privilege('{role}', c.oid, p.privilege)",
        )
        .await;
    let found: BTreeSet<String> = tables.into_iter().chain(columns).chain(sequences).collect();
    assert_eq!(found, MAY.iter().map(|may| (*may).to_owned()).collect::<BTreeSet<_>>());
    let creates = publisher.rows("select has_schema_privilege('{role}', '{schema}', 'create')::text").await;
    assert_eq!(creates, ["false"]);
    // Types of one's own could be used by anybody's tables, and would then be in the way of a migration.
    let types = publisher
        .rows(
            "select t.typname::text from pg_type t left join pg_class c on c.oid = t.typrelid \
             where t.typnamespace = '{schema}'::regnamespace and t.typelem = 0 and (c.oid is null or c.relkind = 'c')",
        )
        .await;
    assert_eq!(types, Vec::<String>::new(), "types that are no table's");
    publisher.end().await;
}

#[tokio::test]
async fn a_publisher_calls_no_function_that_has_the_owners_rights() {
    let publisher = Publisher::new().await;
    let definer = "from pg_proc p where p.pronamespace = '{schema}'::regnamespace and p.prosecdef";
    let callable = publisher
        .rows(&format!(
            "select p.proname || '(' || pg_get_function_identity_arguments(p.oid) || ')' {definer} \
             and has_function_privilege('{{role}}', p.oid, 'execute')"
        ))
        .await;
    assert_eq!(callable, HARMLESS);
    // A function with the owner's rights and the caller's search_path runs what the caller puts there. The trigger has no path of its
    // own, because that costs each row: every name in it is qualified, see below.
    let open = publisher
        .rows(&format!(
            "select p.proname::text {definer} and not coalesce(p.proconfig::text like '%search_path=pg_catalog, pg_temp%', false)"
        ))
        .await;
    assert_eq!(open, ["before_record"]);
    publisher.end().await;
}

/// Tries everything on everything, as the catalog lists it.
#[tokio::test]
async fn what_a_publisher_may_not_do_is_refused_by_the_server() {
    let publisher = Publisher::new().await;
    let mut connection = publisher.connect().await;
    let relations = publisher
        .rows(
            "select c.relname::text from pg_class c where c.relnamespace = '{schema}'::regnamespace \
             and c.relkind in ('r', 'p', 'v') and c.relname not in ('app', 'touched')",
        )
        .await;
    assert!(relations.len() > 12 && relations.contains(&"turn".to_owned()), "{relations:?}");
    let mut statements = Vec::new();
    for relation in &relations {
        let name = format!("{}.{relation}", publisher.log.schema);
        if relation != "migration" {
            statements.push(format!("select * from {name}"));
            statements.push(format!("select * from {name} for update"));
        }
        if relation != "event" {
            statements.push(format!("insert into {name} default values"));
        }
        statements.push(format!("delete from {name}"));
        statements.push(format!("truncate {name}"));
        statements.push(format!("begin; lock table {name} in access exclusive mode"));
        statements.push(format!("create index on {name} ((1))"));
        statements.push(format!("drop table {name}"));
    }
    for sequence in publisher
        .rows("select c.relname::text from pg_class c where c.relnamespace = '{schema}'::regnamespace and c.relkind = 'S'")
        .await
    {
        let name = format!("{}.{sequence}", publisher.log.schema);
        for call in ["nextval('{}')", "currval('{}')", "setval('{}', 1)"] {
            statements.push(format!("select {}", call.replace("{}", &name)));
        }
        statements.push(format!("select * from {name}"));
    }
    let calls = publisher
        .rows(
            "select format('select %s(%s)', p.oid::regproc, \
                 (select string_agg('null::' || format_type(t, null), ', ' order by n) from unnest(p.proargtypes) with ordinality as a(t, n))) \
             from pg_proc p where p.pronamespace = '{schema}'::regnamespace and p.prosecdef and p.prorettype <> 'trigger'::regtype \
               and p.proname <> 'this_system'",
        )
        .await;
    assert!(calls.len() > 5, "{calls:?}");
    statements.extend(calls);
    for statement in statements {
        let refused = connection.execute(sqlx::raw_sql(AssertSqlSafe(statement.clone()))).await;
        let refused = refused.map(|_| ()).expect_err(&statement);
        connection.execute(sqlx::raw_sql("rollback")).await.expect("rollback");
        let code =
            refused.as_database_error().and_then(|error| error.code().map(std::borrow::Cow::into_owned));
        // A view is no table, whoever asks.
        let is_view =
            statement.contains(".event_state") && matches!(code.as_deref(), Some("42809" | "55000"));
        assert!(code.as_deref() == Some("42501") || is_view, "{statement}: {refused}");
    }
    drop(connection);
    publisher.end().await;
}

/// Numbers of a key are handed out to its events, whatever stands between a stranger and the function.
#[tokio::test]
async fn no_trigger_of_a_strangers_own_takes_a_number() {
    let publisher = Publisher::new().await;
    let mut connection = publisher.connect().await;
    let schema = &publisher.log.schema;
    let own = format!(
        "create temporary table own (id bigint, tx_id xid8, event_id uuid, aggregate_type text, aggregate_id text, ordering_key text, \
             sequence bigint, occurred_at timestamptz, recorded_at timestamptz); \
         create function pg_temp.steal() returns trigger language plpgsql as $f$ \
             begin perform {schema}.next_in_key('A:1', gen_random_uuid()); return new; end $f$; \
         create trigger steal before insert on own for each row execute function pg_temp.steal(); \
         insert into own (sequence) values (0)"
    );
    let refused =
        connection.execute(sqlx::raw_sql(AssertSqlSafe(own))).await.map(|_| ()).expect_err("a number");
    assert!(refused.to_string().contains("permission denied for function next_in_key"), "{refused}");
    let borrowed = format!(
        "create temporary table own (id bigint); \
         create trigger steal before insert on own for each row execute function {schema}.before_record()"
    );
    let refused =
        connection.execute(sqlx::raw_sql(AssertSqlSafe(borrowed))).await.map(|_| ()).expect_err("a trigger");
    assert!(refused.to_string().contains("permission denied for function"), "{refused}");
    let outbox = publisher.log.outbox.clone();
    outbox.record(&mut connection, &event("1", 1).sequenced()).await.expect("record");
    subscribe(&publisher.log.store, "s").await;
    let read = drain(&publisher.log.store, "s").await;
    assert_eq!(read.iter().map(|event| event.sequence).collect::<Vec<_>>(), [Some(1)]);
    drop(connection);
    publisher.end().await;
}

/// The trigger has the owner's rights and the publisher's path: what stands in front of the catalog there must not be called.
#[tokio::test]
async fn what_a_publisher_puts_into_the_search_path_does_not_run_as_the_owner() {
    let publisher = Publisher::new().await;
    let (schema, role) = (&publisher.log.schema, &publisher.role);
    publisher.log.run(&format!("create schema evil_{schema} authorization {role}")).await;
    let mut connection = publisher.connect().await;
    let evil = format!("evil_{schema}");
    let mut setup = format!(
        "create table {evil}.ran (as_whom text); grant all on {evil}.ran to public; grant usage on schema {evil} to public;"
    );
    let note = |signature: &str, returns: &str, value: &str| {
        format!(
            "create function {evil}.{signature} returns {returns} language plpgsql as $f$ begin \
             insert into {evil}.ran values (current_user); return {value}; end $f$;"
        )
    };
    for (signature, returns, value) in [
        ("clock_timestamp()", "timestamptz", "'2020-01-01'"),
        ("nextval(regclass)", "bigint", "1"),
        ("pg_current_xact_id()", "xid8", "'3'"),
        ("pg_sequence_last_value(regclass)", "bigint", "9223372036854775807"),
        ("pg_notify(text, text)", "void", "null"),
        ("date_part(text, timestamptz)", "double precision", "0"),
        ("both(text, text)", "text", "'x'"),
        ("less(timestamptz, timestamptz)", "boolean", "true"),
        ("more(bigint, double precision)", "boolean", "true"),
        ("many(bigint, integer)", "boolean", "true"),
    ] {
        setup.push_str(&note(signature, returns, value).replace("return null;", "return;"));
    }
    setup.push_str(&format!(
        "create operator {evil}.|| (leftarg = text, rightarg = text, function = {evil}.both); \
         create operator {evil}.< (leftarg = timestamptz, rightarg = timestamptz, function = {evil}.less); \
         create operator {evil}.>= (leftarg = timestamptz, rightarg = timestamptz, function = {evil}.less); \
         create operator {evil}.> (leftarg = bigint, rightarg = double precision, function = {evil}.more); \
         create operator {evil}.> (leftarg = bigint, rightarg = integer, function = {evil}.many)"
    ));
    connection.execute(sqlx::raw_sql(AssertSqlSafe(setup))).await.expect("set up");
    let path = format!("set search_path = {evil}, pg_catalog");
    connection.execute(sqlx::raw_sql(AssertSqlSafe(path))).await.expect("its path");
    let ran = async || -> Vec<String> {
        let ran = sqlx::query_scalar(AssertSqlSafe(format!("select as_whom from {evil}.ran")));
        ran.fetch_all(&publisher.log.pool).await.expect("what ran")
    };
    // Whoever does not name a schema gets what lies there.
    let bait = "select clock_timestamp(), 'a'::text || 'b'::text";
    connection.execute(sqlx::raw_sql(bait)).await.expect("a function and an operator");
    assert_eq!(ran().await, [role.as_str(), role], "what is called by its name alone is not ours");
    // Somebody sleeps: the bell is looked at.
    publisher.log.run("select setval('{schema}.bell', 9000000000000000)").await;
    let insert = format!(
        "insert into {schema}.event (event_type, aggregate_type, aggregate_id, payload, sequence, event_id, occurred_at) \
         values ('T', 'A', '1', '1', 0, pg_catalog.gen_random_uuid(), pg_catalog.now())"
    );
    connection.execute(sqlx::raw_sql(AssertSqlSafe(insert))).await.expect("insert");
    let ran = ran().await;
    assert!(ran.iter().all(|whom| whom == role), "as {ran:?}");
    drop(connection);
    publisher.log.run(&format!("drop schema {evil} cascade")).await;
    publisher.end().await;
}

/// A stranger's advisory locks, by the numbers that everybody can work out, stop nobody.
#[tokio::test]
async fn no_lock_of_a_stranger_stops_retention_or_a_replay() {
    let publisher = Publisher::new().await;
    let log = &publisher.log;
    subscribe(&log.store, "s").await;
    let first = log.outbox.record_outside_transaction(&event("a", 1)).await.expect("record");
    assert_eq!(drain(&log.store, "s").await.len(), 1);
    let mut stranger = publisher.connect().await;
    let locks = log.sql(
        "select pg_advisory_lock(hashtextextended('postrider sweep {schema}', 0)), \
         pg_advisory_lock(hashtextextended('postrider inbox {schema}', 0))",
    );
    stranger.execute(sqlx::raw_sql(locks)).await.expect("lock");
    let replay = Replay {
        subscription: "s".into(),
        from: ReplayFrom::Event(first),
        effects_may_repeat: true,
        dry_run: false,
    };
    log.store.replay(&replay).await.expect("replay");
    assert_eq!(drain(&log.store, "s").await.len(), 1);
    let inbox = Sweep::Inbox { older_than: Duration::ZERO, limit: 10 };
    log.store.sweep(&inbox).await.expect("the inbox");
    let prune = Sweep::Prune { older_than: Duration::ZERO, limit: 10 };
    assert_eq!(log.store.sweep(&prune).await.expect("prune").taken, 1);
    // Ours do: one at a time.
    let mut tx = log.pool.begin().await.expect("begin");
    let turn = log.sql("select from {schema}.turn where name = 'sweep' for update");
    tx.execute(sqlx::raw_sql(turn)).await.expect("our own lock");
    let busy = log.store.sweep(&prune).await.expect_err("another sweep is at work");
    assert_eq!(busy.kind(), ErrorKind::Conflict);
    assert!(busy.to_string().contains("another sweep, or a replay, is at work"), "{busy}");
    tx.rollback().await.expect("rollback");
    drop(stranger);
    publisher.end().await;
}

/// Nor do they put a relay to sleep, or look like an outage to it: it polls instead of waiting for the bell.
#[tokio::test]
async fn no_lock_of_a_stranger_keeps_a_relay_from_its_events() {
    let publisher = Publisher::new().await;
    let log = &publisher.log;
    subscribe(&log.store, "s").await;
    let mut stranger = publisher.connect().await;
    let lock =
        sqlx::query("select pg_advisory_lock($1)").bind(hash(&format!("postrider bell {}", log.schema)));
    lock.execute(&mut stranger).await.expect("lock");
    let mut bell = log.store.bell();
    let longest = Duration::from_millis(200);
    // Until long after the quiet time behind which the bell is armed.
    let end = Instant::now() + Duration::from_secs(2);
    while Instant::now() < end {
        let waited = tokio::time::timeout(longest * 10, bell.wait(longest)).await;
        waited.expect("it waits no longer than it may").expect("and nothing fails");
    }
    let armed = publisher.rows("select last_value::text from {schema}.bell").await;
    assert_eq!(armed, ["0"], "this is the lock, and nobody armed the bell without it");
    drop(stranger);
    publisher.end().await;
}

/// Who holds the lock of migrations is named, instead of waited for without a word.
#[tokio::test]
async fn a_migration_that_a_stranger_locks_out_says_who_it_is() {
    let publisher = Publisher::new().await;
    let schema = format!("{}_new", publisher.log.schema);
    let mut stranger = publisher.connect().await;
    let lock = sqlx::query("select pg_advisory_lock($1)").bind(hash(&format!("postrider migrate {schema}")));
    lock.execute(&mut stranger).await.expect("lock");
    let builder = Outbox::builder().schema(&schema).migration_patience(Duration::from_millis(300));
    let locked = builder.migrated(&publisher.log.pool).await.expect_err("it is locked");
    assert_eq!(locked.kind(), ErrorKind::Conflict);
    let sentence = locked.to_string();
    assert!(sentence.contains(&format!("(user {})", publisher.role)), "{sentence}");
    // What a DBA runs by hand says the same, when its time is over.
    let printed = migration_sql(&schema).expect("a good name");
    let hasty = printed.replace("interval '5 minutes'", "interval '300 milliseconds'");
    assert_ne!(hasty, printed);
    let mut dba = publisher.connect().await;
    let locked = sqlx::raw_sql(AssertSqlSafe(hasty)).execute(&mut dba).await;
    let sentence = locked.expect_err("it is locked").to_string();
    let said = format!("the lock for migrations of the schema {schema} is held by process ");
    assert!(
        sentence.contains(&said) && sentence.contains(&format!("(user {})", publisher.role)),
        "{sentence}"
    );
    drop(stranger);
    publisher.end().await;
}

/// As the relay makes numbers of names: FNV-1a.
fn hash(text: &str) -> i64 {
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    hash.cast_signed()
}

/// A program that sets a limit and may only record starts all the same, with the limit that the log has.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_publisher_with_a_limit_of_its_own_starts_with_that_of_the_log() {
    let publisher = Publisher::new().await;
    let pool = PgPoolOptions::new().max_connections(2).connect_lazy_with(server().username(&publisher.role));
    let limits = Limits { payload: 5_000_000, ..Limits::default() };
    let builder = Outbox::builder().schema(&publisher.log.schema).limits(limits);
    builder.migrated(&pool).await.expect("it is not for it to set, and no reason to stop");
    let limit = publisher.rows("select {schema}.max_payload()::text").await;
    assert_eq!(limit, ["1048576"]);
    pool.close().await;
    publisher.end().await;
}
