//! What is wrong with the database, or will be, as far as it can tell itself.

use std::time::{Duration, Instant};

use postrider_core::{Check, ErrorKind, OffsetDateTime, Result};
use postrider_sql::checks::{inbox, lanes};
use sqlx_postgres::PgRow;

use crate::bell::BellHealth;
use crate::error::during;
use crate::migrate::schema_version;
use crate::row;
use crate::store::PgStore;

/// A transaction that is open for longer keeps dead rows from being removed.
const LONG: i64 = 300;
/// How far the clocks may be apart before it is said.
const SKEW: i64 = 5;
/// How long a message to oneself may take.
const ECHO: Duration = Duration::from_secs(5);

impl PgStore {
    pub(crate) async fn look_for_trouble(&self, now: OffsetDateTime) -> Result<Vec<Check>> {
        let asked = Instant::now();
        let text = self.sql.text("checks", include_str!("../sql/checks.sql"));
        let row =
            match text.query().bind(self.clock.now()).bind(self.home().system).fetch_one(&self.pool).await {
                Ok(row) => row,
                Err(error) => {
                    let error = during("checks")(error);
                    return match error.kind() {
                        ErrorKind::Unreachable | ErrorKind::PoolExhausted => Err(error),
                        ErrorKind::Denied => Ok(vec![Check::bad(
                            "grants",
                            error.message().to_owned(),
                            "run grant_relay for this role, as the owner of the schema",
                        )]),
                        _ => Ok(vec![Check::bad(
                            "schema",
                            error.message().to_owned(),
                            "run `postrider migrate`",
                        )]),
                    };
                }
            };
        let relays = self.known_relays(&self.pool).await?;
        let mut checks = vec![
            self.schema(&row)?,
            grants(&row)?,
            clock(&row, now + asked.elapsed())?,
            transactions(&row)?,
            self.sequence(&row)?,
            lanes(row::opt_text(&row, 9)?, &relays),
            inbox(row::opt_text(&row, 10)?),
            dead_rows(&row)?,
            restore(&row)?,
        ];
        checks.push(self.trigger().await?);
        checks.push(pooler(self.sql.session_mode.is_shared()));
        checks.push(bell(self.bell.health(ECHO).await));
        Ok(checks)
    }

    /// Whether a row can go without its number.
    async fn trigger(&self) -> Result<Check> {
        const NAME: &str = "trigger";
        let text = self.sql.text("trigger", "select {schema}.numbers_rows()");
        let row = text.query().fetch_one(&self.pool).await.map_err(during("checks"))?;
        if row::flag(&row, 0)? {
            return Ok(Check::good(NAME, "it numbers every event"));
        }
        let table = self.sql.schema.fill("{schema}.event");
        Ok(Check::bad(
            NAME,
            format!(
                "the trigger before_record of {table} is missing or disabled, or a column that it sets has a default: events would have no number"
            ),
            format!(
                "run: alter table {table} enable trigger user, alter id drop default, alter tx_id drop default, alter recorded_at \
                 drop default"
            ),
        ))
    }

    fn schema(&self, row: &PgRow) -> Result<Check> {
        let (found, known) = (row::count(row, 1)?, schema_version());
        let name = &self.sql.schema.name;
        Ok(match i64::from(found).cmp(&i64::from(known)) {
            std::cmp::Ordering::Equal => Check::good("schema", format!("{name} is at version {found}")),
            std::cmp::Ordering::Less => Check::bad(
                "schema",
                format!("{name} is at version {found}, but this program needs version {known}"),
                "run `postrider migrate`",
            ),
            std::cmp::Ordering::Greater => Check::bad(
                "schema",
                format!("{name} is at version {found}, but this program only knows version {known}"),
                "upgrade postrider",
            ),
        })
    }

    fn sequence(&self, row: &PgRow) -> Result<Check> {
        let (last, cache, highest) = (row::int64(row, 6)?, row::int64(row, 7)?, row::int64(row, 8)?);
        let sequence = self.sql.schema.fill("{schema}.event_id");
        Ok(if last < highest {
            Check::bad(
                "sequence",
                format!(
                    "{sequence} is at {last}, behind the log at {highest}: new events would never be read"
                ),
                format!("stop the publishers and run: select setval('{sequence}', {highest})"),
            )
        } else if cache != 1 {
            Check::bad(
                "sequence",
                format!("{sequence} has a cache of {cache}: events could be lost"),
                format!("run: alter sequence {sequence} cache 1"),
            )
        } else {
            Check::good("sequence", "the sequence is ahead of the log and has cache 1")
        })
    }
}

