//! A relay of the demo, in a process of its own: the shop's three subscriptions and their handlers.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use postrider::{
    Context, Failure as HandlerFailure, Handle, HandleWithin, NewEvent, Received, Relay, Retry, Tx,
};

use super::demo_store::{DemoStore, Effect};
use super::fault::Fault;
use super::shop::{Change, NOWHERE};
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
pub(crate) async fn work<P: DemoStore>(
    store: P,
    folder: &Path,
    name: &str,
    fault: Option<Fault>,
) -> Result<bool, Failure> {
    logging::start(&Log { json: false, level: "info".to_owned() })?;
    let handlers =
        Handlers { sign: closed_sign(folder), relay: name.to_owned(), fault, store: store.clone() };
    let handlers = Arc::new(handlers);
    let mails = Retry::exponential().base(Duration::from_millis(200)).jitter(0.0).max_attempts(TRIES);
    let parcels = Retry::exponential().base(Duration::from_millis(200)).max(Duration::from_secs(1));
    let books = || Books(Arc::clone(&handlers));
    let mail = || Mail(Arc::clone(&handlers));
    let parcel = || Parcels(Arc::clone(&handlers));
    let both = ["orders", "payments"];
    let relay = Relay::new(store.outbox())
        .owner(name)
        .lease(LEASE)
        .figures_every(None)
        .subscribe(BOOKS, |s| {
            let s = s.streams(both).lanes(LANES).batch(20);
            s.on_type("OrderPlaced", books()).on_type("OrderPaid", books())
        })
        .subscribe(MAIL, |s| {
            let s = s.streams(both).lanes(LANES).batch(20).retry(mails);
            s.on_type("OrderPlaced", mail()).on_type("OrderPaid", mail())
        })
        .subscribe(WAREHOUSE, |s| {
            let s = s.streams(both).lanes(LANES).batch(20).retry(parcels.max_attempts(100));
            s.on_type("OrderPlaced", parcel()).on_type("OrderPaid", parcel())
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
struct Handlers<P> {
    store: P,
    sign: PathBuf,
    relay: String,
    fault: Option<Fault>,
}

impl<P: DemoStore> Handlers<P> {
    fn strikes(&self, fault: Fault, change: &Change) -> bool {
        fault.strikes(self.fault, change)
    }

    /// What a handler does about an event.
    fn effect<'a>(&'a self, subscription: &'a str, event: &'a Received<Change>) -> Effect<'a> {
        let (customer, number) = (event.customer.as_str(), event.number);
        Effect { subscription, event_id: event.event().event_id, customer, number, relay: &self.relay }
    }

    /// Writes down that a handler could not, and says so.
    async fn could_not(&self, effect: &Effect<'_>, why: &str) -> Result<(), HandlerFailure> {
        self.store.could_not(effect).await?;
        Err(HandlerFailure::retry(why))
    }
}

/// Keeps the books, in the transaction of its inbox: the entry, the event that follows and the mark commit together.
struct Books<P>(Arc<Handlers<P>>);

impl<P: DemoStore> HandleWithin<P::Outbox, Change> for Books<P> {
    async fn handle(
        &self,
        event: Received<Change>,
        mut tx: Tx<P::Outbox>,
        _: Context,
    ) -> Result<(), HandlerFailure> {
        let effect = self.0.effect(BOOKS, &event);
        P::did(&mut tx, &effect).await?;
        if self.0.strikes(Fault::Effects, &event) {
            P::did(&mut tx, &effect).await?;
        }
        let booked = NewEvent::of("books", "EntryBooked", "Customer", &event.customer, &event.number)?;
        tx.record(&booked).await?;
        Ok(())
    }
}

/// Sends mail. A mail can't be taken back: what is sent and not settled when a relay dies is sent again.
struct Mail<P>(Arc<Handlers<P>>);

impl<P: DemoStore> Handle<Change> for Mail<P> {
    async fn handle(&self, event: Received<Change>, _: Context) -> Result<(), HandlerFailure> {
        let effect = self.0.effect(MAIL, &event);
        if event.address == NOWHERE {
            return self.0.could_not(&effect, "there is no such address").await;
        }
        if self.0.strikes(Fault::Loss, &event) {
            return Ok(());
        }
        self.0.store.did_alone(&effect).await?;
        if self.0.strikes(Fault::Order, &event) {
            self.0.store.overtake(&effect).await?;
        }
        tokio::time::sleep(ANSWER).await;
        Ok(())
    }
}

/// Calls the warehouse, which is closed for a while.
struct Parcels<P>(Arc<Handlers<P>>);

impl<P: DemoStore> Handle<Change> for Parcels<P> {
    async fn handle(&self, event: Received<Change>, _: Context) -> Result<(), HandlerFailure> {
        let effect = self.0.effect(WAREHOUSE, &event);
        if self.0.sign.exists() {
            return self.0.could_not(&effect, "the warehouse is closed").await;
        }
        self.0.store.did_alone(&effect).await?;
        tokio::time::sleep(ANSWER).await;
        Ok(())
    }
}
