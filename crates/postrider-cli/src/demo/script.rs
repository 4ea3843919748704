//! What happens in the demo, and when.

use std::path::Path;
use std::time::{Duration, Instant};

use tokio::task::JoinSet;

use super::Server;
use super::demo_store::DemoStore;
use super::fault::Fault;
use super::handlers::{self, LANES, LEASE, MAIL, SUBSCRIPTIONS, WAREHOUSE};
use super::relay_process::RelayProcess;
use super::screen::{Colour, Screen};
use super::shop::Shop;
use super::snapshot::{Snapshot, in_hand};
use super::tally::Tally;
use crate::Failure;
use crate::database::SharedStore;

const RELAYS: [&str; 2] = ["relay A", "relay B"];
/// How often the screen is drawn and the script looks.
const TICK: Duration = Duration::from_millis(100);
/// How long the script waits for what must happen. What did not is found by the summary.
const PATIENCE: Duration = Duration::from_secs(60);

const WAREHOUSE_CLOSES: Duration = Duration::from_secs(2);
const STRANGER_COMES: Duration = Duration::from_millis(2500);
const WAREHOUSE_OPENS: Duration = Duration::from_millis(4500);
const RELAY_DIES: Duration = Duration::from_secs(7);
const SHOP_CLOSES: Duration = Duration::from_secs(11);

/// How the demo ended.
pub(crate) enum Ending {
    /// It was played to the end.
    Whole {
        /// Whether every promise held.
        held: bool,
    },
    /// Somebody asked the process to end.
    Interrupted,
    /// Nobody reads what it writes.
    Unseen,
}

/// Plays the demo in this database, with a folder for its relays, and the address that they need.
pub(crate) async fn play(
    screen: &mut Screen,
    store: impl DemoStore,
    folder: &Path,
    server: Option<Server<'_>>,
    fault: Option<Fault>,
) -> Result<Ending, Failure> {
    let shop = Shop::new(store);
    let log = shop.store.log().await?;
    let start = |name| RelayProcess::start(name, folder, server, fault);
    let relay_processes = vec![start(RELAYS[0])?, start(RELAYS[1])?];
    let sales = shop.sell();
    let mut stage = Stage { screen, shop, log, relay_processes, sales };
    match stage.play(folder).await {
        Ok(held) => Ok(Ending::Whole { held }),
        Err(failure) if failure.is::<Unseen>() => Ok(Ending::Unseen),
        Err(failure) => Err(failure),
    }
}

/// Whoever read what the demo writes has closed the pipe.
#[derive(Debug)]
struct Unseen;

impl std::fmt::Display for Unseen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("nobody reads this")
    }
}

impl std::error::Error for Unseen {}

struct Stage<'a, P> {
    screen: &'a mut Screen,
    shop: Shop<P>,
    log: SharedStore,
    relay_processes: Vec<RelayProcess>,
    sales: JoinSet<Result<(), Failure>>,
}

