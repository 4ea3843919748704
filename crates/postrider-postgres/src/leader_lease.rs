//! Leader leases: what one process does for all the others.

use std::time::Duration;

use postrider_core::{LeaderLease, Result};

use crate::error::during;
use crate::lane::micros;
use crate::row;
use crate::store::PgStore;

const OP: &str = "lead";

impl PgStore {
    pub(crate) async fn take(&self, task: &str, owner: &str, lease: Duration) -> Result<Option<LeaderLease>> {
        LeaderLease::check(task, owner, "")?;
        let text = self.sql.text("acquire_leader_lease", include_str!("../sql/take_duty.sql"));
        let query = text.query().bind(task.to_owned()).bind(owner.to_owned()).bind(micros(lease));
        let row = query.bind(self.clock.now()).fetch_optional(&self.pool).await.map_err(during(OP))?;
        let Some(row) = row else { return Ok(None) };
        Ok(Some(LeaderLease {
            at: row::timestamp(&row, 0)?,
            until: row::timestamp(&row, 1)?,
            note: row::opt_text(&row, 2)?.map(str::to_owned),
        }))
    }

    pub(crate) async fn write_note(&self, task: &str, owner: &str, note: &str) -> Result<bool> {
        LeaderLease::check(task, owner, note)?;
        let text = self.sql.text("save_leader_note", include_str!("../sql/note_duty.sql"));
        let query = text.query().bind(task.to_owned()).bind(owner.to_owned()).bind(note.to_owned());
        let noted = query.bind(self.clock.now()).execute(&self.pool).await.map_err(during(OP))?;
        Ok(noted.rows_affected() > 0)
    }

    pub(crate) async fn leave(&self, task: &str, owner: &str) -> Result<()> {
        let text = self.sql.text("release_leader_lease", include_str!("../sql/leave_duty.sql"));
        let query = text.query().bind(task.to_owned()).bind(owner.to_owned());
        query.execute(&self.pool).await.map_err(during(OP))?;
        Ok(())
    }
}
