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
    Story::begin("Umbra", sentence, options).act_out(all).await
}

/// Everything, one act after the other.
async fn all(story: &mut Story) -> Stage {
    let mut stage = Stage::set(story).await;
    acts::first_subscription(story, &mut stage).await;
    troubles::api_dies_between_charge_and_commit(story, &mut stage).await;
    acts::four_failures(story, &stage).await;
    acts::kicked_and_back(story, &stage).await;
    acts::everything_else(story, &stage).await;
    troubles::gateway_is_away(story, &stage).await;
    troubles::worker_dies_between_handler_and_mark(story, &mut stage).await;
    troubles::discord_is_down(story, &stage).await;
    operating::dead_events(story, &stage).await;
    if story.options().loss {
        stage.lose_a_message().await;
    }
    counts::everything(story, &stage).await;
    if stage.is_postgres() {
        operating::a_month_later(story, &stage).await;
    }
    stage
}
