//! From the commit of a transfer to the commit of its risk log, by the clock of the database that has both.

use story::Story;

use super::stage::Stage;

/// The documents' figure, in milliseconds.
pub const ASKED: f64 = 500.0;
/// Ours.
const AIM: f64 = 100.0;

/// Each transfer with the two times, and whether it was under way at some time between the kill and the end of the take-over: until
/// the survivor had delivered all that was recorded before it had every lane.
const TIMES: &str = "with times as materialized (
        select pg_xact_commit_timestamp(t.xmin) as committed, pg_xact_commit_timestamp(r.xmin) as logged
        from transactions t join fds.risk_log r on r.transaction_id = t.id
    ), taken as (
        select max(first) as at from (
            select lane, min(settled_at) as first from postrider.settled_batch
            where settled_at > $1::timestamptz and settled_by <> $2 and count > 0 group by lane) each_lane
    ), over as (
        select coalesce(max(logged), max(taken.at)) as at from times cross join taken
        where committed between $1::timestamptz and taken.at
    )
    select extract(epoch from times.logged - times.committed)::float8 * 1000,
           times.committed <= over.at and times.logged >= $1::timestamptz,
           extract(epoch from over.at - $1::timestamptz)::float8,
           extract(epoch from times.committed - $1::timestamptz)::float8
    from times cross join over";

/// What was measured.
#[derive(Debug)]
pub struct Latency {
    /// For each transfer the time in milliseconds, whether it was under way during the take-over, how long that took, and when the
    /// transfer was committed; the last two in seconds from the kill.
    rows: Vec<(f64, bool, f64, f64)>,
}

impl Latency {
    /// Reads the times from a database that keeps when each commit was (`track_commit_timestamp`).
    pub async fn read(stage: &Stage, killed_at: &str, killed: &str) -> Self {
        let rows = sqlx::query_as(TIMES).bind(killed_at).bind(killed).fetch_all(&stage.db).await;
        Self { rows: rows.unwrap_or_else(|error| panic!("no times: {error}")) }
    }

    /// The times during the take-over or outside of it, in order.
    fn times(&self, during: bool) -> Vec<f64> {
        let mut times: Vec<f64> = self.rows.iter().filter(|row| row.1 == during).map(|row| row.0).collect();
        times.sort_by(f64::total_cmp);
        times
    }

    /// The time in milliseconds that so many of a hundred transfers did not exceed, outside of the take-over.
    pub fn percentile(&self, percent: usize) -> f64 {
        percentile(&self.times(false), percent)
    }
}

/// Tells p50 and p99 outside of the take-over, and whether they are what is asked for.
pub async fn tell(story: &Story, stage: &Stage, killed_at: &str, killed: &str) {
    let latency = Latency::read(stage, killed_at, killed).await;
    let take_over = latency.rows.first().map(|row| row.2).unwrap_or_default();
    let (usual, during) = (latency.times(false), latency.times(true));
    story.figure("the take-over, by a lease of 3 s", format!("{take_over:.1} s, {} transfers", during.len()));
    story.figure("commit → risk log during it", shown(&during));
    story.figure("commit → risk log outside of it", shown(&usual));
    story.figure("slower than 500 ms outside of it", slow(&latency.rows));
    let p99 = percentile(&usual, 99);
    for (limit, what) in [(ASKED, "what the documents ask for"), (AIM, "our aim")] {
        let word = if p99 < limit { "met" } else { "missed" };
        println!("    {word:<8} p99 {p99:.1} ms, and {limit:.0} ms is {what}");
    }
}

/// How many were slow outside of the take-over, and when they were committed, in seconds from the kill.
fn slow(rows: &[(f64, bool, f64, f64)]) -> String {
    let slow = || rows.iter().filter(|row| !row.1 && row.0 >= ASKED).map(|row| row.3);
    let (before, after) = (slow().filter(|at| *at < 0.0).count(), slow().filter(|at| *at >= 0.0).count());
    if before + after == 0 {
        return "none".to_owned();
    }
    let (first, last) = (slow().fold(f64::INFINITY, f64::min), slow().fold(f64::NEG_INFINITY, f64::max));
    format!("{before} before the kill and {after} after it, committed from {first:.1} s to {last:.1} s of it")
}

fn shown(times: &[f64]) -> String {
    if times.is_empty() {
        return "none".to_owned();
    }
    let max = times.last().copied().unwrap_or_default();
    format!(
        "p50 {:.1} ms, p99 {:.1} ms, max {max:.1} ms, of {}",
        percentile(times, 50),
        percentile(times, 99),
        times.len()
    )
}

/// The smallest time that so many of a hundred do not exceed; the times are in order.
fn percentile(times: &[f64], percent: usize) -> f64 {
    let rank = (times.len() * percent).div_ceil(100).max(1);
    times.get(rank - 1).copied().unwrap_or(f64::INFINITY)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_a_time_that_was_measured() {
        let times: Vec<f64> = (1..=200).map(f64::from).collect();
        assert_eq!(
            (percentile(&times, 50), percentile(&times, 99), percentile(&[7.0], 99)),
            (100.0, 198.0, 7.0)
        );
        assert!(percentile(&[], 99).is_infinite());
    }
}
