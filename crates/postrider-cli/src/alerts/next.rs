//! The command that an alert suggests.

use postrider::Uuid;

use super::reading::Reading;
use crate::config::alert::{Figure, When};
use crate::output::quoted;

/// Of a figure that is too high.
pub(super) fn of_figure(reading: &Reading<'_>) -> String {
    let subject = reading.subject.as_deref();
    match (&reading.alert.when, subject) {
        (When::Figure(Figure::Dead, ..) | When::EventDies, _) => of_dead(subject),
        (When::Figure(Figure::Retrying | Figure::MeanAttempts, ..), Some(name)) => {
            format!("postrider events --subscription {} --state retrying", quoted(name))
        }
        (_, Some(name)) => format!("postrider status {}", quoted(name)),
        (_, None) => "postrider status".to_owned(),
    }
}

/// Of events that died, for one subscription or for several.
pub(super) fn of_dead(subscription: Option<&str>) -> String {
    let of = subscription.map(|name| format!(" --subscription {}", quoted(name))).unwrap_or_default();
    format!("postrider dead list{of}")
}

/// Of an event that died.
pub(super) fn of_event(event_id: &Uuid) -> String {
    format!("postrider dead show {event_id}")
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::arguments::Arguments;
    use crate::config::Alert;
    use crate::config::alert::Of;

    /// Each figure has a command that the program understands.
    #[test]
    fn every_alert_names_a_command_that_there_is() {
        let conditions = [
            "undelivered > 1",
            "undelivered_over(5m) > 1",
            "oldest_seconds > 1",
            "retrying > 1",
            "dead > 1",
            "mean_attempts > 1",
            "unavailable_seconds > 1",
            "event dies",
        ];
        let mut commands = vec![of_dead(None), of_dead(Some("mail")), of_event(&Uuid::nil())];
        for when in conditions {
            let when = When::parse(when).expect("a condition");
            let alert = Alert { name: "a".into(), when, to: Vec::new(), of: Of::Each, repeat: None };
            for subject in [None, Some("mail".to_owned())] {
                let command = of_figure(&Reading { alert: &alert, subject, value: Some(2.0), fires: true });
                commands.push(command);
            }
        }
        for command in commands {
            let parsed = Arguments::try_parse_from(command.split(' '));
            assert!(
                parsed.is_ok(),
                "{command}: {}",
                parsed.err().map(|error| error.to_string()).unwrap_or_default()
            );
        }
        assert_eq!(of_dead(Some("my mail's")), r"postrider dead list --subscription 'my mail'\''s'");
    }
}
