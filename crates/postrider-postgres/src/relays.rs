//! Relays as they make themselves known.

use postrider_core::{RelayInfo, RelayReport, Result, Uuid};
use sqlx_core::row::Row;
use sqlx_postgres::{PgExecutor, PgRow};

use crate::error::during;
use crate::row;
use crate::store::PgStore;

const OP: &str = "heartbeat";

impl PgStore {
    pub(crate) async fn report(&self, relay: &RelayReport) -> Result<Vec<RelayInfo>> {
        relay.check()?;
        let text = self.sql.text("heartbeat", include_str!("../sql/heartbeat.sql"));
        let query = text.query().bind(relay.id).bind(relay.name.clone()).bind(relay.host.clone());
        let query = query.bind(i64::from(relay.process)).bind(relay.version.clone());
        let query = query.bind(relay.runs_as_json()?).bind(self.clock.now());
        let query = query.bind(RelayInfo::FORGOTTEN_AFTER.as_secs_f64());
        let rows = query.fetch_all(&self.pool).await.map_err(during(OP))?;
        rows.iter().map(info).collect()
    }

    pub(crate) async fn forget_relay(&self, relay: Uuid) -> Result<()> {
        const FORGET: &str = "delete from {schema}.relay where id = $1";
        let query = self.sql.text("deregister", FORGET).query().bind(relay);
        query.execute(&self.pool).await.map_err(during("deregister"))?;
        Ok(())
    }

    pub(crate) async fn known_relays(&self, connection: impl PgExecutor<'_>) -> Result<Vec<RelayInfo>> {
        const RELAYS: &str = "select id, name, host, process, version, started_at, seen_at, runs, \
             clock.now from (select coalesce($1::timestamptz, clock_timestamp()) as now) as clock cross join {schema}.relay \
             where seen_at between clock.now - make_interval(secs => $2::float8) and clock.now + make_interval(secs => $2::float8) \
             order by name, started_at";
        let query = self.sql.text("relays", RELAYS).query().bind(self.clock.now());
        let query = query.bind(RelayInfo::FORGOTTEN_AFTER.as_secs_f64());
        let rows = query.fetch_all(connection).await.map_err(during("relays"))?;
        rows.iter().map(info).collect()
    }
}

fn info(row: &PgRow) -> Result<RelayInfo> {
    let seen_at = row::timestamp(row, 6)?;
    Ok(RelayInfo {
        report: RelayReport {
            id: row.try_get(0).map_err(during(OP))?,
            name: row::text(row, 1)?.to_owned(),
            host: row::text(row, 2)?.to_owned(),
            process: u32::try_from(row::int64(row, 3)?).unwrap_or(0),
            version: row::text(row, 4)?.to_owned(),
            runs: RelayReport::runs_from_json(row::text(row, 7)?),
        },
        started_at: row::timestamp(row, 5)?,
        seen_at,
        live: RelayInfo::is_live(seen_at, row::timestamp(row, 8)?),
    })
}
