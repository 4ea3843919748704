//! Retention as a program: the day's in relays that are real processes, and the commands.

mod fixture;

use std::time::{Duration, Instant};

use fixture::Fixture;
use postrider_testkit::{Logged, until};

/// A time of the day that has just come.
fn just_now() -> String {
    let now = postrider::OffsetDateTime::now_utc() - Duration::from_secs(60);
    format!("{:02}:{:02}", now.hour(), now.minute())
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_relays_one_does_the_days_retention_once() {
    let fixture = Fixture::postgres().await;
    fixture.deliver(60).await;
    let settings = format!(
        "at = \"{}\"\ndelivered = \"0s\"\narchive = true\nmask = [\"email\"]\nbatch = 7\npause = \"1ms\"",
        just_now()
    );
    let relay_processes = [fixture.relay("one", &settings), fixture.relay("two", &settings)];
    until("all is archived", async || fixture.left().await == (0, 60)).await;
    let done = || {
        relay_processes
            .iter()
            .filter(|relay_process| relay_process.log().contains("retention finished"))
            .count()
    };
    until("one says so", async || done() > 0).await;
    let log = relay_processes
        .iter()
        .map(Logged::log)
        .find(|log| log.contains("retention finished"))
        .expect("one did");
    assert!(log.contains("events=60") && log.contains("how=\"archived\""), "{log}");
    let clear = "select count(*) from {}archive where payload::text like '%planted%' or payload::text not like '%***%'";
    assert_eq!(fixture.number(clear).await, 0, "what is masked is not in the archive");

    // What is recorded and delivered now stays until tomorrow, whoever looks.
    fixture.execute("select postrider.record('orders', 'OrderPaid', 'Order', '1', '1')").await;
    let looked =
        "select (extract(epoch from lease_until) * 1000000)::bigint from {}duty where name = 'retention'";
    let before = fixture.number(looked).await;
    let third = fixture.relay("third", &settings);
    until("the third has looked", async || fixture.number(looked).await > before).await;
    until("nobody has the duty", async || {
        fixture.number("select count(*) from {}duty where name = 'retention' and owner is not null").await
            == 0
    })
    .await;
    assert_eq!(fixture.left().await, (1, 60));
    assert!(!third.log().contains("retention started"), "{}", third.log());
    assert_eq!(done(), 1, "one did it, once");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_relay_killed_in_mid_sweep_loses_nothing_and_the_next_leader_goes_on() {
    let fixture = Fixture::postgres().await;
    fixture.deliver(400).await;
    let settings = |batch: u32, pause: &str| {
        let at = just_now();
        format!("at = \"{at}\"\ndelivered = \"0s\"\narchive = true\nbatch = {batch}\npause = \"{pause}\"")
    };
    // The whole would take 200 s, longer than anything is waited for: however slow a look is, it finds it in the middle.
    let mut first = fixture.relay("first", &settings(1, "500ms"));
    until("it is in the middle of it", async || {
        let (left, archived) = fixture.left().await;
        assert_eq!(left + archived, 400, "every event is in one place");
        archived > 3
    })
    .await;
    first.signal("KILL");
    assert_eq!(first.exit_code(), None);
    let (left, archived) = fixture.left().await;
    assert!(left > 0 && left + archived == 400, "{left} and {archived}");
    let second = fixture.relay("second", &settings(5, "1ms"));
    until("the next holder is done", async || second.log().contains("retention finished")).await;
    assert_eq!(fixture.left().await, (0, 400));
    assert_eq!(
        fixture.number("select count(distinct event_id) from {}archive").await,
        400,
        "none is there twice"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sigterm_in_mid_sweep_ends_it_promptly() {
    let fixture = Fixture::postgres().await;
    fixture.deliver(300).await;
    let settings = format!("at = \"{}\"\ndelivered = \"0s\"\nbatch = 1\npause = \"5s\"", just_now());
    let mut relay_process = fixture.relay("one", &settings);
    until("it has begun", async || fixture.left().await.0 < 300).await;
    let began = Instant::now();
    relay_process.signal("TERM");
    assert_eq!(relay_process.exit_code(), Some(0), "{}", relay_process.log());
    assert!(began.elapsed() < Duration::from_secs(5), "it did not wait for its pause: {:?}", began.elapsed());
    assert!(relay_process.log().contains("retention stopped"), "{}", relay_process.log());
    assert!(fixture.left().await.0 > 200);
    let free = fixture.number("select count(*) from {}duty where name = 'retention' and owner is null").await;
    assert_eq!(free, 1, "the next relay need not wait");
}

async fn archive_counts_and_asks(fixture: &Fixture) {
    fixture.deliver(30).await;
    assert_eq!(
        fixture.run(&["archive", "--older-than", "1d", "--dry-run"]).good(),
        "would archive 0 events that every subscription settled more than 1d ago\n"
    );
    let dry = fixture.run(&["archive", "--older-than", "0s", "--dry-run", "--json"]).json();
    assert_eq!((&dry["dry_run"], &dry["taken"][0]["rows"]), (&true.into(), &30.into()), "{dry}");
    let said = fixture.run(&["archive", "--older-than", "0s"]).sentence(2);
    assert!(said.contains("Archive 30 events") && said.contains("--yes"), "{said}");
    assert_eq!(fixture.left().await, (30, 0), "nothing was taken so far");
}

async fn archive_takes_and_writes_it_down(fixture: &Fixture, config: &str) {
    let flags = [
        "archive",
        "--config",
        config,
        "--yes",
        "--batch",
        "4",
        "--pause",
        "1ms",
        "--why",
        "the disk is full",
        "--json",
    ];
    let done = fixture.run(&flags).json();
    assert_eq!((&done["finished"], &done["taken"][0]["rows"]), (&true.into(), &30.into()), "{done}");
    assert_eq!(fixture.left().await, (0, 30));
    assert_eq!(
        fixture.number("select count(*) from {}archive where cast(payload as text) like '%planted%'").await,
        0
    );
    let audits = fixture.run(&["audit", "--json"]).good();
    for word in ["archive 30 events", "ada@", "the disk is full"] {
        assert!(audits.contains(word), "{word}: {audits}");
    }
    assert!(fixture.run(&flags).json()["finished"].as_bool() == Some(true), "again is no mistake");
}

/// Archived events are not deleted by a prune without flags; nor is the log, where it is to be archived.
async fn prune_takes_what_it_is_told_to(fixture: &Fixture, config: &str) {
    fixture.deliver(3).await;
    fixture.run(&["prune", "--config", config, "--yes"]).good();
    assert_eq!(fixture.left().await, (3, 30));
    let out = fixture.run(&["prune", "--older-than", "0s", "--yes"]).good();
    assert!(out.contains("deleted 3 events"), "{out}");
    assert_eq!(fixture.left().await, (0, 30));
    let dry = fixture.run(&["prune", "--archived", "0s", "--inbox", "7d", "--dry-run", "--json"]).json();
    assert_eq!(dry["taken"].as_array().map(Vec::len), Some(2), "{dry}");
    assert_eq!(
        (&dry["taken"][0]["what"], &dry["taken"][0]["rows"]),
        (&"archived".into(), &0.into()),
        "this month goes on: {dry}"
    );
}

fn what_has_no_age_or_a_wrong_one_is_refused(fixture: &Fixture) {
    for (arguments, part) in [
        (&["prune", "--yes"][..], "pass --older-than 30d"),
        (&["archive", "--yes"][..], "pass --older-than 30d"),
    ] {
        let said = fixture.run(arguments).sentence(2);
        assert!(said.contains(part), "{said}");
    }
    for arguments in
        [&["prune", "--older-than", "soon"][..], &["archive", "--batch", "0"], &["prune", "--inbox", "-1d"]]
    {
        assert_eq!(fixture.run(arguments).code, Some(2));
    }
}

async fn archive_and_prune(fixture: Fixture) {
    archive_counts_and_asks(&fixture).await;
    let config = fixture.config("p", "delivered = \"0s\"\narchive = true\nmask = [\"email\"]");
    archive_takes_and_writes_it_down(&fixture, &config).await;
    prune_takes_what_it_is_told_to(&fixture, &config).await;
    what_has_no_age_or_a_wrong_one_is_refused(&fixture);
}

#[tokio::test(flavor = "multi_thread")]
async fn archive_and_prune_count_ask_take_and_write_it_down_on_postgres() {
    archive_and_prune(Fixture::postgres().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn archive_and_prune_count_ask_take_and_write_it_down_on_sqlite() {
    archive_and_prune(Fixture::sqlite()).await;
}

async fn into_a_table(fixture: Fixture, create: &str) {
    fixture.deliver(12).await;
    let settings = |columns: &str| {
        format!(
            "delivered = \"0s\"\narchive = true\nat = \"{}\"\n[retention.target]\ntable = \"audit\"\ncolumns = {{ {columns} }}",
            just_now()
        )
    };
    let good = "id = \"event_id\", kind = \"event_type\", at = \"recorded_at\", body = \"payload\"";
    let missing = fixture.config("missing", &settings(good));
    for command in [&["archive", "--config", &missing, "--yes"][..], &["relay", "--config", &missing]] {
        let said = fixture.run(command).sentence(2);
        assert!(said.contains("retention.target") && said.contains("there is no table audit"), "{said}");
    }
    fixture.execute(create).await;
    let wrong = fixture.config("wrong", &settings("id = \"event_id\", what = \"event_type\""));
    let said = fixture.run(&["archive", "--config", &wrong, "--yes"]).sentence(2);
    assert!(said.contains("has no column \"what\""), "{said}");
    let config = fixture.config("good", &settings(good));
    let out = fixture.run(&["archive", "--config", &config, "--yes", "--batch", "5", "--json"]).json();
    assert_eq!(
        (&out["taken"][0]["rows"], &out["taken"][0]["target"]),
        (&12.into(), &"audit".into()),
        "{out}"
    );
    assert_eq!(fixture.left().await, (0, 0), "they are not in the archive");
    let there = "select count(*) from audit where kind = 'OrderPaid' and cast(id as text) like '________-____-7%' \
         and cast(body as text) like '%planted%' and cast(at as text) like '20__-__-__%'";
    assert_eq!(fixture.number(there).await, 12);
}

#[tokio::test(flavor = "multi_thread")]
async fn archived_events_go_to_a_table_of_the_application_on_postgres() {
    into_a_table(
        Fixture::postgres().await,
        "create table audit (id uuid primary key, kind text not null, at timestamptz not null, body jsonb)",
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn archived_events_go_to_a_table_of_the_application_on_sqlite() {
    into_a_table(
        Fixture::sqlite(),
        "create table audit (id text primary key, kind text not null, at text not null, body text) strict",
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn partitions_are_refused_where_there_are_none() {
    let fixture = Fixture::sqlite();
    fixture.deliver(1).await;
    let config = fixture.config("months", "delivered = \"0s\"\narchive = true\nby_month = true");
    for command in [&["archive", "--config", &config, "--yes"][..], &["relay", "--config", &config]] {
        let said = fixture.run(command).sentence(2);
        assert!(said.contains("retention.by_month: SQLite has no partitions"), "{said}");
    }
    assert_eq!(fixture.left().await, (1, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_does_not_work_beside_another() {
    let fixture = Fixture::postgres().await;
    fixture.deliver(5).await;
    fixture
        .execute(
            "insert into postrider.duty (name, owner, lease_until, lease_for) \
             values ('retention', 'somebody', clock_timestamp() + interval '1 minute', interval '1 minute')",
        )
        .await;
    let said = fixture.run(&["archive", "--older-than", "0s", "--yes"]).sentence(1);
    assert!(said.contains("retention is already running"), "{said}");
    assert_eq!(fixture.left().await, (5, 0));
}
