//! Charges of subscriptions that end while nobody knows whether they were made, and of several workers at once.

use postrider::Uuid;
use postrider_testkit::until;
use umbra::adapters::postgres::unit::UnitOfWork;
use umbra::adapters::toss::Toss;
use umbra::billing::charging::{Accounts, GRACE, charge_due};
use umbra::contracts::*;
use umbra::stubs;
use umbra::stubs::toss::Control;

use crate::world::{World, serve};

/// The gateway: its stub, and a client of it.
async fn gateway() -> (stubs::toss::Toss, Toss) {
    let stub = stubs::toss::Toss::default();
    let client = Toss::new(&serve(stub.clone().router()).await);
    (stub, client)
}

/// How a subscription ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    Canceled,
    CanceledWithThePeriod,
    GuildDeleted,
    BotKicked,
    KeyDeleted,
}

const ENDINGS: [Ending; 5] = [
    Ending::Canceled,
    Ending::CanceledWithThePeriod,
    Ending::GuildDeleted,
    Ending::BotKicked,
    Ending::KeyDeleted,
];

impl Ending {
    async fn comes(self, world: &World, subscription: SubscriptionId, guild_id: GuildId, key: Uuid) {
        match self {
            Self::Canceled => assert!(world.service.cancel(subscription, false).await.expect("canceled")),
            Self::CanceledWithThePeriod => {
                assert!(world.service.cancel(subscription, true).await.expect("canceled"));
            }
            Self::GuildDeleted => {
                world.publish(GuildDeleted { guild_id }).await;
            }
            Self::BotKicked => {
                world.publish(BotKicked { guild_id }).await;
            }
            Self::KeyDeleted => assert!(world.delete_key(key).await),
        }
        world.quiet().await;
    }
}

impl World {
    /// The results of all attempts, in the order in which they were opened.
    async fn results(&self) -> Vec<String> {
        let sql = "select coalesce(result, 'open') from billing.payment_attempts order by opened_at, result";
        self.all(sql).await
    }

    /// An order that is written down with an attempt, and not charged yet.
    async fn ordered(&self, guild_id: GuildId, key: Uuid) -> SubscriptionId {
        let order = self.order(guild_id, Some(key)).await;
        self.service.open(&order, Uuid::new_v4(), self.began).await.expect("opened");
        order.subscription_id
    }
}

/// U9, U19: the gateway is away when a charge is due, and the subscription ends before it is back: nothing is charged, whatever ended it,
/// and the attempt says so. The same if the gateway had taken the money and its answer was lost: it is given back.
#[tokio::test]
async fn a_subscription_that_ends_while_the_gateway_is_away_is_not_charged() {
    for (ending, lost) in ENDINGS.into_iter().flat_map(|ending| [(ending, false), (ending, true)]) {
        let world = World::new().await;
        let (stub, toss) = gateway().await;
        let (guild, key) = (Uuid::new_v4(), Uuid::new_v4());
        world.service.issue_key(key, Uuid::new_v4()).await.expect("issued");
        let subscription = world.subscribed_with(guild, Some(key)).await;
        let due = world.began + PERIOD;
        stub.control(&Control { down: Some(!lost), lose: Some(lost), ..Control::default() });
        charge_due(due, &world.service, &toss).await.expect_err("the gateway is away");
        assert_eq!((stub.figures().charges, stub.figures().requests), (u64::from(lost), 1));

        ending.comes(&world, subscription, guild, key).await;
        charge_due(due + GRACE, &world.service, &toss).await.expect_err("it is still away");
        assert_eq!(world.results().await, ["succeeded", "open"], "nobody knows");
        stub.control(&Control { down: Some(false), lose: Some(false), ..Control::default() });
        charge_due(due + GRACE, &world.service, &toss).await.expect("it is back");
        let figures = stub.figures();
        let wanted = (u64::from(lost), u64::from(lost), 0);
        assert_eq!((figures.charges, figures.refunds, figures.won), wanted, "{ending:?}");
        let result = if lost { "refunded" } else { "void" };
        assert_eq!(world.results().await, ["succeeded", result], "{ending:?}");
        let rests = [Ending::BotKicked, Ending::KeyDeleted].contains(&ending);
        let status = if rests { "suspended" } else { "canceled" };
        assert_eq!(world.subscription(subscription).await.0, status, "{ending:?}");
        let after = charge_due(due + 40 * DAY, &world.service, &toss).await;
        assert_eq!(after.expect("nothing is due"), 0);
        assert_eq!(world.count("PaymentSucceeded").await, 0);
    }
}

