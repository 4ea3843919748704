//! What users ask of Billing beside paying: keys, cancellations, other plans; and what is due.

use uuid::Uuid;

use crate::billing::charging::OpenAttempt;
use crate::billing::{Refusal, Subscription, Subscriptions, paid_for, price};
use crate::contracts::{
    Answer, BillingKeyDeleted, BillingKeyIssued, PlanDowngraded, PlanUpgraded, SubscriptionCanceled,
    SubscriptionId, Timestamp, UserId,
};

/// Writes a new key of a user. Asked again, it changes nothing; an id that another user has, or that was deleted, is refused.
pub async fn issue_key(billing_key_id: Uuid, user_id: UserId, all: &mut impl Subscriptions) -> Answer<()> {
    if all.add_key(billing_key_id, user_id).await? {
        return all.publish(BillingKeyIssued { user_id, billing_key_id }).await;
    }
    if all.has_key(billing_key_id, user_id).await? { Ok(()) } else { Err(Refusal::KeyIdTaken.into()) }
}

/// Deletes a key of a user; whether there was one.
pub async fn delete_key(billing_key_id: Uuid, user_id: UserId, all: &mut impl Subscriptions) -> Answer<bool> {
    if !all.delete_key(billing_key_id, user_id).await? {
        return Ok(false);
    }
    all.publish(BillingKeyDeleted { user_id, billing_key_id }).await?;
    Ok(true)
}

/// Cancels a subscription, at once or at the end of its period; whether there was one to cancel. One that has not begun ends at once. To
/// cancel at the end of the period again changes nothing and tells nobody.
pub async fn cancel(
    id: SubscriptionId,
    cancel_at_period_end: bool,
    all: &mut impl Subscriptions,
) -> Answer<bool> {
    let is_pending = |subscription: &Subscription| subscription.status == "pending";
    let found = all.find(id).await?.filter(|found| lives(found) || is_pending(found));
    let Some(mut subscription) = found else { return Ok(false) };
    let cancel_at_period_end = cancel_at_period_end && !is_pending(&subscription);
    if cancel_at_period_end {
        if subscription.cancel_at_period_end {
            return Ok(true);
        }
        subscription.cancel_at_period_end = true;
    } else {
        "canceled".clone_into(&mut subscription.status);
    }
    all.save(&subscription).await?;
    all.publish(SubscriptionCanceled { subscription_id: id, cancel_at_period_end }).await?;
    Ok(true)
}

/// Changes the plan; whether there was a subscription and it had another plan. The new price counts from the next charge on. A plan that
/// costs nothing is refused: whoever wants it cancels.
pub async fn change_plan(id: SubscriptionId, plan: &str, all: &mut impl Subscriptions) -> Answer<bool> {
    paid_for(plan)?;
    let found = all.find(id).await?.filter(lives);
    let Some(mut subscription) = found.filter(|found| found.plan_code != plan) else { return Ok(false) };
    let old_plan = std::mem::replace(&mut subscription.plan_code, plan.to_owned());
    all.save(&subscription).await?;
    let (subscription_id, new_plan) = (id, plan.to_owned());
    if price(&new_plan) > price(&old_plan) {
        all.publish(PlanUpgraded { subscription_id, old_plan, new_plan }).await?;
    } else {
        let effective_at = subscription.period_end;
        all.publish(PlanDowngraded { subscription_id, old_plan, new_plan, effective_at }).await?;
    }
    Ok(true)
}

fn lives(subscription: &Subscription) -> bool {
    ["active", "past_due"].contains(&subscription.status.as_str())
}

/// Opens an attempt for each subscription whose charge is due, and ends those that end with their period.
pub async fn open_due(now: Timestamp, all: &mut impl Subscriptions) -> Answer<Vec<OpenAttempt>> {
    let mut opened = Vec::new();
    for id in all.due(now).await? {
        let Some(mut subscription) = all.find(id).await?.filter(lives) else { continue };
        // Another worker may have charged it before this one had the lock.
        if !all.is_due(id, now).await? {
            continue;
        }
        if subscription.cancel_at_period_end {
            "canceled".clone_into(&mut subscription.status);
            all.save(&subscription).await?;
            continue;
        }
        let attempt = Uuid::new_v4();
        let plan_code = subscription.plan_code;
        if all.attempt(id, attempt, &plan_code, now).await? {
            opened.push(OpenAttempt { id: attempt, subscription_id: id, plan_code, is_over: false });
        }
    }
    Ok(opened)
}
