//! Notification: tells people what happened, by direct message.

use std::future::Future;

use serde_json::Value;
use uuid::Uuid;

use crate::contracts::Answer;

/// The events that somebody is told of.
pub const TOLD: &[&str] = &[
    "SubscriptionStarted",
    "PaymentFailed",
    "PaymentFailedFinal",
    "SubscriptionCanceled",
    "PlanUpgraded",
    "PlanDowngraded",
    "LicenseDowngraded",
    "LicenseSuspended",
    "RestoreStarted",
    "RestoreCompleted",
    "RestoreFailed",
    "AntiNukeTriggered",
    "AntiNukeActioned",
];

/// Where messages go.
pub trait Messenger: Send {
    /// Sends a message, unless one for this event was sent.
    fn send(&mut self, event: Uuid, text: &str) -> impl Future<Output = Answer<()>> + Send;
}

/// The message for an event; nothing if nobody is told of it.
pub fn text(event_type: &str, payload: &Value) -> Option<String> {
    let field = |name: &str| payload[name].as_str().unwrap_or("?").to_owned();
    Some(match event_type {
        "SubscriptionStarted" => format!("{} activated", field("plan_code")),
        "PaymentFailed" => {
            format!("Payment failed ({} of 4), we try again in 24 hours", payload["retry_count"])
        }
        "PaymentFailedFinal" => "Payment failed for the last time: your subscription is canceled".to_owned(),
        "SubscriptionCanceled" => "Your subscription is canceled".to_owned(),
        "PlanUpgraded" => format!("Upgraded to {}", field("new_plan")),
        "PlanDowngraded" => format!("You will be on {}", field("new_plan")),
        "LicenseDowngraded" => format!("Your licence is now {}", field("new_plan")),
        "LicenseSuspended" => format!("Your licence is suspended: {}", field("reason")),
        "RestoreStarted" => "The restore has started".to_owned(),
        "RestoreCompleted" => format!("The restore is complete: {}", field("result_summary")),
        "RestoreFailed" => format!("The restore failed: {}", field("error_summary")),
        "AntiNukeTriggered" => format!("URGENT: attack detected: {}", field("detected_pattern")),
        "AntiNukeActioned" => "We acted against the attack".to_owned(),
        _ => return None,
    })
}

/// Tells of an event.
pub async fn tell(
    event: Uuid,
    event_type: &str,
    payload: &Value,
    messenger: &mut impl Messenger,
) -> Answer<()> {
    match text(event_type, payload) {
        Some(text) => messenger.send(event, &text).await,
        None => Ok(()),
    }
}
