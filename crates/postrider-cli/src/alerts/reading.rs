//! What the figures are, and whether an alert fires by them.

use std::collections::BTreeMap;
use std::time::Duration;

use postrider::store::{Away, Figures, RelayInfo, SubscriptionInfo, SubscriptionState};
use postrider::{OffsetDateTime, Result};

use crate::config::Alert;
use crate::config::alert::{Figure, Of, Than, When};
use crate::database::SharedStore;

/// How an alert stands for what it watches.
#[derive(Debug, Clone)]
pub(crate) struct Reading<'a> {
    /// The alert.
    pub(crate) alert: &'a Alert,
    /// The subscription; nothing for all of them together.
    pub(crate) subject: Option<String>,
    /// The figure; nothing if there is no such subscription.
    pub(crate) value: Option<f64>,
    /// Whether it is too high.
    pub(crate) fires: bool,
}

/// The figures of a subscription, its streams taken together; or of several.
#[derive(Debug, Clone, Default)]
struct Total {
    undelivered: u64,
    retrying: u64,
    dead: u64,
    attempts: u64,
    oldest: f64,
    unavailable: f64,
    over: BTreeMap<Duration, u64>,
}

impl Total {
    fn of(figures: &[Figures]) -> Self {
        let mut total = Self::default();
        for each in figures {
            total.undelivered += each.undelivered();
            total.retrying += each.retrying;
            total.dead += each.dead;
            total.attempts += each.attempts;
            total.oldest = total.oldest.max(each.oldest_seconds);
        }
        total
    }

    fn and(mut self, other: &Self) -> Self {
        self.undelivered += other.undelivered;
        self.retrying += other.retrying;
        self.dead += other.dead;
        self.attempts += other.attempts;
        self.oldest = self.oldest.max(other.oldest);
        self.unavailable = self.unavailable.max(other.unavailable);
        for (age, count) in &other.over {
            *self.over.entry(*age).or_default() += count;
        }
        self
    }

    fn value(&self, figure: Figure) -> f64 {
        match figure {
            Figure::Undelivered => self.undelivered as f64,
            Figure::UndeliveredOver(age) => self.over.get(&age).copied().unwrap_or(0) as f64,
            Figure::OldestSeconds => self.oldest,
            Figure::Retrying => self.retrying as f64,
            Figure::Dead => self.dead as f64,
            Figure::MeanAttempts if self.undelivered == 0 => 0.0,
            Figure::MeanAttempts => self.attempts as f64 / self.undelivered as f64,
            Figure::UnavailableSeconds => self.unavailable,
        }
    }
}

/// Asks the store for what the alerts need, and says how each of them stands. Of an alert of events that die, the value is how
/// many are dead, and it never fires here: each event is told by itself. `now` is by the store's clock.
pub(crate) async fn readings<'a>(
    log: &SharedStore,
    alerts: &'a [Alert],
    now: OffsetDateTime,
) -> Result<Vec<Reading<'a>>> {
    let outages =
        alerts.iter().any(|alert| matches!(alert.when, When::Figure(Figure::UnavailableSeconds, ..)));
    let relays = if outages { log.relays().await? } else { Vec::new() };
    let mut totals = BTreeMap::new();
    for subscription in log.subscriptions().await? {
        let unavailable = if outages { unavailable(&subscription, &relays, now) } else { 0.0 };
        let name = subscription.subscription.name;
        let ages: Vec<Duration> = alerts.iter().filter_map(|alert| age_for(alert, &name)).collect();
        if !alerts.iter().any(|alert| watches(alert, &name)) {
            // It is there, and nobody wants to know how it is doing.
            totals.insert(name, Total::default());
            continue;
        }
        let mut total = Total { unavailable, ..Total::of(&log.figures(&name).await?) };
        for age in ages {
            // As long as the oldest is younger, there is nothing to count.
            if total.oldest > age.as_secs_f64() && !total.over.contains_key(&age) {
                total.over.insert(age, log.undelivered_over(&name, age).await?);
            }
        }
        totals.insert(name, total);
    }
    Ok(alerts.iter().flat_map(|alert| stand(alert, &totals)).collect())
}

/// For how many seconds the destination has been unavailable. A subscription that is paused or that no relay has is not trying it.
fn unavailable(info: &SubscriptionInfo, relays: &[RelayInfo], now: OffsetDateTime) -> f64 {
    match SubscriptionState::of(info, &[], relays) {
        SubscriptionState::Away => {
            Away::of(info, relays).map_or(0.0, |away| (now - away.since).as_seconds_f64().max(0.0))
        }
        _ => 0.0,
    }
}

