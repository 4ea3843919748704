//! The summary: what the shop's own tables say in the end, and which promises that keeps or breaks.

use std::time::Duration;

use super::demo_store::{Counts, DemoStore};
use super::handlers::{BOOKS, MAIL, SUBSCRIPTIONS};
use super::screen::{Colour, Screen};
use super::shop::NOWHERE;
use crate::Failure;
use crate::output;

/// What was counted.
pub(crate) struct Tally {
    rolled_back: i64,
    follow_ups: i64,
    /// Dead events that are not the one that had to die.
    wrongly_dead: i64,
    subscriptions: Vec<Account>,
}

/// What was counted of one subscription.
struct Account {
    name: &'static str,
    counts: Counts,
}

/// One of its figures.
type Part = fn(&Counts) -> i64;

impl Tally {
    /// Counts.
    pub(crate) async fn count(store: &impl DemoStore) -> Result<Self, Failure> {
        let mut subscriptions = Vec::new();
        for name in SUBSCRIPTIONS {
            subscriptions.push(Account { name, counts: store.tally(name).await? });
        }
        let wrongly =
            "select count(*) from postrider_delivery d join postrider_event e on e.event_id = d.event_id
             where d.state = 'dead' and (d.subscription <> ? or e.payload not like ?)";
        let follow_ups = "select count(*) from postrider_event where event_type = 'EntryBooked'";
        Ok(Self {
            rolled_back: store.count("select count(*) from rolled_back", &[]).await?,
            follow_ups: store.count(follow_ups, &[]).await?,
            wrongly_dead: store.count(wrongly, &[MAIL, &format!("%\"{NOWHERE}\"%")]).await?,
            subscriptions,
        })
    }

    fn sum(&self, part: Part) -> i64 {
        self.subscriptions.iter().map(|one| part(&one.counts)).sum()
    }

    /// The promises, each with what was counted against it and whether it held.
    fn promises(&self) -> Vec<(String, bool)> {
        let (lost, invented) = (self.sum(|one| one.lost), self.sum(|one| one.invented));
        let out_of_order = self.sum(|one| one.out_of_order);
        let books = self.subscriptions.iter().find(|one| one.name == BOOKS);
        let (entries, twice) = books.map_or((0, 0), |books| (books.counts.delivered, books.counts.again));
        let follow_ups = self.follow_ups;
        let dead = self.sum(|one| one.dead);
        let once = twice == 0 && follow_ups == entries;
        vec![
            (format!("lost: {lost}"), lost == 0 && self.sum(|one| one.recorded) > 0),
            (format!("delivered after rollback: {invented}"), invented == 0),
            (format!("out of order within a customer: {out_of_order}"), out_of_order == 0),
            (
                format!("effects once: {entries} in the books, {follow_ups} follow-up events, {twice} twice"),
                once,
            ),
            (format!("dead: {dead}, only the invalid address"), self.wrongly_dead == 0 && dead == 1),
        ]
    }

    /// Prints the summary; whether every promise held.
    pub(crate) fn print(&self, screen: &mut Screen, took: Duration) -> bool {
        screen.say("");
        let head: String = self.subscriptions.iter().map(|one| format!("{:>11}", one.name)).collect();
        let head = format!("  {:<22}{head}", "counted in the shop");
        screen.say(&screen.paint(Colour::Bold, &head));
        let rows: [(&str, Part); 8] = [
            ("recorded", |one| one.recorded),
            ("delivered", |one| one.delivered),
            ("retried", |one| one.retried),
            ("delivered again", |one| one.again),
            ("dead", |one| one.dead),
            ("lost", |one| one.lost),
            ("out of order", |one| one.out_of_order),
            ("rolled back, delivered", |one| one.invented),
        ];
        for (name, part) in rows {
            let figures: String =
                self.subscriptions.iter().map(|one| format!("{:>11}", part(&one.counts))).collect();
            screen.say(&format!("  {name:<22}{figures}"));
        }
        screen.say(&format!(
            "\n  {} transactions were rolled back. Relay A died with delivered events that\n  \
             were not settled; these came again. The books use an inbox: once each.\n",
            self.rolled_back
        ));
        let promises = self.promises();
        for (promise, held) in &promises {
            let mark = if *held {
                screen.paint(Colour::Green, "held  ")
            } else {
                screen.paint(Colour::Red, "BROKEN")
            };
            screen.say(&format!("  {mark}  {promise}"));
        }
        let held = promises.iter().all(|(_, held)| *held);
        let verdict = if held { "Every promise held" } else { "A promise was BROKEN" };
        let colour = if held { Colour::Green } else { Colour::Red };
        let verdict = screen.paint(colour, verdict);
        screen.say(&format!("\n  {verdict}, in {:.1} s.", took.as_secs_f64()));
        held
    }
}

/// Says where the shop is, and how to look around in it.
pub(crate) fn look_around(screen: &mut Screen, store: &str, schema: Option<&str>) {
    let program = std::env::args_os().next().unwrap_or_else(|| "postrider".into());
    let (store, program) = (output::quoted(store), output::quoted(&program.to_string_lossy()));
    let schema =
        schema.map(|schema| format!("    export POSTRIDER_STORE_SCHEMA={schema}\n")).unwrap_or_default();
    screen.say(&format!(
        "\n  The shop is kept. Look around:\n\n    export POSTRIDER_STORE_URL={store}\n{schema}    {program} status\n    \
         {program} dead list"
    ));
}
