//! The payload of the ledger's events, its versions and its catalog.
//!
//! Version 2 added `currency`. Fields are only ever added, and only optional ones: the lock beside this package refuses anything else.

use std::borrow::Cow;

use postrider::catalog::Catalog;
use postrider::{Event, Upcasters};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use time::format_description::well_known::Rfc3339;

use crate::application::projection::Leg;
use crate::domain::transaction::Transaction;
use crate::domain::{AccountId, TransactionId};

/// The version that is written.
pub const VERSION: u32 = 2;
/// The currency of the ledger, and of every event that says none.
pub const CURRENCY: &str = "KRW";

/// A leg of a transaction, with the whole transaction that it belongs to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LegPayload {
    /// The transaction.
    pub transaction_id: TransactionId,
    /// `DEPOSIT`, `WITHDRAWAL`, `TRANSFER` or `REVERSAL`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Whose leg it is.
    pub account_id: AccountId,
    /// All entries of the transaction.
    pub entries: Vec<EntryPayload>,
    /// When it happened, RFC 3339.
    pub occurred_at: String,
    /// What it takes back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reverses: Option<TransactionId>,
    /// What the customer wrote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memo: Option<String>,
    /// The currency. Since version 2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub currency: Option<String>,
}

/// An entry of the journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EntryPayload {
    /// Whose.
    pub account_id: AccountId,
    /// `DEBIT` or `CREDIT`.
    pub side: String,
    /// How much.
    pub amount: i64,
}

impl LegPayload {
    /// The leg of a transaction on one account.
    pub fn of(transaction: &Transaction, account: AccountId) -> Self {
        let entries = transaction.entries.iter().map(|entry| EntryPayload {
            account_id: entry.account,
            side: entry.side.as_str().to_owned(),
            amount: entry.amount,
        });
        Self {
            transaction_id: transaction.id,
            kind: transaction.kind.as_str().to_owned(),
            account_id: account,
            entries: entries.collect(),
            occurred_at: transaction.occurred_at.format(&Rfc3339).unwrap_or_default(),
            reverses: transaction.reverses,
            memo: transaction.memo.clone(),
            currency: Some(CURRENCY.to_owned()),
        }
    }

    /// The leg, with its number among the events of its account.
    pub fn leg(&self, sequence: Option<i64>) -> Leg {
        let own = self.entries.iter().filter(|entry| entry.account_id == self.account_id);
        let change = own.map(|entry| if entry.side == "CREDIT" { entry.amount } else { -entry.amount });
        Leg {
            transaction: self.transaction_id,
            account: self.account_id,
            change: change.sum(),
            currency: self.currency.clone().unwrap_or_default(),
            sequence: sequence.unwrap_or_default(),
        }
    }
}

/// The payload's schema, which the lock compares with every schema that was ever recorded.
fn schema() -> Schema {
    json_schema!({
        "type": "object",
        "properties": {
            "transactionId": { "type": "integer", "format": "int64" },
            "type": { "type": "string" },
            "accountId": { "type": "integer", "format": "int64" },
            "entries": { "type": "array", "items": {
                "type": "object",
                "properties": {
                    "accountId": { "type": "integer", "format": "int64" },
                    "side": { "type": "string" },
                    "amount": { "type": "integer", "format": "int64" }
                },
                "required": ["accountId", "side", "amount"]
            } },
            "occurredAt": { "type": "string" },
            "reverses": { "type": ["integer", "null"], "format": "int64", "default": null },
            "memo": { "type": ["string", "null"], "default": null },
            "currency": { "type": ["string", "null"], "default": null }
        },
        "required": ["transactionId", "type", "accountId", "entries", "occurredAt"]
    })
}

macro_rules! events {
    ($($(#[$meaning:meta])* $event:ident = $name:literal),+ $(,)?) => {$(
        $(#[$meaning])*
        #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $event(pub LegPayload);

        impl JsonSchema for $event {
            fn schema_name() -> Cow<'static, str> {
                stringify!($event).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                schema()
            }
        }

        impl Event for $event {
            const NAME: &'static str = $name;
            const VERSION: u32 = VERSION;
            const STREAM: &'static str = crate::adapters::outbox::STREAM;
            const AGGREGATE: &'static str = crate::adapters::outbox::AGGREGATE;
            const SEQUENCED: bool = true;
            const KEY_FIELD: Option<&'static str> = Some("accountId");

            fn aggregate_id(&self) -> String {
                self.0.transaction_id.to_string()
            }

            fn ordering_key(&self) -> Option<String> {
                Some(self.0.account_id.to_string())
            }
        }
    )+};
}

events! {
    /// An account was posted to.
    LedgerPosted = "LEDGER_POSTED",
    /// A posting to an account was taken back.
    LedgerReversed = "LEDGER_REVERSED",
}

/// From version 1 to 2: what was recorded before there were currencies is in the ledger's own.
pub fn upcasters() -> Upcasters {
    let with_currency = |mut payload: Value| {
        if let Some(fields) = payload.as_object_mut() {
            fields.entry("currency").or_insert_with(|| json!(CURRENCY));
        }
        payload
    };
    Upcasters::new().of::<LedgerPosted>(1, with_currency).of::<LedgerReversed>(1, with_currency)
}

/// The events of the ledger as data.
pub fn catalog() -> Catalog {
    Catalog::new("ledger").upcasters(upcasters()).event::<LedgerPosted>().event::<LedgerReversed>()
}
