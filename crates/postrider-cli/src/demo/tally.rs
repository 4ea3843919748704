//! The summary: what the shop's own tables say in the end, and which promises that keeps or breaks.

use std::path::Path;
use std::time::Duration;

use sqlx_core::query::query;
use sqlx_core::row::Row;

use super::screen::{Colour, Screen};
use super::shop::{FILE, NOWHERE, Shop};
use super::staff::{BOOKS, MAIL, SUBSCRIPTIONS};
use crate::Failure;

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
    recorded: i64,
    delivered: i64,
    again: i64,
    retried: i64,
    dead: i64,
    lost: i64,
    invented: i64,
    out_of_order: i64,
}

/// One of its figures.
type Part = fn(&Account) -> i64;

impl Account {
    async fn count(shop: &Shop, name: &'static str) -> Result<Self, Failure> {
        let row = query(include_str!("../../sql/demo/tally.sql")).bind(name).fetch_one(&shop.pool).await?;
        Ok(Self {
            name,
            recorded: row.try_get("recorded")?,
            delivered: row.try_get("delivered")?,
            again: row.try_get("again")?,
            retried: row.try_get("retried")?,
            dead: row.try_get("dead")?,
            lost: row.try_get("lost")?,
            invented: row.try_get("invented")?,
            out_of_order: row.try_get("out_of_order")?,
        })
    }
}

impl Tally {
    /// Counts.
    pub(crate) async fn count(shop: &Shop) -> Result<Self, Failure> {
        let number = async |sql: &'static str| -> Result<i64, Failure> {
            Ok(query(sql).fetch_one(&shop.pool).await?.try_get(0)?)
        };
        let mut subscriptions = Vec::new();
        for name in SUBSCRIPTIONS {
            subscriptions.push(Account::count(shop, name).await?);
        }
        let wrongly = "select count(*) from postrider_delivery d join postrider_event e on e.id = d.id
             where d.state = 'dead' and (d.subscription <> $1 or e.payload ->> 'address' <> $2)";
        let wrongly = query(wrongly).bind(MAIL).bind(NOWHERE).fetch_one(&shop.pool).await?;
        Ok(Self {
            rolled_back: number("select count(*) from rolled_back").await?,
            follow_ups: number("select count(*) from postrider_event where event_type = 'EntryBooked'")
                .await?,
            wrongly_dead: wrongly.try_get(0)?,
            subscriptions,
        })
    }

    fn sum(&self, part: Part) -> i64 {
        self.subscriptions.iter().map(part).sum()
    }

    /// The promises, each with what was counted against it and whether it held.
    fn promises(&self) -> Vec<(String, bool)> {
        let (lost, invented) = (self.sum(|one| one.lost), self.sum(|one| one.invented));
        let out_of_order = self.sum(|one| one.out_of_order);
        let books = self.subscriptions.iter().find(|one| one.name == BOOKS);
        let (entries, twice) = books.map_or((0, 0), |books| (books.delivered, books.again));
        let follow_ups = self.follow_ups;
        let dead = self.sum(|one| one.dead);
        let once = twice == 0 && follow_ups == entries;
        vec![
            (format!("lost: {lost}"), lost == 0 && self.sum(|one| one.recorded) > 0),
            (format!("delivered though rolled back: {invented}"), invented == 0),
            (format!("out of order for a customer: {out_of_order}"), out_of_order == 0),
            (
                format!(
                    "effects once: {entries} in the books, {follow_ups} events that follow, {twice} twice"
                ),
                once,
            ),
            (format!("dead: {dead}, and only what had to die"), self.wrongly_dead == 0 && dead == 1),
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
            let figures: String = self.subscriptions.iter().map(|one| format!("{:>11}", part(one))).collect();
            screen.say(&format!("  {name:<22}{figures}"));
        }
        screen.say(&format!(
            "\n  {} transactions were rolled back. What comes again is what relay A had done\n  \
             and not settled when it died; the books commit with their inbox: once.\n",
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
pub(crate) fn look_around(screen: &mut Screen, folder: &Path) {
    let program = std::env::args_os().next().unwrap_or_else(|| "postrider".into());
    let store = quoted(&format!("sqlite:{}", folder.join(FILE).display()));
    let program = quoted(&program.to_string_lossy());
    screen.say(&format!(
        "\n  The shop is kept. Look around:\n\n    export POSTRIDER_STORE_URL={store}\n    {program} status\n    \
         {program} dead list"
    ));
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/:._-+=,@".contains(c);
    if word.chars().all(plain) { word.to_owned() } else { format!("'{}'", word.replace('\'', r"'\''")) }
}
