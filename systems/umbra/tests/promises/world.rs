//! What the tests share: a database of their own with the tables of Umbra, the relay of the worker in the test's process, and a
//! stub of Discord.

use postrider::postgres::Outbox;
use postrider::{Running, Uuid};
use postrider_testkit::{postgres::Database, until};
use serde_json::Value;
use sqlx::{AssertSqlSafe, PgPool};
use umbra::adapters::clock;
use umbra::adapters::delivery::Delivery;
use umbra::adapters::discord::Discord;
use umbra::adapters::postgres::{
    command_service::CommandService, migrate, open, relay::relay, unit::event_of,
};
use umbra::billing::Order;
use umbra::billing::charging::Accounts;
use umbra::contracts::*;
use umbra::stubs;

/// Serves a router on loopback, and returns its address.
pub(crate) async fn serve(router: axum::Router) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move { drop(axum::serve(listener, router).await) });
    format!("http://{address}")
}

/// A system in which the test is the API, the bot and the worker.
pub(crate) struct World {
    pub(crate) db: PgPool,
    pub(crate) outbox: Outbox,
    pub(crate) service: CommandService,
    pub(crate) discord: stubs::discord::Discord,
    /// When it began: subscriptions are paid for at this time.
    pub(crate) began: Timestamp,
    discord_url: String,
    relay: Option<Running>,
    database: Database,
}

impl World {
    /// With a relay.
    pub(crate) async fn new() -> Self {
        let mut world = Self::asleep().await;
        world.wake().await;
        world
    }

    /// Without a relay.
    pub(crate) async fn asleep() -> Self {
        let began = clock::machine();
        let database = Database::new().await;
        let db = PgPool::connect_with(database.options()).await.expect("a connection");
        let outbox = migrate(&db).await.expect("tables");
        let discord = stubs::discord::Discord::default();
        let discord_url = serve(discord.clone().router()).await;
        Self {
            service: CommandService::new(&outbox),
            db,
            outbox,
            discord,
            began,
            discord_url,
            relay: None,
            database,
        }
    }

    /// Starts the relay of the worker.
    pub(crate) async fn wake(&mut self) {
        let delivery = Delivery::read(None).expect("the settings that are built in");
        let relay = relay(&self.outbox, Discord::new(&self.discord_url), &delivery).expect("settings");
        self.relay = Some(relay.start().await.expect("a relay"));
    }

    /// Stops the relay.
    pub(crate) async fn sleep(&mut self) {
        if let Some(relay) = self.relay.take() {
            relay.stop().await.expect("stopped");
        }
    }

    pub(crate) fn url(&self) -> String {
        self.database.url()
    }

    /// Records a fact in a transaction of its own.
    pub(crate) async fn publish(&self, fact: impl Fact) -> Uuid {
        let mut tx = self.db.begin().await.expect("a transaction");
        let id = self.outbox.record(&mut tx, &event_of(&fact).expect("JSON")).await.expect("recorded");
        tx.commit().await.expect("committed");
        id
    }

    /// Takes the result of a charge.
    pub(crate) async fn settle(&self, attempt: AttemptId, succeeded: bool, now: Timestamp) {
        assert!(self.service.settle(attempt, succeeded, now).await.expect("settled"), "it has not ended");
    }

    /// A subscription that is paid for when this world begins.
    pub(crate) async fn subscribed(&self, guild: GuildId) -> SubscriptionId {
        self.subscribed_with(guild, None).await
    }

    /// The same with a billing key, by the user who has it.
    pub(crate) async fn subscribed_with(&self, guild_id: GuildId, key: Option<Uuid>) -> SubscriptionId {
        let attempt = Uuid::new_v4();
        let order = self.order(guild_id, key).await;
        let subscription_id = order.subscription_id;
        self.service.open(&order, attempt, self.began).await.expect("opened");
        self.settle(attempt, true, self.began).await;
        self.quiet().await;
        subscription_id
    }

    /// An order of the user who has a billing key, or of a new one.
    pub(crate) async fn order(&self, guild_id: GuildId, key: Option<Uuid>) -> Order {
        let sql = "select user_id from billing.billing_keys where id = $1";
        let user = sqlx::query_scalar(sql).bind(key).fetch_optional(&self.db).await.expect("an answer");
        let (subscription_id, plan_code) = (Uuid::new_v4(), "pro".to_owned());
        let user_id = user.unwrap_or_else(Uuid::new_v4);
        Order { subscription_id, guild_id, user_id, billing_key_id: key, plan_code }
    }

    /// Deletes a billing key by its user; whether there was one.
    pub(crate) async fn delete_key(&self, key: Uuid) -> bool {
        let sql = "select user_id from billing.billing_keys where id = $1";
        let user = sqlx::query_scalar(sql).bind(key).fetch_one(&self.db).await.expect("a user");
        self.service.delete_key(key, user).await.expect("an answer")
    }

    /// Waits until every subscription is done with every event.
    pub(crate) async fn quiet(&self) {
        let sql = "select not exists (select 1 from events.event_state where state not in ('done', 'dead', 'discarded'))
            and (select count(*) from events.event) = (select count(*) from audit.events)";
        until("all is delivered", async || self.one(sql).await).await;
    }

