//! The stub of Discord: sends dispatches to the bot when it is asked to, and keeps one direct message for each nonce, in the order of
//! arrival, and what alerts tell the channel of the operators.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::{get, post};
use axum::{Json, Router};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use super::gate::Gate;

/// A message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// The id of the event that it tells of.
    pub nonce: Uuid,
    /// What it says.
    pub text: String,
}

/// What Discord did.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Figures {
    /// How many requests came, repeated ones included.
    pub requests: u64,
    /// The most requests that were under way at once.
    pub most_at_once: u64,
    /// The messages.
    pub messages: Vec<Message>,
    /// The texts that the operators were told.
    #[serde(default)]
    pub alerts: Vec<String>,
}

impl Figures {
    /// The texts of the messages, sorted.
    pub fn texts(&self) -> Vec<&str> {
        let mut texts: Vec<&str> = self.messages.iter().map(|message| message.text.as_str()).collect();
        texts.sort_unstable();
        texts
    }
}

/// How Discord is to behave from now on. What is absent stays as it is.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Control {
    /// Answer with 503 and take nothing.
    #[serde(default)]
    pub down: Option<bool>,
    /// Do the work and hold the answers back.
    #[serde(default)]
    pub hold: Option<bool>,
    /// Take so many milliseconds for each message.
    #[serde(default)]
    pub delay: Option<u64>,
}

#[derive(Debug, Default)]
struct Channel {
    figures: Figures,
    under_way: u64,
    down: bool,
    delay: u64,
}

/// Discord. Clones share its messages.
#[derive(Debug, Clone, Default)]
pub struct Discord {
    channel: Arc<Mutex<Channel>>,
    gate: Gate,
    bot: Option<String>,
}

impl Discord {
    /// Discord with a bot at this address.
    pub fn of(bot: Option<String>) -> Self {
        Self { bot, ..Self::default() }
    }

    fn channel(&self) -> MutexGuard<'_, Channel> {
        self.channel.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Its routes: `POST /dm`, `POST /alerts`, `POST /dispatch` (a dispatch, `t` and `d`, that the bot gets; the answer is the bot's), `POST /control`,
    /// `GET /figures`.
    pub fn router(self) -> Router {
        Router::new()
            .route("/dm", post(take))
            .route("/alerts", post(alert))
            .route("/dispatch", post(dispatch))
            .route("/control", post(control))
            .route("/figures", get(async |State(discord): State<Self>| Json(discord.figures())))
            .with_state(self)
    }

    /// What it did so far.
    pub fn figures(&self) -> Figures {
        self.channel().figures.clone()
    }

    /// Makes it behave differently.
    pub fn control(&self, control: &Control) {
        let mut channel = self.channel();
        channel.down = control.down.unwrap_or(channel.down);
        channel.delay = control.delay.unwrap_or(channel.delay);
        if let Some(hold) = control.hold {
            self.gate.hold(hold);
        }
    }
}

async fn take(State(discord): State<Discord>, Json(message): Json<Message>) -> StatusCode {
    let delay = {
        let mut channel = discord.channel();
        channel.figures.requests += 1;
        if channel.down {
            return StatusCode::SERVICE_UNAVAILABLE;
        }
        channel.under_way += 1;
        channel.figures.most_at_once = channel.figures.most_at_once.max(channel.under_way);
        if !channel.figures.messages.iter().any(|known| known.nonce == message.nonce) {
            channel.figures.messages.push(message);
        }
        Duration::from_millis(channel.delay)
    };
    tokio::time::sleep(delay).await;
    discord.gate.pass().await;
    discord.channel().under_way -= 1;
    StatusCode::OK
}

/// What a webhook of alerts tells.
#[derive(Debug, Deserialize)]
struct Alert {
    text: String,
}

async fn alert(State(discord): State<Discord>, Json(alert): Json<Alert>) -> StatusCode {
    println!("alert: {}", alert.text);
    discord.channel().figures.alerts.push(alert.text);
    StatusCode::OK
}

/// Sends what the gateway of Discord would send. Without a bot nobody gets it.
async fn dispatch(State(discord): State<Discord>, Json(dispatch): Json<Value>) -> StatusCode {
    let Some(bot) = &discord.bot else { return StatusCode::NOT_FOUND };
    let sent = story::process::client().post(format!("{bot}/gateway")).json(&dispatch).send().await;
    sent.map_or(StatusCode::BAD_GATEWAY, |answer| answer.status())
}

async fn control(State(discord): State<Discord>, Json(control): Json<Control>) -> StatusCode {
    discord.control(&control);
    StatusCode::OK
}
