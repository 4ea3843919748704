//! Names that are not known: said in a sentence, with the one that was meant.

use postrider::{Desk, SubscriptionInfo};

use crate::Failure;
use crate::config::nearest::nearest;

/// The subscription of that name.
pub(crate) async fn subscription(desk: &dyn Desk, name: &str) -> Result<SubscriptionInfo, Failure> {
    let mut all = desk.subscriptions().await?;
    if let Some(place) = all.iter().position(|info| info.subscription.name == name) {
        return Ok(all.swap_remove(place));
    }
    let names: Vec<&str> = all.iter().map(|info| info.subscription.name.as_str()).collect();
    let what = match nearest(name, names.iter().copied()) {
        Some(meant) => format!("there is no subscription {name:?}; is {meant:?} meant?"),
        None if names.is_empty() => format!("there is no subscription {name:?}; there is none at all yet"),
        None => format!("there is no subscription {name:?}; there is {}", names.join(", ")),
    };
    Err(what.into())
}

/// Refuses a name that is not known; nothing is asked where none is given.
pub(crate) async fn check(desk: &dyn Desk, name: Option<&str>) -> Result<(), Failure> {
    match name {
        Some(name) => subscription(desk, name).await.map(drop),
        None => Ok(()),
    }
}
