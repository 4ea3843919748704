//! Recording events, in the caller's transaction.

use postrider_core::{ErrorKind, NewEvent, Recordable, Result};
use postrider_sql::record::{Portion, bind};
use sqlx_core::query::query;
use sqlx_mysql::MySqlConnection;
use uuid::Uuid;

use crate::error::{acquire, failed, must_prepare_again};
use crate::outbox::Outbox;
use crate::sql::MySqlDialect;

const RECORD: &str = include_str!("../sql/record.sql");
const OP: &str = "record";

/// A statement may have 65,535 parameters, of which a row has 13, and be as large as `max_allowed_packet`, which is 16 MB unless set.
const PORTION: Portion = Portion { rows: 5_000, bytes: 8 << 20 };
/// How often a statement is sent that the server must prepare again.
const TRIES: u32 = 5;

impl Outbox {
    postrider_sql::record_methods! {
        MySqlConnection, MySqlDialect, RECORD, PORTION,
        /// Records events in the order given: all of them, or none if one is refused. More than 5,000, or more than 8 MB, take
        /// several statements, which are all or none only within a transaction.
        record_all
    }

    /// Records an event unless its id already exists; returns whether it was recorded.
    pub async fn record_once(&self, conn: &mut MySqlConnection, event: &impl Recordable) -> Result<bool> {
        // Not `insert ignore`: a statement that fails takes back the number of its key, one that is ignored does not.
        match self.record(conn, event).await {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == ErrorKind::AlreadyRecorded => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Records an event in a transaction of its own. Use it for an event without a change of your data.
    pub async fn record_outside_transaction(&self, event: &impl Recordable) -> Result<Uuid> {
        let event = self.recording.prepare(event)?;
        let mut conn = acquire(&self.pool, OP).await?;
        // The application's sessions may not commit by themselves, and may be for reading unless they say otherwise.
        let mut transaction = conn.begin_by("start transaction read write").await.map_err(failed(OP))?;
        let event_id = self.record(&mut transaction, &event).await?;
        transaction.commit().await.map_err(failed(OP))?;
        Ok(event_id)
    }
}

/// Inserts an event that was checked.
pub(crate) async fn insert(conn: &mut MySqlConnection, event: &NewEvent) -> Result<()> {
    let mut tries = TRIES;
    loop {
        match bind::<MySqlDialect>(query(RECORD), event).execute(&mut *conn).await {
            Ok(_) => return Ok(()),
            Err(error) if must_prepare_again(&error) && tries > 1 => tries -= 1,
            Err(error) => return Err(failed(OP)(error)),
        }
    }
}
