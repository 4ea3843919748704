//! `commerce story`: the shop is opened, what can die is killed, and at the end everything is counted.

use std::process::ExitCode;

use story::testkit::until;
use story::{Options, Story};

use crate::adapters::cache::HttpCache;
use crate::adapters::consumers::SALES;
use crate::application::ports::ProductCache;
use crate::processes::count::{SALES_OF_EACH, count};
use crate::processes::shoppers::Shoppers;
use crate::processes::stage::Stage;

/// Tells it; the exit code is 1 if a promise broke.
pub async fn tell(options: Options) -> ExitCode {
    let sentence = "a shop whose events go from PostgreSQL to Kafka in one order, and to four consumers";
    Story::begin("commerce", sentence, options).act_out(all).await
}

/// Everything, one part after the other.
async fn all(story: &mut Story) -> Stage {
    let users = if story.options().long { 2000 } else { 120 };
    let mut stage = Stage::start().await;
    addresses(story, &stage);
    story.tell("a broker, eight topics, the API, a cache, two relays and four consumers are up");
    let mut tale = Tale { shoppers: Shoppers::new(&stage.api), products: Vec::new(), users };
    tale.opens(story, &stage).await;
    tale.broker_dies(story, &mut stage).await;
    tale.relay_dies(story, &mut stage).await;
    tale.consumer_dies(story, &mut stage).await;
    tale.event_expires(story, &stage).await;
    tale.consumer_fails(story, &stage).await;
    tale.sells_out(story, &stage).await;
    if story.options().loss {
        let one = "delete from metrics.product_sales where product_id = (select min(product_id) from metrics.product_sales)";
        stage.run(one).await;
    }
    story.part("The count");
    count(story, &stage).await;
    stage
}

fn addresses(story: &mut Story, stage: &Stage) {
    story.address("the API", &stage.api);
    story.address("the logs and settings", stage.folder().display().to_string());
    for what in ["status", "dead list", "events", "dead-letters list --topic order-events", "doctor"] {
        story.address(what, stage.command(what));
    }
}

struct Tale {
    shoppers: Shoppers,
    products: Vec<i64>,
    users: i64,
}

impl Tale {
    /// Some users go shopping, each for the first time.
    async fn shop(&mut self, part: i64) {
        let users = part * self.users..(part + 1) * self.users;
        let done = self.shoppers.round(users, &self.products).await;
        done.unwrap_or_else(|error| panic!("a shopper was turned away: {error}"));
    }

    async fn opens(&mut self, story: &mut Story, stage: &Stage) {
        story.part("The shop opens");
        for name in ["tea", "pot", "cup", "spoon", "tray"] {
            let added = self.shoppers.add(name, 1_000_000).await;
            self.products.push(added.unwrap_or_else(|error| panic!("no product: {error}")));
        }
        self.shop(0).await;
        stage.until_sent().await;
        let events = stage.number("select count(*) from outbox").await;
        story.tell(format!(
            "{} shoppers looked, liked, changed their minds, ordered and paid: {events} events sent",
            self.users
        ));
        let cursor = "select last_processed_id - (select max(id) from outbox) from outbox_cursor";
        story.equal("the cursor is at the last row", stage.number(cursor).await, 0);
    }

    async fn broker_dies(&mut self, story: &mut Story, stage: &mut Stage) {
        story.part("The broker dies");
        stage.broker.kill().unwrap_or_else(|error| panic!("{error}"));
        let before = stage.number("select count(*) from outbox").await;
        self.shop(1).await;
        let waiting = stage.number("select count(*) from outbox").await - before;
        story.tell(format!("the broker is killed; shoppers notice nothing, and {waiting} events wait"));
        stage.broker.start().unwrap_or_else(|error| panic!("{error}"));
        story.tell("the broker is back");
        stage.all_is_sent(story).await;
        story.equal(
            "failed because of the outage",
            stage.number("select count(*) from outbox_failed").await,
            0,
        );
    }

    async fn relay_dies(&mut self, story: &mut Story, stage: &mut Stage) {
        story.part("The active relay is killed");
        let names: Vec<&str> = stage.relays.iter().map(|(name, _)| *name).collect();
        let round = self.shop(2);
        tokio::pin!(round);
        // An idle stream belongs to nobody, so somebody has to be at work.
        let active = tokio::select! {
            () = &mut round => None,
            holder = holder(stage, &names) => Some(holder),
        };
        let at = active.unwrap_or_else(|| panic!("no relay was at work during a round of shopping"));
        let (name, mut relay) = stage.relays.remove(at);
        let other = stage.relays[0].0;
        relay.process.kill();
        let killed_at =
            stage.number("select (extract(epoch from clock_timestamp()) * 1000000)::bigint").await;
        story.tell(format!("{name} is killed in the middle of a round of shopping"));
        round.await;
        stage.all_is_sent(story).await;
        story.tell(format!("{other} has taken over, and everything was sent"));
        let batches = |by: &str| {
            format!(
                "select count(*) from postrider.settled_batch where count > 0 and settled_by = '{by}'
                and extract(epoch from settled_at) * 1000000 > {killed_at}"
            )
        };
        let (dead, alive) = (stage.number(&batches(name)).await, stage.number(&batches(other)).await);
        story.holds("the other relay goes on alone", dead == 0 && alive > 0, format!("{alive} batches"));
        let again = stage.relay(name);
        stage.relays.push((name, again));
    }

