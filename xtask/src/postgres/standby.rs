//! An asynchronous streaming standby of a cluster: it follows, is cut off, and is promoted.

use std::time::Duration;

use super::Cluster;
use super::data;
use crate::process;
use crate::task_error::TaskError;

/// How long a standby may take to have, or to give up, what is waited for.
const PATIENCE: Duration = Duration::from_secs(30);

/// A server that follows another by streaming, asynchronously, and answers read-only meanwhile.
///
/// It goes away like any [`Cluster`].
#[derive(Debug)]
pub struct Standby(Cluster);

impl Standby {
    /// Makes a standby of the running server `primary`, on a port of its own, and waits until it streams.
    pub fn of(primary: &Cluster) -> Result<Self, TaskError> {
        let mut cluster = Cluster::empty(primary.binaries.clone())?;
        data::back_up(primary, &cluster.data_dir())?;
        cluster.account.own(&cluster.data_dir())?;
        let follow = data::setting("primary_conninfo", &conninfo(primary));
        data::append(&cluster, &follow)?;
        data::signal(&cluster, "standby.signal")?;
        cluster.start_on_a_free_port()?;
        let standby = Self(cluster);
        standby.wait_for("does not stream from its primary", || standby.is_streaming())?;
        Ok(standby)
    }

    /// The server, which is read-only.
    pub fn cluster(&self) -> &Cluster {
        &self.0
    }

    /// Waits until it has replayed all that `primary` has written so far.
    pub fn catch_up(&self, primary: &Cluster) -> Result<(), TaskError> {
        let end = primary.ask("select pg_current_wal_insert_lsn()")?;
        // What the primary has not flushed is not sent: a commit without waiting for the disk, at most.
        primary.ask("select pg_logical_emit_message(true, 'postrider', 'flush')")?;
        let reached = format!("select pg_last_wal_replay_lsn() >= '{end}'");
        self.wait_for("does not catch up", || self.0.ask(&reached).is_ok_and(|answer| answer == "t"))
    }

    /// Cuts it off from its primary: from now on it gets nothing more, and what it has got is replayed.
    ///
    /// Its receiver of the write-ahead log ends, so that a promotion finds nothing that came later.
    pub fn cut_off(&self) -> Result<(), TaskError> {
        self.0.ask("alter system set primary_conninfo = ''")?;
        self.0.ask("select pg_reload_conf()")?;
        self.wait_for("is not cut off", || {
            self.0.ask("select not exists (select from pg_stat_wal_receiver)").is_ok_and(|gone| gone == "t")
        })
    }

    /// Takes over the address of its dead primary, as a floating address does: it is started anew on that port.
    pub fn take_address_of(&mut self, primary: &Cluster) -> Result<(), TaskError> {
        if primary.pid().is_some() {
            return Err(TaskError::new(
                "the primary still runs: stop or kill it before its address is taken",
            ));
        }
        self.0.stop()?;
        self.0.port = primary.port;
        self.0.start()
    }

    /// Promotes it: when this returns it is a primary that takes writes.
    pub fn promote(self) -> Result<Cluster, TaskError> {
        let mut pg_ctl = self.0.bin("pg_ctl");
        pg_ctl.args(["promote", "-w", "-t", "60", "-s", "-D"]).arg(self.0.data_dir());
        process::output(&mut pg_ctl, "promote a standby")?;
        Ok(self.0)
    }

    fn is_streaming(&self) -> bool {
        let streams = "select exists (select from pg_stat_wal_receiver where status = 'streaming')";
        self.0.ask(streams).is_ok_and(|answer| answer == "t")
    }

    fn wait_for(&self, trouble: &str, condition: impl FnMut() -> bool) -> Result<(), TaskError> {
        if process::wait_until(PATIENCE, condition) {
            return Ok(());
        }
        Err(TaskError::new(format!("the standby {trouble} within {PATIENCE:?}")).with_log_file(&self.0.log()))
    }
}

fn conninfo(primary: &Cluster) -> String {
    format!("host=127.0.0.1 port={} user=postgres application_name=standby", primary.port())
}
