//! The read model of balances: `account_balance_view`.

use postrider::kafka::Consumer;
use postrider::mysql::{Outbox, Tx};
use postrider::store::Recorded;
use postrider::{Failure, Received};

use super::Topics;
use crate::adapters::wire::{LedgerPosted, LedgerReversed, LegPayload};
use crate::application::problem::{Answer, Problem};
use crate::application::projection::{BalanceView, Leg, project};

/// The consumer that keeps the read model. It watches the numbers of each account where one topic has all of them.
pub fn read_model(outbox: &Outbox, topics: &Topics) -> Consumer<Outbox> {
    let consumer = topics.consumer(outbox, "ledger-read-model");
    let consumer = consumer
        .on(async |event: Received<LedgerPosted>, tx: Tx| apply(&event.0, event.event(), tx).await)
        .on(async |event: Received<LedgerReversed>, tx: Tx| apply(&event.0, event.event(), tx).await);
    if !topics.have_whole_sequences() {
        // By design: the numbers of an account are spread over the topics.
        return consumer.numbered_keys(0);
    }
    consumer.on_gap(|gap| {
        tracing::warn!(account = gap.key, expected = gap.expected, got = gap.got, event_id = %gap.event_id,
            "an event of this account is missing; look for a dead one: postrider dead list");
    })
}

async fn apply(payload: &LegPayload, event: &Recorded, mut tx: Tx) -> Result<(), Failure> {
    let leg = payload.leg(event.sequence);
    if !project(&leg, &mut View(&mut tx)).await? {
        tracing::warn!(transaction_id = leg.transaction, account_id = leg.account, event_id = %event.event_id,
            "duplicate event ignored");
    }
    Ok(())
}

/// The read model, in the transaction of the handler.
struct View<'a>(&'a mut Tx);

impl BalanceView for View<'_> {
    async fn first_time(&mut self, key: &str) -> Answer<bool> {
        self.0.first_time_by_key(key).await.map_err(Problem::broken)
    }

    async fn add(&mut self, leg: &Leg) -> Answer<()> {
        let sql = "insert into account_balance_view
                       (account_id, amount, currency, last_transaction_id, last_sequence, updated_at)
                   values (?, ?, ?, ?, ?, utc_timestamp(6))
                   on duplicate key update amount = amount + values(amount),
                       last_transaction_id = values(last_transaction_id),
                       last_sequence = greatest(last_sequence, values(last_sequence)),
                       updated_at = values(updated_at)";
        let add = sqlx::query(sql).bind(leg.account).bind(leg.change).bind(&leg.currency);
        let add = add.bind(leg.transaction).bind(leg.sequence);
        add.execute(&mut **self.0).await.map_err(Problem::broken).map(drop)
    }
}