/// U9, U19: the same with the first charge: whoever cancels before it was made, or has no bot or no key any more, has no subscription and
/// has paid nothing.
#[tokio::test]
async fn a_subscription_that_ends_before_its_first_charge_never_begins() {
    for ending in ENDINGS {
        let world = World::new().await;
        let (stub, toss) = gateway().await;
        let (guild, key) = (Uuid::new_v4(), Uuid::new_v4());
        world.service.issue_key(key, Uuid::new_v4()).await.expect("issued");
        let subscription = world.ordered(guild, key).await;
        stub.control(&Control { lose: Some(true), ..Control::default() });
        charge_due(world.began + GRACE, &world.service, &toss).await.expect_err("the answer is lost");
        ending.comes(&world, subscription, guild, key).await;
        stub.control(&Control { lose: Some(false), ..Control::default() });
        charge_due(world.began + GRACE, &world.service, &toss).await.expect("it is back");
        assert_eq!((stub.figures().refunds, stub.figures().won), (1, 0), "{ending:?}");
        assert_eq!(world.subscription(subscription).await.0, "canceled", "{ending:?}");
        assert_eq!(world.count("SubscriptionCanceled").await, 1, "{ending:?}: its user is told");
        assert_eq!(world.count("SubscriptionStarted").await, 0);
    }
}

/// U9, U19: a subscription ends while the gateway charges it: the answer comes too late, and the money is given back.
#[tokio::test]
async fn a_charge_that_is_answered_after_the_end_is_given_back() {
    let world = World::new().await;
    let (stub, toss) = gateway().await;
    let guild_id = Uuid::new_v4();
    let subscription = world.subscribed(guild_id).await;
    stub.control(&Control { hold: Some(true), ..Control::default() });
    let (service, due) = (world.service.clone(), world.began + PERIOD);
    let charging = tokio::spawn(async move { charge_due(due, &service, &toss).await });
    until("the gateway has charged", async || stub.figures().charges == 1).await;
    assert!(world.service.cancel(subscription, false).await.expect("canceled"));
    stub.control(&Control { hold: Some(false), ..Control::default() });
    assert_eq!(charging.await.expect("it ends").expect("charged"), 1);
    assert_eq!((stub.figures().refunds, stub.figures().won), (1, 0));
    assert_eq!(world.results().await, ["succeeded", "refunded"]);
    assert_eq!(world.subscription(subscription).await.0, "canceled");
    assert_eq!(world.count("PaymentSucceeded").await, 0);
}

/// U9: two workers find the same charge due. The second one waits for the lock, and looks again: whether the first one's charge succeeded
/// or failed, there is no second one.
#[tokio::test]
async fn a_charge_that_another_worker_has_made_is_due_no_more() {
    for succeeded in [true, false] {
        let world = World::new().await;
        let subscription = world.subscribed(Uuid::new_v4()).await;
        let due = world.began + PERIOD;
        let opened = world.service.open_due(due).await.expect("opened");
        assert_eq!(opened.len(), 1);
        let mut tx = world.db.begin().await.expect("a transaction");
        let unit = &mut UnitOfWork::Command(&world.outbox, &mut tx);
        assert!(umbra::billing::settle(opened[0].id, succeeded, due, unit).await.expect("settled"));

        let service = world.service.clone();
        let second = tokio::spawn(async move { service.open_due(due).await });
        let waits = "select count(*) from pg_stat_activity where datname = current_database()
            and wait_event_type = 'Lock' and query like '%billing.subscriptions%for update'";
        until("it waits for the lock", async || world.one::<i64>(waits).await == 1).await;
        tx.commit().await.expect("committed");
        assert_eq!(second.await.expect("it ends").expect("an answer"), [], "succeeded: {succeeded}");
        let (status, failures) = if succeeded { ("active", 0) } else { ("past_due", 1) };
        assert_eq!(world.subscription(subscription).await, (status.to_owned(), failures));
        assert_eq!(world.results().await.len(), 2);
    }
}

/// U9: an attempt costs what its plan cost when it was opened, because the gateway knows it by its key; and a plan that is raised while it
/// is open stays raised.
#[tokio::test]
async fn an_open_attempt_keeps_its_price_when_the_plan_changes() {
    let world = World::new().await;
    let (stub, toss) = gateway().await;
    let guild = Uuid::new_v4();
    let subscription = world.subscribed(guild).await;
    let due = world.began + PERIOD;
    stub.control(&Control { lose: Some(true), ..Control::default() });
    charge_due(due, &world.service, &toss).await.expect_err("the answer is lost");
    assert!(world.service.change_plan(subscription, "team").await.expect("changed"));
    stub.control(&Control { lose: Some(false), ..Control::default() });
    charge_due(due + GRACE, &world.service, &toss).await.expect("it is back");
    assert_eq!(stub.figures().won, 9_900);
    world.quiet().await;
    assert_eq!(world.license(guild).await, crate::world::pair("team", "active"));
    assert_eq!(world.count("LicenseDowngraded").await, 0);
    charge_due(due + GRACE + PERIOD, &world.service, &toss).await.expect("charged");
    assert_eq!(stub.figures().won, 9_900 + 29_900);
}
