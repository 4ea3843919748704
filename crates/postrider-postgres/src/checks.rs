//! What is wrong with the database, or will be, as far as it can tell itself.

use std::time::{Duration, Instant};

use postrider_core::{Check, ErrorKind, OffsetDateTime, Result};
use sqlx_postgres::PgRow;

use crate::bell::Hearing;
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
                            "let the owner of the schema run grant_relay for this role",
                        )]),
                        _ => Ok(vec![Check::bad(
                            "schema",
                            error.message().to_owned(),
                            "run `postrider migrate`",
                        )]),
                    };
                }
            };
        let mut checks = vec![
            self.schema(&row)?,
            grants(&row)?,
            clock(&row, now + asked.elapsed())?,
            transactions(&row)?,
            self.sequence(&row)?,
            lanes(&row)?,
            inbox(&row)?,
            dead_rows(&row)?,
            restore(&row)?,
        ];
        checks.push(self.trigger().await?);
        checks.push(pooler(self.sql.manner.is_shared()));
        checks.push(bell(self.hub.hears(ECHO).await));
        Ok(checks)
    }

    /// Whether a row can go without its number.
    async fn trigger(&self) -> Result<Check> {
        const NAME: &str = "trigger";
        let text = self.sql.text("trigger", "select {schema}.numbers_rows()");
        let row = text.query().fetch_one(&self.pool).await.map_err(during("checks"))?;
        if row::flag(&row, 0)? {
            return Ok(Check::good(NAME, "it gives every event its number"));
        }
        let table = self.sql.schema.fill("{schema}.event");
        Ok(Check::bad(
            NAME,
            format!(
                "before_record of {table} is missing or off, or a column that it sets has a default: events would have no number"
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
                format!("{name} is at version {found}, and this program needs {known}"),
                "run `postrider migrate`",
            ),
            std::cmp::Ordering::Greater => Check::bad(
                "schema",
                format!("{name} is at version {found}, and this program knows {known}"),
                "upgrade this program",
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
                    "{sequence} stands at {last}, behind the log at {highest}: new events would never be read"
                ),
                format!("stop the publishers and run: select setval('{sequence}', {highest})"),
            )
        } else if cache != 1 {
            Check::bad(
                "sequence",
                format!("{sequence} has a cache of {cache}: events would be lost"),
                format!("run: alter sequence {sequence} cache 1"),
            )
        } else {
            Check::good("sequence", "it is past everything that was read, and has no cache")
        })
    }
}

fn grants(row: &PgRow) -> Result<Check> {
    Ok(match (row::flag(row, 2)?, row::flag(row, 3)?) {
        (true, true) => Check::good("grants", "this role may record and relay"),
        (record, relay) => Check::bad(
            "grants",
            match (record, relay) {
                (true, _) => "this role may record, but not relay",
                (_, true) => "this role may relay, but not record",
                _ => "this role may neither record nor relay",
            },
            "let the owner of the schema run grant_relay for this role",
        ),
    })
}

fn clock(row: &PgRow, now: OffsetDateTime) -> Result<Check> {
    let ahead = (row::timestamp(row, 0)? - now).whole_seconds();
    Ok(if ahead.abs() > SKEW {
        Check::warn(
            "clock",
            format!(
                "the database's clock is {} s {} this machine's",
                ahead.abs(),
                if ahead > 0 { "ahead of" } else { "behind" }
            ),
            "leases and retries go by the database's clock alone; to make sense of times, set both by NTP",
        )
    } else {
        Check::good("clock", "the database's clock and this machine's agree")
    })
}

fn transactions(row: &PgRow) -> Result<Check> {
    const NAME: &str = "long transactions";
    let (open, prepared) = (row::opt_i64(row, 4)?.unwrap_or(0), row::opt_i64(row, 5)?.unwrap_or(0));
    Ok(if prepared > LONG {
        Check::warn(
            NAME,
            format!("a prepared transaction is open for {prepared} s: its events wait, and dead rows stay"),
            "commit it or roll it back: see pg_prepared_xacts",
        )
    } else if open > LONG {
        Check::warn(
            NAME,
            format!("a transaction is open for {open} s: its events wait, and dead rows can't be removed"),
            "end it: see xact_start in pg_stat_activity",
        )
    } else {
        Check::good(NAME, "none that this role can see is open for longer than 5 minutes")
    })
}

fn lanes(row: &PgRow) -> Result<Check> {
    Ok(match row::opt_text(row, 9)? {
        None => Check::good("lanes", "no lane with something to read is without a holder"),
        Some(names) => Check::warn(
            "lanes",
            format!("nobody reads what waits for: {names}"),
            "start a relay with these subscriptions, or remove those that are not needed: retention waits for them",
        ),
    })
}

fn inbox(row: &PgRow) -> Result<Check> {
    Ok(match row::opt_text(row, 10)? {
        None => Check::good("inbox", "it is kept as long as the events in the log"),
        Some(names) => Check::warn(
            "inbox",
            format!(
                "it has forgotten events that are still in the log, and that could be replayed, of: {names}"
            ),
            "keep the inbox at least as long as events, or a replay has to say that effects may repeat",
        ),
    })
}

fn dead_rows(row: &PgRow) -> Result<Check> {
    Ok(match row::opt_text(row, 11)? {
        None => Check::good("dead rows", "few"),
        Some(tables) => Check::warn(
            "dead rows",
            format!("many are not removed yet in: {tables}"),
            "look for transactions that are open for long, and whether autovacuum runs",
        ),
    })
}

fn restore(row: &PgRow) -> Result<Check> {
    const NAME: &str = "restore";
    Ok(match row::opt_text(row, 12)? {
        None => Check::good(NAME, "the positions are of this server"),
        Some(names) => Check::warn(
            NAME,
            format!(
                "the log was restored from a dump: the positions are of another server: {names}; events whose transactions were \
                 open when it was made may come again, and none is lost"
            ),
            "nothing: each position becomes this server's when its relay settles next",
        ),
    })
}

fn pooler(is_shared: bool) -> Check {
    let found = if is_shared {
        "one in transaction mode: every statement has a transaction to itself, and nothing stays behind in its sessions"
    } else {
        "none, or one in session mode: each connection has a session of its own"
    };
    Check::good("pooler", found)
}

fn bell(hearing: Hearing) -> Check {
    match hearing {
        Hearing::Hears => Check::good("bell", "notifications arrive"),
        Hearing::Deaf => Check::warn(
            "bell",
            "notifications do not arrive: a pooler hides LISTEN, and events wait for the next poll",
            "let relays connect to the database itself, or in the pooler's session mode",
        ),
        Hearing::NoLine => Check::warn(
            "bell",
            "LISTEN needs a session of its own, and a pooler in transaction mode shares them: events wait for the next poll",
            "set store.listen_url to the address of the database itself",
        ),
        Hearing::Off => Check::warn(
            "bell",
            "it is turned off: events wait for the next poll",
            "turn it on unless publishers \
             use two-phase commit",
        ),
    }
}
