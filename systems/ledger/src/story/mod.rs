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
    let mut story = Story::begin("ledger", sentence, options);
    story.part("The stage");
    let mut scene = Scene::set(&story).await;
    story.part("Money moves");
    acts::money_moves(&mut story, &scene).await;
    story.part("Kafka is killed, and both relays");
    emergencies::kafka_is_killed(&mut story, &mut scene).await;
    story.part("An answer is lost");
    emergencies::an_answer_is_lost(&mut story, &scene).await;
    story.part("An event is too large for Kafka");
    emergencies::an_event_dies(&mut story, &scene).await;
    story.part("The end is counted");
    counts::count(&mut story, &scene).await;
    story.part("A week goes by, on a turned clock");
    acts::a_week_goes_by(&mut story, &scene).await;
    scene.addresses(&mut story);
    story.end().await
}