    async fn consumer_dies(&mut self, story: &mut Story, stage: &mut Stage) {
        story.part("A consumer is killed");
        let at = stage.consumers.iter().position(|(name, _)| *name == SALES).unwrap_or_default();
        let (name, mut consumer) = stage.consumers.remove(at);
        let sold = "select coalesce(sum(quantity), 0)::bigint from metrics.product_sales";
        let before = stage.number(sold).await;
        let round = self.shop(3);
        tokio::pin!(round);
        let some = async { until("some are counted", async || stage.number(sold).await > before).await };
        tokio::select! { () = &mut round => {}, () = some => {} }
        consumer.process.kill();
        round.await;
        let consumer = stage.consumer(name).await;
        stage.consumers.push((name, consumer));
        let open = "select count(*) from outbox where event_type = 'loopers.order.paid.v1' and not exists
            (select 1 from event_handled where idempotency_key = 'ProductOrderEventConsumer:' || event_id)";
        stage.comes_to(story, "orders that are not handled", open, 0).await;
        story.tell(format!("{name} was killed while it counted, and another goes on where it was"));
        let (_, differ) = SALES_OF_EACH;
        story.equal("products whose sales were counted twice or not", stage.number(differ).await, 0);
    }

    async fn event_expires(&mut self, story: &mut Story, stage: &Stage) {
        story.part("An event can't be sent");
        // Somebody publishes a type without a topic. Its time is turned back by 4:55 in the same transaction.
        stage
            .run(
                "begin;
                 select postrider.record('coupon', 'loopers.coupon.issued.v1', 'Coupon', '1', '{\"couponId\": 1}');
                 set local session_replication_role = replica;
                 update postrider.event set recorded_at = recorded_at - interval '4 min 55 s' where stream = 'coupon';
                 commit",
            )
            .await;
        let waits =
            "select count(*) from outbox where event_type like '%coupon%' and next_retry_at is not null";
        stage.comes_to(story, "events that wait for a retry", waits, 1).await;
        // A short round: all of it has to be recorded before the five minutes are over.
        let users = 4 * self.users..4 * self.users + 32;
        let done = self.shoppers.round(users, &self.products).await;
        done.unwrap_or_else(|error| panic!("a shopper was turned away: {error}"));
        let behind = "select count(*) from outbox where id > (select last_processed_id from outbox_cursor)";
        let behind = stage.number(behind).await;
        story.tell(format!(
            "a coupon has no topic: it is retried, and {behind} rows wait from it on, whatever their keys"
        ));
        story.holds("nothing overtakes an event that failed", behind > 32, behind);
        stage.all_is_sent(story).await;
        story.tell("five minutes after its recording it is failed, and the rest was sent");
        let failed = "select count(*) from outbox_failed where error_message like '%does not exist%'";
        story.equal("rows in outbox_failed, with the error", stage.number(failed).await, 1);
    }

    async fn consumer_fails(&mut self, story: &mut Story, stage: &Stage) {
        story.part("A consumer fails");
        let broken = self.shoppers.add("a cursed vase", 10).await.unwrap_or_else(|error| panic!("{error}"));
        let curse = format!(
            "create function curse() returns trigger language plpgsql as
             $$ begin if new.product_id = {broken} then raise exception 'the counter is broken'; end if; return new; end $$;
             create trigger curse before insert or update on metrics.product_sales for each row execute function curse()"
        );
        stage.run(&curse).await;
        self.shoppers.buy(1, &[(broken, 2)]).await.unwrap_or_else(|error| panic!("{error}"));
        story.comes_to("dead letters of it", async || stage.letters("order-events"), Some(1)).await;
        story.tell("an order can't be counted: three retries a second apart, and it is in order-events.DLT");
        stage.run("drop trigger curse on metrics.product_sales").await;
        let requeue = ["dead-letters", "requeue", "--topic", "order-events", "--group", SALES, "--yes"];
        let said = stage.postrider(&requeue);
        story.holds(
            "a letter is put back for its group alone",
            said.contains("put 1 dead letter back"),
            said.trim(),
        );
        let sold = format!(
            "select coalesce(sum(quantity), 0)::bigint from metrics.product_sales where product_id = {broken}"
        );
        stage.comes_to(story, "what is counted of it then", &sold, 2).await;
    }

    async fn sells_out(&mut self, story: &mut Story, stage: &Stage) {
        story.part("A product sells out");
        let rare = self.shoppers.add("a rare cup", 3).await.unwrap_or_else(|error| panic!("{error}"));
        let cache = HttpCache::new(story::process::client(), &stage.cache).patient();
        let mut seen = Ok(false);
        // The API does not wait for the cache, so on a busy machine one look may not be enough.
        until("it is cached", async || {
            seen = self.shoppers.look(rare, 1).await;
            matches!(cache.get(rare).await, Ok(Some(_)))
        })
        .await;
        story.equal("it is available, and cached", seen, Ok(true));
        self.shoppers.buy(2, &[(rare, 3)]).await.unwrap_or_else(|error| panic!("{error}"));
        let forgotten = async || matches!(cache.get(rare).await, Ok(None));
        story.eventually("the last three pieces are sold, and the cache forgets it", forgotten).await;
        story.equal("who looks now sees it available", self.shoppers.look(rare, 3).await, Ok(false));
        stage.until_sent().await;
    }
}

/// Waits until one of these relays is at work, and says which.
async fn holder(stage: &Stage, names: &[&str]) -> usize {
    let sql = "select coalesce(max(lease_owner), '') from postrider.lane where subscription = 'kafka' and lease_until > clock_timestamp()";
    let mut at = None;
    until("a relay is at work", async || {
        let holder: String = sqlx::query_scalar(sql).fetch_one(&stage.pool).await.unwrap_or_default();
        at = names.iter().position(|name| *name == holder);
        at.is_some()
    })
    .await;
    at.unwrap_or_default()
}
