//! The four subscriptions.

use postrider::store::Mask;
use postrider::{Failure, Order, Raw, Received, Recorded, Relay, Subscriber};

use super::messenger::Messages;
use super::unit::UnitOfWork;
use super::{Outbox, Tx};
use crate::adapters::delivery::Delivery;
use crate::adapters::discord::Discord;
use crate::contracts::{
    BillingKeyDeleted, BotInstalled, BotKicked, Fact, Fault, GuildDeleted, LicenseCanceled,
    LicenseDowngraded, LicenseExtended, LicenseGranted, LicenseSuspended, PaymentFailedFinal,
    PaymentSucceeded, PlanUpgraded, SubscriptionCanceled, SubscriptionStarted, SubscriptionSuspended,
    Timestamp,
};
use crate::{audit, billing, licensing, notification};

fn usual(subscriber: Subscriber<Outbox>, delivery: &Delivery) -> Subscriber<Outbox> {
    let subscriber = subscriber.batch(delivery.batch).concurrency(delivery.concurrency);
    subscriber.lanes(1).order(Order::Key).retry(delivery.retry.clone())
}

/// The handlers of a subscription, each with the events that it may record.
macro_rules! handlers {
    ($subscriber:expr, $delivery:expr, $($event:ident => $handler:path => [$($follow_up:ident),*]),+ $(,)?) => {{
        let subscriber = usual($subscriber, $delivery).types([$($event::NAME),+]);
        $(let subscriber = subscriber.on_type($event::NAME, async |event: Received<$event>, mut tx: Tx| {
            let unit = &mut UnitOfWork::Handler(&mut tx, happened(event.event()));
            $handler(&event, unit).await.map_err(failure)
        })$(.follow_up::<$follow_up>())*;)+
        subscriber
    }};
}

/// When an event happened.
fn happened(event: &Recorded) -> Timestamp {
    event.occurred_at.unix_timestamp()
}

/// What a fault means to the relay: of an error of HTTP, whether the service is away or the event is to blame.
fn failure(fault: Fault) -> Failure {
    match fault.downcast::<reqwest::Error>() {
        Ok(error) => postrider::http::failure(*error),
        Err(fault) => Failure::from(fault),
    }
}

/// The relay of the worker.
pub fn relay(outbox: &Outbox, discord: Discord, delivery: &Delivery) -> postrider::Result<Relay<Outbox>> {
    let mask = Mask::new(audit::SECRET)?;
    let messages = Messages::new(outbox.pool(), discord);
    Ok(Relay::new(outbox)
        .poll_interval(delivery.poll_interval)
        .subscribe("licensing", |s| {
            handlers!(s, delivery,
                BotInstalled => licensing::bot_installed => [LicenseGranted, LicenseDowngraded],
                BotKicked => licensing::bot_kicked => [LicenseSuspended],
                GuildDeleted => licensing::guild_deleted => [LicenseCanceled],
                BillingKeyDeleted => licensing::billing_key_deleted => [LicenseSuspended],
                SubscriptionStarted => licensing::subscription_started => [LicenseGranted],
                PaymentSucceeded => licensing::payment_succeeded => [LicenseExtended, LicenseDowngraded],
                PaymentFailedFinal => licensing::payment_failed_final => [LicenseDowngraded],
                SubscriptionSuspended => licensing::subscription_suspended => [LicenseSuspended],
                PlanUpgraded => licensing::plan_upgraded => [],
            )
        })
        .subscribe("billing", |s| {
            handlers!(s, delivery,
                BotKicked => billing::bot_kicked => [SubscriptionSuspended, SubscriptionCanceled],
                GuildDeleted => billing::guild_deleted => [SubscriptionCanceled],
                BillingKeyDeleted => billing::billing_key_deleted => [SubscriptionSuspended, SubscriptionCanceled],
            )
        })
        .subscribe("notification", |s| {
            usual(s, delivery).types(notification::TOLD.iter().copied()).on_other(
                move |event: Received<Raw>| {
                    let mut messages = messages.clone();
                    async move {
                        let payload = event.event().payload.decode()?;
                        let (id, kind) = (event.event().event_id, event.event().event_type.clone());
                        notification::tell(id, &kind, &payload, &mut messages).await.map_err(failure)
                    }
                },
            )
        })
        .subscribe("audit", |s| {
            usual(s, delivery).on_other(move |event: Received<Raw>, mut tx: Tx| {
                let mut masked = event.event().clone();
                mask.apply(&mut masked);
                async move {
                    let entry = audit::Entry {
                        event_id: masked.event_id,
                        event_type: masked.event_type.to_string(),
                        aggregate: format!("{}:{}", masked.aggregate_type, masked.aggregate_id),
                        payload: masked.payload.as_json().unwrap_or("null").to_owned(),
                        occurred_at: masked.occurred_at.unix_timestamp_nanos() as f64 / 1e9,
                    };
                    let unit = &mut UnitOfWork::Handler(&mut tx, happened(&masked));
                    audit::keep(&entry, unit).await.map_err(failure)
                }
            })
        }))
}
