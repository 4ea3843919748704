//! A story: what happened, what was counted, and whether every promise held.

use std::fmt::{Debug, Display};
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::process::ExitCode;
use std::task::Poll;
use std::time::{Duration, Instant};

use postrider_testkit::PATIENCE;

use crate::Options;

/// How often a figure is looked at that a promise waits for.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// How long a promise may take where a loss is planted: whoever plants one doesn't want to wait for it.
const PATIENCE_WITH_A_LOSS: Duration = Duration::from_secs(15);

/// Tells what happens, with the seconds since the start, and counts promises.
#[derive(Debug)]
pub struct Story {
    began: Instant,
    options: Options,
    held: usize,
    broken: Vec<String>,
    patience: Duration,
    addresses: Vec<(String, String)>,
}

impl Story {
    /// Begins: prints what this system is, in one sentence.
    pub fn begin(name: &str, sentence: &str, options: Options) -> Self {
        println!("{name}: {sentence}\n");
        let patience = if options.loss { PATIENCE_WITH_A_LOSS } else { PATIENCE };
        let (broken, addresses) = (Vec::new(), Vec::new());
        Self { began: Instant::now(), options, held: 0, broken, patience, addresses }
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

    /// A promise: a figure comes to be this, soon. It is broken, and the story goes on, when that takes too long.
    pub async fn comes_to<T: PartialEq + Debug>(
        &mut self,
        promise: &str,
        mut look: impl AsyncFnMut() -> T,
        wanted: T,
    ) {
        let end = Instant::now() + self.patience;
        let mut found = look().await;
        while found != wanted && Instant::now() < end {
            tokio::time::sleep(LOOK_EVERY).await;
            found = look().await;
        }
        self.equal(promise, found, wanted);
    }

    /// A promise: a condition holds, soon. It is broken, and the story goes on, when that takes too long.
    pub async fn eventually(&mut self, promise: &str, mut condition: impl AsyncFnMut() -> bool) {
        let (began, patience) = (Instant::now(), self.patience);
        let mut holds = condition().await;
        while !holds && began.elapsed() < patience {
            tokio::time::sleep(LOOK_EVERY).await;
            holds = condition().await;
        }
        let seconds = began.elapsed().as_secs_f64();
        let found =
            if holds { format!("after {seconds:.1} s") } else { format!("not within {seconds:.0} s") };
        self.holds(promise, holds, found);
    }

    /// An address or a command that is of use while the system is kept.
    pub fn address(&mut self, what: impl Into<String>, address: impl Into<String>) {
        self.addresses.push((what.into(), address.into()));
    }

    /// Acts it out, and ends. What the acts return stays up while the system is kept. Acts that panic break a promise: the story says
    /// so and counts it like every other, and keeps nothing up, because it is gone.
    pub async fn act_out<T>(mut self, acts: impl AsyncFnOnce(&mut Self) -> T) -> ExitCode {
        let acted = {
            let mut acting = pin!(acts(&mut self));
            poll_fn(|context| match catch_unwind(AssertUnwindSafe(|| acting.as_mut().poll(context))) {
                Ok(Poll::Pending) => Poll::Pending,
                Ok(Poll::Ready(stage)) => Poll::Ready(Ok(stage)),
                Err(panic) => Poll::Ready(Err(said(panic.as_ref()))),
            })
            .await
        };
        match acted {
            Ok(stage) => {
                let code = self.end().await;
                drop(stage);
                code
            }
            Err(why) => {
                self.holds("The story goes on to its end", false, why);
                self.options.keep = false;
                self.end().await
            }
        }
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

/// What a panic said.
fn said(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned())).unwrap_or_default()
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    /// A story that isn't patient.
    fn story() -> Story {
        let mut story = Story::begin("a test", "it tells stories", Options::default());
        story.patience = Duration::from_millis(30);
        story
    }

    #[tokio::test]
    async fn what_does_not_come_in_time_is_a_broken_promise_and_the_story_goes_on() {
        let looks = Cell::new(0);
        let look = async || {
            looks.set(looks.get() + 1);
            looks.get()
        };
        let mut ended = story();
        ended.comes_to("the third look", look, 3).await;
        ended.eventually("it was looked at three times", async || looks.get() == 3).await;
        assert_eq!((ended.held, ended.broken.len()), (2, 0));
        ended.comes_to("an event that was lost", async || 1, 2).await;
        ended.eventually("what never holds", async || false).await;
        assert_eq!(ended.broken, ["an event that was lost", "what never holds"]);
        assert_eq!(ended.end().await, ExitCode::FAILURE);
    }

    #[tokio::test]
    async fn acts_that_panic_break_a_promise() {
        let told = story().act_out(async |story| {
            story.equal("one", 1, 1);
            tokio::task::yield_now().await;
            assert!(story.broken.len() > 1, "it took too long");
        });
        assert_eq!(told.await, ExitCode::FAILURE);
        let told = story().act_out(async |story| story.equal("one", 1, 1));
        assert_eq!(told.await, ExitCode::SUCCESS);
        assert_eq!(story().act_out(async |_| {}).await, ExitCode::FAILURE, "a story without a promise");
    }
}