impl<P: DemoStore> Stage<'_, P> {
    async fn play(&mut self, folder: &Path) -> Result<bool, Failure> {
        let title = self.screen.paint(Colour::Bold, &format!("A shop on {}", self.shop.store.name()));
        self.screen.say(&format!(
            "{title}. Customers order and pay; change and event commit together.\n\
             Two relays deliver to the books (in a transaction), to mail and to a warehouse.\n"
        ));
        self.screen.happened("the shop opens");
        if self.until(|snapshot| snapshot.lanes.iter().all(|lanes| *lanes > 0)).await?.is_some() {
            self.screen.happened("relays A and B, one process each, share the lanes");
        }
        self.trouble_in_the_warehouse(folder).await?;
        self.at(RELAY_DIES).await?;
        self.death_of_a_relay().await?;
        self.at(SHOP_CLOSES).await?;
        self.shop.close();
        while let Some(ended) = tokio::time::timeout(PATIENCE, self.sales.join_next()).await? {
            ended??;
        }
        self.screen.happened("the shop closes");
        if self.until(Snapshot::is_quiet).await?.is_some() {
            self.screen.happened("nothing is left to deliver");
        }
        for relay_process in self.relay_processes.drain(..) {
            relay_process.stop().await?;
        }
        let took = self.screen.elapsed();
        let tally = Tally::count(&self.shop.store).await?;
        self.shop.store.tidy().await?;
        Ok(tally.print(self.screen, took))
    }

    async fn trouble_in_the_warehouse(&mut self, folder: &Path) -> Result<(), Failure> {
        let sign = handlers::closed_sign(folder);
        self.at(WAREHOUSE_CLOSES).await?;
        std::fs::write(&sign, "")?;
        self.happened(Colour::Yellow, "the warehouse is closed: its deliveries fail and are retried");
        self.at(STRANGER_COMES).await?;
        self.shop.let_a_stranger_in();
        self.screen.happened("a customer with an invalid address orders");
        let snapshot = self.until(|snapshot| !snapshot.dead.is_empty()).await?.unwrap_or_default();
        if let Some((attempts, why)) = snapshot.dead.first() {
            let what = format!("{MAIL}: an event is dead after {attempts} attempts: {why}");
            self.happened(Colour::Red, &what);
        }
        self.at(WAREHOUSE_OPENS).await?;
        let waiting = self.look().await?.of(WAREHOUSE).retrying;
        std::fs::remove_file(&sign)?;
        self.screen.happened(&format!("the warehouse opens again; {waiting} events wait for it"));
        if self.until(|snapshot| snapshot.of(WAREHOUSE).retrying == 0).await?.is_some() {
            self.happened(Colour::Green, "the warehouse has received them all");
        }
        Ok(())
    }

    async fn death_of_a_relay(&mut self) -> Result<(), Failure> {
        // In mid-work: something is done and not settled.
        let end = Instant::now() + PATIENCE;
        while in_hand(&self.shop.store, RELAYS[0]).await? == 0 && Instant::now() < end {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let mut doomed = self.relay_processes.remove(0);
        let process = doomed.id();
        doomed.kill()?;
        let died = Instant::now();
        let left = in_hand(&self.shop.store, RELAYS[0]).await?;
        let what = format!("relay A ({process}) is killed: {left} events are delivered but not settled");
        self.happened(Colour::Red, &what);
        let all = SUBSCRIPTIONS.len() * LANES as usize;
        if self.until(|snapshot| snapshot.lanes[1] == all).await?.is_some() {
            let (after, lease) = (died.elapsed().as_secs_f64(), LEASE.as_secs());
            let what = format!("relay B takes over after {after:.1} s; a lease lasts {lease} s");
            self.happened(Colour::Green, &what);
        }
        Ok(())
    }

    fn happened(&mut self, colour: Colour, what: &str) {
        let what = self.screen.paint(colour, what);
        self.screen.happened(&what);
    }

    /// Looks, and shows what is seen.
    async fn look(&mut self) -> Result<Snapshot, Failure> {
        let mut snapshot = Snapshot::take(&self.shop.store, &self.log, RELAYS).await?;
        snapshot.killed = self.relay_processes.len() < RELAYS.len();
        self.screen.show(&snapshot, RELAYS);
        if self.screen.is_closed() {
            return Err(Unseen.into());
        }
        for relay_process in &mut self.relay_processes {
            relay_process.check()?;
        }
        if let Some(ended) = self.sales.try_join_next() {
            ended??;
        }
        Ok(snapshot)
    }

    /// Waits for that time of the demo.
    async fn at(&mut self, time: Duration) -> Result<(), Failure> {
        while self.screen.elapsed() < time {
            self.look().await?;
            tokio::time::sleep(TICK.min(time.saturating_sub(self.screen.elapsed()))).await;
        }
        Ok(())
    }

    /// Waits until that is so: what was seen then. Nothing if patience ended first, which is said, and the play goes on.
    async fn until(&mut self, is_so: impl Fn(&Snapshot) -> bool) -> Result<Option<Snapshot>, Failure> {
        let end = Instant::now() + PATIENCE;
        loop {
            let snapshot = self.look().await?;
            if is_so(&snapshot) {
                return Ok(Some(snapshot));
            }
            if Instant::now() > end {
                let what = format!(
                    "the demo timed out: the expected events did not arrive within {} s",
                    PATIENCE.as_secs()
                );
                self.happened(Colour::Red, &what);
                return Ok(None);
            }
            tokio::time::sleep(TICK).await;
        }
    }
}