fn watches(alert: &Alert, subscription: &str) -> bool {
    !matches!(&alert.of, Of::One(name) if name != subscription)
}

fn age_for(alert: &Alert, subscription: &str) -> Option<Duration> {
    match alert.when {
        When::Figure(Figure::UndeliveredOver(age), ..) if watches(alert, subscription) => Some(age),
        _ => None,
    }
}

fn stand<'a>(alert: &'a Alert, totals: &BTreeMap<String, Total>) -> Vec<Reading<'a>> {
    let reading = |subject: Option<&String>, total: Option<&Total>| {
        let (value, fires) = match (total, &alert.when) {
            (None, _) => (None, false),
            (Some(total), When::EventDies) => (Some(total.value(Figure::Dead)), false),
            (Some(total), When::Figure(figure, than, limit)) => {
                let value = total.value(*figure);
                let fires = match than {
                    Than::More => value > *limit,
                    Than::AtLeast => value >= *limit,
                };
                (Some(value), fires)
            }
        };
        Reading { alert, subject: subject.cloned(), value, fires }
    };
    match &alert.of {
        Of::Each => totals.iter().map(|(name, total)| reading(Some(name), Some(total))).collect(),
        Of::One(name) => vec![reading(Some(name), totals.get(name))],
        Of::All => {
            let all = totals.values().fold(Total::default(), Total::and);
            vec![reading(None, Some(&all))]
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn alert(when: &str, of: Of) -> Alert {
        let when = When::parse(when).expect("a condition");
        Alert { name: when.to_string(), when, to: vec!["log".to_owned()], of, repeat: None }
    }

    fn totals() -> BTreeMap<String, Total> {
        let figures = |pending, retrying, dead, oldest_seconds, attempts| {
            let stream = Figures { pending, retrying, dead, oldest_seconds, attempts, ..Figures::default() };
            let other = Figures { processing: 1, oldest_seconds: 1.0, ..Figures::default() };
            let mut total = Total::of(&[stream, other]);
            total.over.insert(Duration::from_secs(300), pending);
            total.unavailable = oldest_seconds * 2.0;
            total
        };
        let all = [("mail", figures(99, 0, 11, 61.0, 0)), ("shop", figures(900, 100, 2, 30.0, 1500))];
        all.into_iter().map(|(name, total)| (name.to_owned(), total)).collect()
    }

    /// U13, L9, T8: whether each condition fires, for each subscription and for both together.
    #[test]
    fn conditions_fire_above_their_limits() {
        for (when, mail, shop, all) in [
            ("undelivered > 1000", false, true, true),
            ("undelivered > 100", false, true, true),
            ("undelivered >= 100", true, true, true),
            ("undelivered > 1001", false, false, true),
            ("undelivered > 1101", false, false, false),
            ("oldest_seconds > 60", true, false, true),
            ("oldest_seconds > 61", false, false, false),
            ("dead > 10", true, false, true),
            ("dead > 12", false, false, true),
            ("retrying > 100", false, false, false),
            ("retrying >= 100", false, true, true),
            ("mean_attempts > 1", false, true, true),
            ("mean_attempts > 1.49", false, true, false),
            ("undelivered_over(5m) >= 100", false, true, true),
            ("undelivered_over(5m) >= 999", false, false, true),
            ("undelivered_over(6m) >= 1", false, false, false),
            ("unavailable_seconds > 60", true, false, true),
            ("unavailable_seconds >= 60", true, true, true),
            ("unavailable_seconds > 122", false, false, false),
        ] {
            let each = alert(when, Of::Each);
            let fires: Vec<bool> = stand(&each, &totals()).iter().map(|reading| reading.fires).collect();
            assert_eq!(fires, [mail, shop], "{when}");
            assert_eq!(stand(&alert(when, Of::All), &totals())[0].fires, all, "{when} of all");
            assert_eq!(
                stand(&alert(when, Of::One("shop".to_owned())), &totals())[0].fires,
                shop,
                "{when} of shop"
            );
        }
    }

    #[test]
    fn nothing_undelivered_has_no_mean_and_an_unknown_subscription_no_figure() {
        let idle = BTreeMap::from([("mail".to_owned(), Total::default())]);
        let alert_of_means = alert("mean_attempts >= 0.1", Of::Each);
        assert_eq!(stand(&alert_of_means, &idle)[0].value, Some(0.0));
        let unknown = alert("dead >= 0", Of::One("nobody".to_owned()));
        let standing = &stand(&unknown, &idle)[0];
        assert!(standing.value.is_none() && !standing.fires);
    }
}
