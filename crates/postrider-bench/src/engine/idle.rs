//! What a relay costs that has nothing to do, counted as `statements.rs` says.

use crate::AnyError;
use crate::engine::{Tally, counting_relay, new_name};
use crate::report::Report;
use crate::statements::{EVENTS, in_own_database};

/// The bars of idleness.
pub async fn run(report: &mut Report, quick: bool) -> Result<(), AnyError> {
    in_own_database(async |bench, counter| {
        bench.fill(EVENTS).await?;
        let tally = Tally::new(EVENTS);
        let relay = counting_relay(&bench.outbox, &new_name(), &tally, 1).start().await?;
        tally.wait().await?;
        let idle = counter.idle(report, bench, quick).await?;
        relay.stop().await?;
        tally.check()?;

        report.at_most("statements of an idle relay", idle.rate, 1.0, "a second", &idle.detail);
        let (dead, changed) = (idle.dead, idle.changed);
        let detail =
            format!("{changed} updates and deletes, {dead} more dead rows in {:.0} s", idle.minutes * 60.0);
        let figure = dead.max(changed) as f64 / idle.minutes;
        report.at_most("dead rows of an idle relay", figure, 0.0, "a minute", &detail);
        Ok(())
    })
    .await
}