    /// The one value that a query returns.
    pub(crate) async fn one<T>(&self, sql: &str) -> T
    where
        T: for<'r> sqlx::Decode<'r, sqlx::Postgres> + sqlx::Type<sqlx::Postgres> + Send + Unpin,
    {
        let query = sqlx::query_scalar(AssertSqlSafe(sql.to_owned()));
        query.fetch_one(&self.db).await.unwrap_or_else(|error| panic!("{sql}: {error}"))
    }

    /// A figure of PostgreSQL's statistics, with that of all sessions so far: a session reports what it did when it ends.
    pub(crate) async fn statistics(&mut self, sql: &str) -> i64 {
        self.db.close().await;
        self.db = PgPool::connect_with(self.database.options()).await.expect("a connection");
        let others = "select count(*) from pg_stat_activity
            where datname = current_database() and backend_type = 'client backend' and pid <> pg_backend_pid()";
        until("the others have ended", async || self.one::<i64>(others).await == 0).await;
        let figure = self.one(sql).await;
        self.outbox = open(&self.db, true).await.expect("the outbox");
        self.service = CommandService::new(&self.outbox);
        figure
    }

    /// The values of the first column.
    pub(crate) async fn all<T>(&self, sql: &str) -> Vec<T>
    where
        T: for<'r> sqlx::Decode<'r, sqlx::Postgres> + sqlx::Type<sqlx::Postgres> + Send + Unpin,
    {
        let query = sqlx::query_scalar(AssertSqlSafe(sql.to_owned()));
        query.fetch_all(&self.db).await.unwrap_or_else(|error| panic!("{sql}: {error}"))
    }

    /// Runs statements.
    pub(crate) async fn run(&self, sql: &str) {
        let done = sqlx::raw_sql(AssertSqlSafe(sql.to_owned())).execute(&self.db).await;
        done.unwrap_or_else(|error| panic!("{sql}: {error}"));
    }

    /// From now on the database refuses new rows of a table that meet a condition.
    pub(crate) async fn plant(&self, table: &str, condition: &str) {
        self.run(&format!(
            "create or replace function outside.fail() returns trigger language plpgsql as
                 $$ begin raise exception 'planted'; end $$;
             create trigger planted before insert or update on {table} for each row when ({condition})
                 execute function outside.fail()"
        ))
        .await;
    }

    /// Takes the refusal back.
    pub(crate) async fn unplant(&self, table: &str) {
        self.run(&format!("drop trigger planted on {table}")).await;
    }

    /// Turns the clock for what waits for its next attempt, and wakes the relay.
    pub(crate) async fn make_due(&self) {
        self.run("update events.delivery set next_at = clock_timestamp() where state = 'retrying'").await;
        self.run("select events.ring()").await;
    }

    /// The state of an event for a subscription.
    pub(crate) async fn state(&self, event: Uuid, subscription: &str) -> String {
        let sql = "select state from events.event_state where event_id = $1 and subscription = $2";
        let state = sqlx::query_scalar(sql).bind(event).bind(subscription).fetch_one(&self.db).await;
        state.expect("a state")
    }

    /// How many events of a type there are.
    pub(crate) async fn count(&self, event_type: &str) -> i64 {
        self.one(&format!("select count(*) from events.event where event_type = '{event_type}'")).await
    }

    pub(crate) async fn types(&self) -> Vec<String> {
        self.all("select event_type from audit.events order by event_type").await
    }

    pub(crate) async fn messages(&self) -> Vec<String> {
        self.all("select text from notification.messages order by text").await
    }

    pub(crate) async fn license(&self, guild: GuildId) -> (String, String) {
        let sql = "select plan_code, status from licensing.licenses where guild_id = $1";
        sqlx::query_as(sql).bind(guild).fetch_one(&self.db).await.expect("a licence")
    }

    pub(crate) async fn subscription(&self, id: SubscriptionId) -> (String, i32) {
        let sql = "select status, retry_count from billing.subscriptions where id = $1";
        sqlx::query_as(sql).bind(id).fetch_one(&self.db).await.expect("a subscription")
    }

    /// Runs the binary `postrider` with the settings of Umbra; its exit code and what it printed.
    pub(crate) fn postrider(&self, arguments: &[&str]) -> (Option<i32>, String) {
        let output = self.run_postrider(arguments);
        let text = [output.stdout, output.stderr].concat();
        (output.status.code(), String::from_utf8_lossy(&text).into_owned())
    }

    /// What the binary prints as JSON.
    pub(crate) fn postrider_json(&self, arguments: &[&str]) -> Value {
        let output = self.run_postrider(&[arguments, &["--json"]].concat());
        let error = String::from_utf8_lossy(&output.stderr);
        serde_json::from_slice(&output.stdout).unwrap_or_else(|why| panic!("{why}: {error}"))
    }

    fn run_postrider(&self, arguments: &[&str]) -> std::process::Output {
        self.postrider_command(arguments).output().expect("postrider runs")
    }

    /// The binary `postrider` with the settings of Umbra.
    pub(crate) fn postrider_command(&self, arguments: &[&str]) -> std::process::Command {
        let settings = concat!(env!("CARGO_MANIFEST_DIR"), "/umbra.toml");
        let mut command = story::process::postrider();
        command.args(arguments).args(["--config", settings]);
        command.env("DATABASE_URL", self.url()).env("ALERT_URL", "http://127.0.0.1:9/");
        command
    }
}

pub(crate) fn pair(a: &str, b: &str) -> (String, String) {
    (a.to_owned(), b.to_owned())
}
