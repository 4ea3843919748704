//! The story of the ledger, and what it and the tests share.

use std::process::ExitCode;

use story::{Options, Story};

pub mod acts;
pub mod bank;
pub mod counts;
pub mod emergencies;
pub mod proxy;
pub mod scene;
pub mod stage;
pub mod topic;

use scene::Scene;

/// Tells it: everything is started, acted out, killed, caught up with and counted. 1 if a promise broke.
pub async fn tell(options: Options) -> ExitCode {
    let sentence = "a double-entry ledger on MariaDB, whose postings reach three consumers through Kafka";
    Story::begin("ledger", sentence, options).act_out(all).await
}

/// Everything, one part after the other.
async fn all(story: &mut Story) -> Scene {
    story.part("The stage");
    let mut scene = Scene::set(story).await;
    story.part("Money moves");
    acts::money_moves(story, &scene).await;
    story.part("Kafka is killed, and both relays");
    emergencies::kafka_is_killed(story, &mut scene).await;
    story.part("An answer is lost");
    emergencies::an_answer_is_lost(story, &scene).await;
    story.part("An event is too large for Kafka");
    emergencies::an_event_dies(story, &scene).await;
    story.part("The end is counted");
    if story.options().loss {
        scene.lose_an_effect().await;
    }
    counts::count(story, &scene).await;
    story.part("A week goes by, on a turned clock");
    acts::a_week_goes_by(story, &scene).await;
    scene.addresses(story);
    scene
}
