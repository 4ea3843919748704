//! The story of Umbra: its processes are started, its flows acted out, some of it is killed, and at the end everything is counted.

mod acts;
mod counts;
mod eye;
mod operating;
mod stage;
mod troubles;

use std::process::ExitCode;

use story::{Options, Story};

use stage::Stage;

/// Tells it; the exit code is 1 if a promise broke.
pub async fn tell(options: Options) -> ExitCode {
    let sentence = "contexts of a SaaS for Discord servers that talk by events alone: guild, billing, licensing, notification, audit.";
    let mut story = Story::begin("Umbra", sentence, options);
    let mut stage = Stage::set(&mut story).await;
    acts::first_subscription(&mut story, &mut stage).await;
    troubles::api_dies_between_charge_and_commit(&mut story, &mut stage).await;
    acts::four_failures(&mut story, &stage).await;
    acts::kicked_and_back(&mut story, &stage).await;
    acts::everything_else(&mut story, &stage).await;
    troubles::gateway_is_away(&mut story, &stage).await;
    troubles::worker_dies_between_handler_and_mark(&mut story, &mut stage).await;
    troubles::discord_is_down(&mut story, &stage).await;
    operating::dead_events(&mut story, &stage).await;
    counts::everything(&mut story, &stage).await;
    if stage.is_postgres() {
        operating::a_month_later(&mut story, &stage).await;
    }
    story.end().await
}
