//! `postrider health`: whether the relay on this machine is ready, for a container's health check.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use clap::Args;

use crate::Failure;
use crate::config::{Config, Problem};
use crate::output;

/// How long it may take to answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// The flags of `health`.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Print a JSON object
    #[arg(long)]
    json: bool,
}

/// Asks the relay's own `/readyz`, where `http.listen` says; whether it is ready.
pub(crate) async fn run(config: &Config, arguments: &Arguments) -> Result<bool, Failure> {
    let address = match config.listen.map(|listen| listen.address) {
        None => {
            return Err(Problem::new(
                "http.listen is \"off\", so the relay has no /readyz; set http.listen to an address",
            )
            .into());
        }
        Some(address) if address.port() == 0 => {
            let what = "http.listen has port 0, so the port of the relay is unknown; set a fixed port";
            return Err(Problem::new(what).into());
        }
        Some(address) => reached(address),
    };
    let (ready, said) = match asked(address).await {
        Ok((is_ready, said)) => (is_ready, said),
        Err(what) => (false, what),
    };
    if arguments.json {
        output::json(&serde_json::json!({ "ready": ready, "address": address, "answer": said }))?;
        return Ok(ready);
    }
    if !ready {
        return Err(format!("the relay at {address} is not ready: {said}").into());
    }
    output::line(format!("ready: the relay at {address}"))?;
    Ok(true)
}

/// What is asked: this machine, where it listens on all its addresses.
fn reached(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

/// Whether it is ready, and what it says; or why nobody could be asked.
async fn asked(address: SocketAddr) -> Result<(bool, String), String> {
    let client = postrider::http::client().map_err(|error| error.message().to_owned())?;
    let answer = client.get(format!("http://{address}/readyz")).timeout(PATIENCE).send().await;
    let answer = answer.map_err(|error| match error {
        error if error.is_timeout() => format!("it did not answer within {PATIENCE:?}"),
        error if error.is_connect() => "connection refused".to_owned(),
        _ => "it did not answer".to_owned(),
    })?;
    let status = answer.status();
    let said = answer.text().await.unwrap_or_default();
    let said = said.lines().next().unwrap_or_default().trim().to_owned();
    Ok((status.is_success(), if said.is_empty() { status.to_string() } else { said }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_relay_that_listens_everywhere_is_asked_here() {
        for (listens, asked) in
            [("0.0.0.0:80", "127.0.0.1:80"), ("[::]:80", "[::1]:80"), ("10.0.0.1:80", "10.0.0.1:80")]
        {
            assert_eq!(reached(listens.parse().expect("an address")).to_string(), asked);
        }
    }
}
