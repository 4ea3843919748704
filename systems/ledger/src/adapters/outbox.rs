//! The events of the ledger as events of Postrider.

use postrider::mysql::Outbox;
use postrider::{ErrorKind, NewEvent, Uuid};
use sqlx::MySqlConnection;

use crate::adapters::wire::{LegPayload, VERSION};
use crate::application::problem::{Answer, Problem};
use crate::domain::event::LedgerEvent;
use crate::domain::{AccountId, TransactionId};

/// The stream of the ledger's events.
pub const STREAM: &str = "ledger";
/// The type of their aggregate.
pub const AGGREGATE: &str = "TRANSACTION";
/// What the ids of events are made in.
const NAMESPACE: Uuid = Uuid::from_u128(0x6c65_6467_6572_5f65_8000_7665_6e74_7331);

/// The id of the event of a leg: whoever asks for the same leg again gets the same id.
pub fn event_id(transaction: TransactionId, account: AccountId) -> Uuid {
    Uuid::new_v5(&NAMESPACE, format!("{transaction}:{account}").as_bytes())
}

/// An event, ordered and numbered within its account although its aggregate is the transaction.
pub fn new_event(event: &dyn LedgerEvent) -> postrider::Result<NewEvent> {
    let (transaction, account) = (event.transaction(), event.account());
    let payload = LegPayload::of(transaction, account);
    let kind = event.event_type();
    let mut new = NewEvent::of(STREAM, kind, AGGREGATE, transaction.id.to_string(), &payload)?
        .with_id(event_id(transaction.id, account))
        .ordered_by(account.to_string())
        .with_header("source", "ledger")
        .sequenced();
    new.headers.set_schema_version(VERSION);
    new.occurred_at = Some(transaction.occurred_at);
    Ok(new)
}

/// Records an event in the transaction that the connection is in, unless its leg has one.
pub async fn record(outbox: &Outbox, connection: &mut MySqlConnection, event: &NewEvent) -> Answer<()> {
    match outbox.record_once(connection, event).await {
        Ok(_) => Ok(()),
        Err(error) => Err(problem(error)),
    }
}

/// What a failure of Postrider is for the ledger.
pub fn problem(error: postrider::Error) -> Problem {
    match error.kind() {
        ErrorKind::Conflict => Problem::Conflict,
        ErrorKind::Invalid => Problem::Invalid(error.message().to_owned()),
        _ => Problem::broken(error),
    }
}
