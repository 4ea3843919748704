//! `commerce consumer NAME`: one of the four consumers.

use postrider::asked_to_end;

use crate::adapters::consumers::{LIKES, SALES, STOCK, VIEWS, likes, sales, stock, views};
use crate::adapters::counts::PgLikes;
use crate::processes::settings;

/// Consumes until it is asked to end; serves `/metrics` where `METRICS` says, if it does. It says `consuming` on stdout once it has partitions.
pub async fn run(name: &str) -> Result<(), String> {
    story::metrics::serve_aside().await.map_err(|error| format!("METRICS: {error}"))?;
    let (settings, outbox) = (settings::consumers()?, settings::outbox().await?);
    let consumer = match name {
        LIKES => likes(&settings, &outbox, PgLikes(outbox.pool().clone())),
        SALES => sales(&settings, &outbox),
        VIEWS => views(&settings, &outbox),
        STOCK => stock(&settings, &outbox, settings::cache()?),
        _ => {
            return Err(format!(
                "there is no consumer {name}; they are {LIKES}, {SALES}, {VIEWS} and {STOCK}"
            ));
        }
    };
    let mut running = tokio::select! {
        running = consumer.start() => running.map_err(|error| error.to_string())?,
        () = asked_to_end() => return Ok(()),
    };
    let held = async {
        while running.partitions().is_empty() {
            let soon = std::time::Duration::from_millis(20);
            if let Ok(error) = tokio::time::timeout(soon, running.failed()).await {
                return Err(error.to_string());
            }
        }
        println!("consuming");
        Err(running.failed().await.to_string())
    };
    tokio::select! { () = asked_to_end() => {}, failed = held => return failed }
    running.stop().await.map_err(|error| error.to_string())
}
