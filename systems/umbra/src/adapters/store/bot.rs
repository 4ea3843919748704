//! The bot: what Discord sends becomes events of Guild. It delivers nothing.

use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::post;
use axum::{Json, Router};
use serde::Deserialize;
use serde_json::{Value, json};

use super::Outbox;
use super::api::reply;
use super::command_service::CommandService;

/// A dispatch of Discord's gateway: its type and its data.
#[derive(Debug, Deserialize)]
struct Dispatch {
    t: String,
    d: Value,
}

/// The routes of the bot: `POST /gateway`, which the stub of Discord sends dispatches to.
pub fn router(outbox: &Outbox) -> Router {
    Router::new().route("/gateway", post(dispatch)).with_state(CommandService::new(outbox))
}

/// The fact that a dispatch means. Discord says GUILD_DELETE for both: the bot was removed, or the guild was.
fn fact(dispatch: &Dispatch) -> Option<(&'static str, Value)> {
    let field = |name: &str| dispatch.d[name].clone();
    let guild = field("guild_id");
    Some(match dispatch.t.as_str() {
        "GUILD_CREATE" => {
            ("BotInstalled", json!({ "guild_id": guild, "installer_user_id": field("installer_user_id") }))
        }
        "GUILD_DELETE" if dispatch.d["deleted"] == true => ("GuildDeleted", json!({ "guild_id": guild })),
        "GUILD_DELETE" => ("BotKicked", json!({ "guild_id": guild })),
        "GUILD_UPDATE" => {
            let (old, new) = (field("old_owner_id"), field("new_owner_id"));
            ("GuildOwnerChanged", json!({ "guild_id": guild, "old_owner_id": old, "new_owner_id": new }))
        }
        _ => return None,
    })
}

async fn dispatch(
    State(service): State<CommandService>,
    Json(dispatch): Json<Dispatch>,
) -> (StatusCode, Json<Value>) {
    match fact(&dispatch) {
        Some((name, payload)) => reply(service.report("guild", name, payload).await),
        // Discord has many dispatches that are nobody's here.
        None => (StatusCode::OK, Json(json!({ "status": "ignored" }))),
    }
}
