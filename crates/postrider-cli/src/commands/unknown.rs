//! Names that are not known: said in a sentence, with the one that was meant.

use postrider::store::{Store, SubscriptionInfo, nearest};

use crate::Failure;

/// The subscription of that name.
pub(crate) async fn subscription(log: &dyn Store, name: &str) -> Result<SubscriptionInfo, Failure> {
    let mut all = log.subscriptions().await?;
    if let Some(place) = all.iter().position(|info| info.subscription.name == name) {
        return Ok(all.swap_remove(place));
    }
    let names: Vec<&str> = all.iter().map(|info| info.subscription.name.as_str()).collect();
    let what = match nearest(name, names.iter().copied()) {
        Some(meant) => format!("there is no subscription {name:?}; did you mean {meant:?}?"),
        None if names.is_empty() => {
            format!("there is no subscription {name:?}; there are no subscriptions yet")
        }
        None => format!("there is no subscription {name:?}; the known ones are {}", names.join(", ")),
    };
    Err(what.into())
}

/// Refuses a name that is not known; nothing is asked where none is given.
pub(crate) async fn check(log: &dyn Store, name: Option<&str>) -> Result<(), Failure> {
    match name {
        Some(name) => subscription(log, name).await.map(drop),
        None => Ok(()),
    }
}
