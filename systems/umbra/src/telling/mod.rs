//! The story of Umbra.

use std::process::ExitCode;

/// Tells it.
pub async fn tell(options: story::Options) -> ExitCode {
    let story = story::Story::begin("Umbra", "x", options);
    story.end().await
}