fn grants(row: &PgRow) -> Result<Check> {
    Ok(match (row::flag(row, 2)?, row::flag(row, 3)?) {
        (true, true) => Check::good("grants", "this role can record and relay"),
        (record, relay) => Check::bad(
            "grants",
            match (record, relay) {
                (true, _) => "this role can record, but not relay",
                (_, true) => "this role can relay, but not record",
                _ => "this role can neither record nor relay",
            },
            "run grant_relay for this role, as the owner of the schema",
        ),
    })
}

fn clock(row: &PgRow, now: OffsetDateTime) -> Result<Check> {
    let ahead = (row::timestamp(row, 0)? - now).whole_seconds();
    Ok(if ahead.abs() > SKEW {
        Check::warn(
            "clock",
            format!(
                "the clock of the database is {} s {} the clock of this machine",
                ahead.abs(),
                if ahead > 0 { "ahead of" } else { "behind" }
            ),
            "synchronize both with NTP; leases and retries use only the clock of the database",
        )
    } else {
        Check::good("clock", "the clocks of the database and of this machine agree")
    })
}

fn transactions(row: &PgRow) -> Result<Check> {
    const NAME: &str = "long transactions";
    let (open, prepared) = (row::opt_i64(row, 4)?.unwrap_or(0), row::opt_i64(row, 5)?.unwrap_or(0));
    Ok(if prepared > LONG {
        Check::warn(
            NAME,
            format!(
                "a prepared transaction has been open for {prepared} s: its events wait, and vacuum can't remove dead rows"
            ),
            "commit it or roll it back; see pg_prepared_xacts",
        )
    } else if open > LONG {
        Check::warn(
            NAME,
            format!(
                "a transaction has been open for {open} s: its events wait, and vacuum can't remove dead rows"
            ),
            "end it; see xact_start in pg_stat_activity",
        )
    } else {
        Check::good(NAME, "no transaction that this role can see has been open for more than 5 minutes")
    })
}

fn dead_rows(row: &PgRow) -> Result<Check> {
    Ok(match row::opt_text(row, 11)? {
        None => Check::good("dead rows", "few"),
        Some(tables) => Check::warn(
            "dead rows",
            format!("vacuum has not yet removed many dead rows in: {tables}"),
            "check for long transactions, and that autovacuum runs",
        ),
    })
}

fn restore(row: &PgRow) -> Result<Check> {
    const NAME: &str = "restore";
    Ok(match row::opt_text(row, 12)? {
        None => Check::good(NAME, "the positions belong to this server"),
        Some(names) => Check::warn(
            NAME,
            format!(
                "the log was restored from a dump, and the positions are those of another server: {names}; events whose \
                 transactions were open when the dump was made may be delivered again, and none is lost"
            ),
            "nothing to do: each position is updated when its relay settles next",
        ),
    })
}

fn pooler(is_shared: bool) -> Check {
    let found = if is_shared {
        "one in transaction mode: every statement runs in its own transaction, and leaves nothing behind in the session"
    } else {
        "none, or one in session mode: each connection has its own session"
    };
    Check::good("pooler", found)
}

fn bell(health: BellHealth) -> Check {
    match health {
        BellHealth::Works => Check::good("bell", "notifications arrive"),
        BellHealth::Silent => Check::warn(
            "bell",
            "notifications do not arrive, because a pooler blocks LISTEN: events wait for the next poll",
            "connect relays to the database itself, or to the pooler in session mode",
        ),
        BellHealth::NoAddress => Check::warn(
            "bell",
            "LISTEN needs its own session, but a pooler in transaction mode shares sessions: events wait for the next poll",
            "set store.listen_url to the URL of the database itself",
        ),
        BellHealth::Off => Check::warn(
            "bell",
            "it is off: events wait for the next poll",
            "turn it on unless publishers \
             use two-phase commit",
        ),
    }
}
