//! A relay of the demo, in a process of its own: the shop's three subscriptions and their handlers.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use postrider::sqlite::{Outbox, Tx};
use postrider::{Context, Failure as HandlerFailure, Handle, HandleWithin, NewEvent, Received, Relay, Retry};
use sqlx_core::query::query;
use sqlx_sqlite::SqliteConnection;

use super::fault::Fault;
use super::shop::{Change, NOWHERE, Shop};
use crate::config::Log;
use crate::{Failure, logging};

/// The subscriptions, by name.
pub(crate) const BOOKS: &str = "books";
pub(crate) const MAIL: &str = "mail";
pub(crate) const WAREHOUSE: &str = "warehouse";
pub(crate) const SUBSCRIPTIONS: [&str; 3] = [BOOKS, MAIL, WAREHOUSE];
/// The lanes of each, and how long a relay keeps them without a sign of life.
pub(crate) const LANES: u32 = 2;
pub(crate) const LEASE: Duration = Duration::from_secs(2);
/// How often a mail is tried.
const TRIES: u32 = 4;
/// How long a mail server and a warehouse take to answer.
const ANSWER: Duration = Duration::from_millis(15);

/// What lies in the shop's folder while the warehouse is closed.
pub(crate) fn closed_sign(folder: &Path) -> PathBuf {
    folder.join("the-warehouse-is-closed")
}

/// Runs the relay until stdin ends: the demo closed it, or is no more.
pub(crate) async fn work(folder: &Path, name: &str, fault: Option<Fault>) -> Result<bool, Failure> {
    logging::start(&Log { json: false, level: "info".to_owned() })?;
    let shop = Shop::open(folder).await?;
    let staff =
        Arc::new(Staff { sign: closed_sign(folder), relay: name.to_owned(), fault, shop: shop.clone() });
    let mails = Retry::exponential().base(Duration::from_millis(200)).jitter(0.0).max_attempts(TRIES);
    let parcels = Retry::exponential().base(Duration::from_millis(200)).max(Duration::from_secs(1));
    let (books, mail, parcel) = (Books(Arc::clone(&staff)), Mail(Arc::clone(&staff)), Parcels(staff));
    let both = ["orders", "payments"];
    let relay = Relay::new(&shop.outbox)
        .owner(name)
        .lease(LEASE)
        .figures_every(None)
        .subscribe(BOOKS, |s| {
            let s = s.streams(both).lanes(LANES).batch(20);
            s.on_type("OrderPlaced", books.clone()).on_type("OrderPaid", books)
        })
        .subscribe(MAIL, |s| {
            let s = s.streams(both).lanes(LANES).batch(20).retry(mails);
            s.on_type("OrderPlaced", mail.clone()).on_type("OrderPaid", mail)
        })
        .subscribe(WAREHOUSE, |s| {
            let s = s.streams(both).lanes(LANES).batch(20).retry(parcels.max_attempts(100));
            s.on_type("OrderPlaced", parcel.clone()).on_type("OrderPaid", parcel)
        });
    let (ended, end) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        let _ = ended.send(());
    });
    relay.run_until(async move { _ = end.await }).await?;
    Ok(true)
}

/// What the handlers of one relay share.
struct Staff {
    shop: Shop,
    sign: PathBuf,
    relay: String,
    fault: Option<Fault>,
}

impl Staff {
    fn strikes(&self, fault: Fault, change: &Change) -> bool {
        fault.strikes(self.fault, change)
    }

    /// Writes down what a handler did, with the connection that does it.
    async fn did(
        &self,
        subscription: &str,
        event: &Received<Change>,
        conn: &mut SqliteConnection,
    ) -> Result<(), HandlerFailure> {
        let insert = "insert into effect (subscription, event_id, customer, number, relay) values ($1, $2, $3, $4, $5)";
        let insert = query(insert).bind(subscription).bind(event.event().event_id);
        insert.bind(&event.customer).bind(event.number).bind(&self.relay).execute(conn).await?;
        Ok(())
    }

    /// Writes down that a handler could not, and says so.
    async fn could_not(
        &self,
        subscription: &str,
        event: &Received<Change>,
        why: &str,
    ) -> Result<(), HandlerFailure> {
        let insert = query("insert into failed_call (subscription, event_id) values ($1, $2)");
        insert.bind(subscription).bind(event.event().event_id).execute(&self.shop.pool).await?;
        Err(HandlerFailure::retry(why))
    }
}

/// Keeps the books, in the transaction of its inbox: the entry, the event that follows and the mark commit together.
#[derive(Clone)]
struct Books(Arc<Staff>);

impl HandleWithin<Outbox, Change> for Books {
    async fn handle(&self, event: Received<Change>, mut tx: Tx, _: Context) -> Result<(), HandlerFailure> {
        self.0.did(BOOKS, &event, &mut tx).await?;
        if self.0.strikes(Fault::Effects, &event) {
            self.0.did(BOOKS, &event, &mut tx).await?;
        }
        let booked = NewEvent::of("books", "EntryBooked", "Customer", &event.customer, &event.number)?;
        tx.record(&booked).await?;
        Ok(())
    }
}

/// Sends mail. A mail can't be taken back: what is sent and not settled when a relay dies is sent again.
#[derive(Clone)]
struct Mail(Arc<Staff>);

impl Handle<Change> for Mail {
    async fn handle(&self, event: Received<Change>, _: Context) -> Result<(), HandlerFailure> {
        if event.address == NOWHERE {
            return self.0.could_not(MAIL, &event, "there is no such address").await;
        }
        if self.0.strikes(Fault::Loss, &event) {
            return Ok(());
        }
        let mut conn = self.0.shop.pool.acquire().await?;
        self.0.did(MAIL, &event, &mut conn).await?;
        if self.0.strikes(Fault::Order, &event) {
            let overtaken = "update effect set n = (select max(n) + 1 from effect)
                 where n = (select max(n) from effect where subscription = 'mail' and customer = $1 and number < $2)";
            query(overtaken).bind(&event.customer).bind(event.number).execute(&mut *conn).await?;
        }
        drop(conn);
        tokio::time::sleep(ANSWER).await;
        Ok(())
    }
}

/// Calls the warehouse, which is closed for a while.
#[derive(Clone)]
struct Parcels(Arc<Staff>);

impl Handle<Change> for Parcels {
    async fn handle(&self, event: Received<Change>, _: Context) -> Result<(), HandlerFailure> {
        if self.0.sign.exists() {
            return self.0.could_not(WAREHOUSE, &event, "the warehouse is closed").await;
        }
        let mut conn = self.0.shop.pool.acquire().await?;
        self.0.did(WAREHOUSE, &event, &mut conn).await?;
        drop(conn);
        tokio::time::sleep(ANSWER).await;
        Ok(())
    }
}
