//! Benchmarks: each figure is a ratio within one run, against the raw limit or a peer, on the same rows.
//!
//! What is compared is run in turns, several times, and the median of each side counts: a machine that slows
//! down meanwhile slows both.

pub mod catalog;
pub mod cli;
pub mod data;
pub mod engine;
pub mod idle;
pub mod kafka;
pub mod mysql;
pub mod program;
pub mod publish;
mod publishers;
pub mod reading;
pub mod report;
pub mod retention;
mod statements;

/// What can go wrong in a benchmark.
pub type AnyError = Box<dyn std::error::Error + Send + Sync>;

/// The middle one of several measurements.
pub fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied().unwrap_or(f64::NAN)
}

/// What each turn reached of its neighbour: a machine that slows down slows both.
pub fn ratios(figures: &[f64], of: &[f64]) -> Vec<f64> {
    figures.iter().zip(of).map(|(figure, of)| figure / of).collect()
}

/// Runs two sides in turns, after one of each that does not count, and returns the median of each, and of what the second reached of its neighbour.
pub async fn in_turns(
    turns: usize,
    mut one: impl AsyncFnMut() -> Result<f64, AnyError>,
    mut two: impl AsyncFnMut() -> Result<f64, AnyError>,
) -> Result<(f64, f64, f64), AnyError> {
    let (mut first, mut second) = (Vec::new(), Vec::new());
    one().await?;
    two().await?;
    for turn in 0..turns {
        if turn % 2 == 0 {
            first.push(one().await?);
            second.push(two().await?);
        } else {
            second.push(two().await?);
            first.push(one().await?);
        }
    }
    let ratio = median(ratios(&second, &first));
    Ok((median(first), median(second), ratio))
}
