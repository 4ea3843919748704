//! A story: what happened, what was counted, and whether every promise held.

use std::fmt::{Debug, Display};
use std::process::ExitCode;
use std::time::Instant;

use crate::Options;

/// Tells what happens, with the seconds since the start, and counts promises.
#[derive(Debug)]
pub struct Story {
    began: Instant,
    options: Options,
    held: usize,
    broken: Vec<String>,
    addresses: Vec<(String, String)>,
}

impl Story {
    /// Begins: prints what this system is, in one sentence.
    pub fn begin(name: &str, sentence: &str, options: Options) -> Self {
        println!("{name}: {sentence}\n");
        Self { began: Instant::now(), options, held: 0, broken: Vec::new(), addresses: Vec::new() }
    }

    /// What was asked for.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Tells one thing that happened.
    pub fn tell(&self, sentence: impl Display) {
        println!("{:>7.1} s  {sentence}", self.began.elapsed().as_secs_f64());
    }

    /// A heading.
    pub fn part(&self, heading: impl Display) {
        println!("\n  {heading}");
    }

    /// A figure that is worth a look and promises nothing.
    pub fn figure(&self, what: &str, value: impl Display) {
        println!("             {what}: {value}");
    }

    /// A promise: two figures that must be equal.
    pub fn equal<T: PartialEq + Debug>(&mut self, promise: &str, found: T, wanted: T) {
        let holds = found == wanted;
        let figures =
            if holds { format!("{found:?}") } else { format!("{found:?}, but it must be {wanted:?}") };
        self.holds(promise, holds, figures);
    }

    /// A promise, and what was found.
    pub fn holds(&mut self, promise: &str, holds: bool, found: impl Display) {
        if holds {
            self.held += 1;
            println!("    ok       {promise}: {found}");
        } else {
            println!("    BROKEN   {promise}: {found}");
            self.broken.push(promise.to_owned());
        }
    }

    /// An address or a command that is of use while the system is kept.
    pub fn address(&mut self, what: impl Into<String>, address: impl Into<String>) {
        self.addresses.push((what.into(), address.into()));
    }

    /// Ends: keeps the system up if that was asked for, and gives the exit code: 1 if a promise broke, or if there was none.
    pub async fn end(self) -> ExitCode {
        let seconds = self.began.elapsed().as_secs_f64();
        let good = self.broken.is_empty() && self.held > 0;
        if good {
            println!("\nEvery promise held ({} of {}), in {seconds:.1} s.", self.held, self.held);
        } else {
            let all = self.held + self.broken.len();
            println!("\n{} of {all} promises broke, in {seconds:.1} s:", self.broken.len());
            for promise in &self.broken {
                println!("  {promise}");
            }
        }
        if self.options.keep {
            println!("\nIt is left running until Ctrl-C:");
            for (what, address) in &self.addresses {
                println!("  {what}: {address}");
            }
            stopped().await;
        }
        if good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
}

/// Waits for Ctrl-C or SIGTERM.
pub async fn stopped() {
    use tokio::signal::unix::{SignalKind, signal};
    match signal(SignalKind::terminate()) {
        Ok(mut term) => {
            tokio::select! { _ = tokio::signal::ctrl_c() => {}, _ = term.recv() => {} }
        }
        Err(_) => drop(tokio::signal::ctrl_c().await),
    }
}
