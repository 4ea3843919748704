//! A small shop on an embedded database. Every figure that it prints was counted.

mod report;
mod shop;

use std::sync::Arc;
use std::time::{Duration, Instant};

use postrider::{Failure as HandlerFailure, Received, Relay, Retry, Running, Uuid, sqlite, wait};
use tokio::task::JoinSet;

use report::Tally;
use shop::{OrderChanged, ReceiptSent, Shop};

pub(crate) type Failure = Box<dyn std::error::Error + Send + Sync>;

const WRITERS: u64 = 4;
const RECEIPTS: &str = "receipts";
const MAIL: &str = "mail";
const LEASE: Duration = Duration::from_secs(1);
/// Relay 1 dies when so many mails are out.
const DOOM: u64 = 100;
/// How long the demo waits for what must happen.
const PATIENCE: Duration = Duration::from_secs(60);

/// Runs the demo; whether every promise held.
pub(crate) async fn run() -> Result<bool, Failure> {
    let began = Instant::now();
    let folder = std::env::temp_dir().join(format!("postrider-demo-{}", Uuid::now_v7().simple()));
    std::fs::create_dir_all(&folder).map_err(|error| {
        format!("the folder {} can't be made ({error}); set TMPDIR to one where it can", folder.display())
    })?;
    let file = folder.join("shop.db");
    println!("A shop on SQLite, in {}", file.display());
    println!(
        "  {WRITERS} writers change orders and record it in the same transaction; one in five rolls back"
    );
    println!(
        "  `{RECEIPTS}` writes a receipt and records an event of its own, in one transaction with its inbox"
    );
    println!("  `{MAIL}` sends mail: every fiftieth fails at first, and one address does not exist");
    println!("  2 relays share the lanes; relay 1 is killed when {DOOM} mails are out");

    let shop = Shop::open(&file).await?;
    let tally = Arc::new(Tally::default());
    let doomed = Doomed::start(&file, &tally)?;
    let relay = relay(&shop.outbox, "relay 2", &tally).start().await?;
    let mut writers = JoinSet::new();
    for number in 0..WRITERS {
        writers.spawn(shop.clone().write(number, Arc::clone(&tally)));
    }
    doomed.die(&tally).await?;
    for outcome in writers.join_all().await {
        outcome?;
    }
    finish(relay).await?;
    let figures = shop.figures().await?;
    Ok(report::print(&tally, &figures, &file, began.elapsed()))
}

/// A relay of the shop, as any process of it would run one.
fn relay(outbox: &sqlite::Outbox, owner: &str, tally: &Arc<Tally>) -> Relay<sqlite::Outbox> {
    let mails = Arc::clone(tally);
    let mail = move |event: Received<OrderChanged>| {
        let mails = Arc::clone(&mails);
        async move {
            if event.order == "order-7" && event.version == 3 {
                return Err(HandlerFailure::reject("there is no such address"));
            }
            if event.attempt() == 1 && event.event().id % 50 == 0 {
                return Err(HandlerFailure::retry("the mail server is busy"));
            }
            mails.mailed(&event);
            Ok(())
        }
    };
    let soon = Retry::exponential().base(Duration::from_millis(100));
    Relay::new(outbox)
        .owner(owner)
        .lease(LEASE)
        .subscribe(RECEIPTS, |s| s.on(receipt).lanes(2).batch(20))
        .subscribe(MAIL, |s| s.on(mail).retry(soon).lanes(2).batch(20))
}

/// A transactional handler: the receipt, the event that follows and the mark in the inbox commit together.
async fn receipt(event: Received<OrderChanged>, mut tx: sqlite::Tx) -> Result<(), HandlerFailure> {
    let insert =
        sqlx_core::query::query("insert into receipt (event_id, shop_order, version) values ($1, $2, $3)");
    let insert = insert.bind(event.event().event_id).bind(&event.order).bind(event.version);
    insert.execute(&mut *tx).await?;
    Ok(tx.record(&ReceiptSent { order: event.order.clone(), version: event.version }).await?)
}

/// Relay 1, on a runtime of its own, so that it can be ended as a killed process ends: in the middle of everything.
struct Doomed(tokio::runtime::Runtime);

impl Doomed {
    fn start(file: &std::path::Path, tally: &Arc<Tally>) -> Result<Self, Failure> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let (file, tally) = (file.to_owned(), Arc::clone(tally));
        runtime.spawn(async move {
            let ran = async {
                let shop = Shop::open(&file).await?;
                relay(&shop.outbox, "relay 1", &tally).run_until(std::future::pending()).await?;
                Ok::<(), Failure>(())
            };
            if let Err(failure) = ran.await {
                eprintln!("postrider: demo: relay 1: {failure}");
            }
        });
        Ok(Self(runtime))
    }

    async fn die(self, tally: &Tally) -> Result<(), Failure> {
        let end = Instant::now() + PATIENCE;
        while tally.mails() < DOOM {
            if Instant::now() > end {
                self.0.shutdown_background();
                return Err("no mail went out within a minute".into());
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        self.0.shutdown_background();
        println!("  relay 1 was killed; its lanes are free when its lease of 1 s has run out");
        Ok(())
    }
}

async fn finish(relay: Running) -> Result<(), Failure> {
    for subscription in [RECEIPTS, MAIL] {
        wait::quiet(&**relay.store(), subscription, PATIENCE).await?;
    }
    Ok(relay.stop().await?)
}
