//! `postrider health`: whether the relay on this machine is ready, for a container's health check.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use clap::Args;

use crate::Failure;
use crate::config::{Config, Problem};
use crate::endpoints::{RELAY, SETTINGS, settings_id};
use crate::output;

/// How long it may take to answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// The flags of `health`.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Ask this address instead of http.listen, for example the one in the relay's log
    #[arg(long, value_name = "IP:PORT")]
    address: Option<SocketAddr>,
    /// Print a JSON object
    #[arg(long)]
    json: bool,
}

/// Asks the relay's own `/readyz`, where `http.listen` says; whether it is ready. An answer counts only if it is a relay's, and
/// one's with these settings, if they have subscriptions: another one may have been first at that address.
pub(crate) async fn run(config: &Config, arguments: &Arguments) -> Result<bool, Failure> {
    let address = reached(match arguments.address {
        Some(address) => address,
        None => set(config)?,
    });
    // Who names an address names the relay.
    let expected = settings_id(config).filter(|_| arguments.address.is_none());
    let (ready, said) = match asked(address, expected.as_deref()).await {
        Ok((is_ready, said)) => (is_ready, said),
        Err(Unanswered { what, is_lost }) => {
            let usual = arguments.address.is_none() && config.listen.is_some_and(|listen| !listen.is_set);
            let hint = "; if its port was taken, the relay listens on another and logs it: set http.listen for both, or pass \
                        that address with --address";
            (false, if is_lost && usual { format!("{what}{hint}") } else { what })
        }
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

/// Where the settings say that the relay listens.
fn set(config: &Config) -> Result<SocketAddr, Problem> {
    match config.listen.map(|listen| listen.address) {
        None => Err(Problem::new(
            "http.listen is \"off\", so the relay has no /readyz; set http.listen to an address",
        )),
        Some(address) if address.port() == 0 => {
            let what = "http.listen has port 0, so the port of the relay is unknown; set a fixed port, or pass --address with the \
                        address that the relay logs";
            Err(Problem::new(what))
        }
        Some(address) => Ok(address),
    }
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

/// Why there is no answer of the relay.
struct Unanswered {
    what: String,
    /// Whether the relay may be somewhere else.
    is_lost: bool,
}

/// Whether it is ready, and what it says; or why it could not be asked.
async fn asked(address: SocketAddr, expected: Option<&str>) -> Result<(bool, String), Unanswered> {
    let unanswered = |what: String, is_lost| Unanswered { what, is_lost };
    let client = postrider::http::client().map_err(|error| unanswered(error.message().to_owned(), false))?;
    let answer = client.get(format!("http://{address}/readyz")).timeout(PATIENCE).send().await;
    let answer = answer.map_err(|error| match error {
        error if error.is_timeout() => unanswered(format!("it did not answer within {PATIENCE:?}"), true),
        error if error.is_connect() => unanswered("connection refused".to_owned(), true),
        _ => unanswered("the answer is not that of a Postrider relay".to_owned(), true),
    })?;
    if !answer.headers().contains_key(RELAY) {
        return Err(unanswered("the server at this address is not a Postrider relay".to_owned(), true));
    }
    let settings = answer.headers().get(SETTINGS).and_then(|value| value.to_str().ok());
    if expected.is_some_and(|expected| settings != Some(expected)) {
        let what = "the relay at this address does not match these settings; its database, its subscriptions and its \
                    name must be the same";
        return Err(unanswered(what.to_owned(), true));
    }
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

    /// It is no relay, and the relay may have taken another port.
    #[tokio::test]
    async fn who_accepts_and_says_nothing_may_have_the_port_of_the_relay() {
        let silent = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = silent.local_addr().expect("its address");
        let Err(unanswered) = asked(address, None).await else { panic!("nobody answers") };
        assert_eq!((unanswered.what.as_str(), unanswered.is_lost), ("it did not answer within 5s", true));
    }
}
