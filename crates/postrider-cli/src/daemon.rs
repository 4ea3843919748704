//! `postrider relay`: the daemon.

use std::time::Duration;

use postrider::store::{Backoff, OutboxSource};
use postrider::{Relay, Running, asked_to_end};
use tokio::sync::watch;

use crate::config::{Config, Problem};
use crate::database::Database;
use crate::endpoints::{self, Pulse};
use crate::sinks::Ready;
use crate::{Failure, alerts, logging, retention};

/// The pauses while the database does not answer at start.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Runs until the process is asked to end, or a subscription's task has ended by itself.
pub(crate) async fn run(config: Config) -> Result<bool, Failure> {
    if config.readers.is_empty() {
        let what = "no [[subscription]] is configured; a relay needs at least one, and a [sink.NAME] for it";
        return Err(Problem::new(what).into());
    }
    logging::start(&config.log)?;
    if let Some(file) = config.file.as_ref().filter(|file| file.found) {
        tracing::info!("loaded the settings from {file}");
    }
    // What is wrong with a sink is found out before anything starts.
    for reader in &config.readers {
        if let Some(sink) = config.sinks.get(&reader.sink) {
            Ready::check(&config, &reader.sink, sink)?;
        }
    }
    let alerts = alerts::AlertMonitor::of(&config)?;
    let pulse = Pulse::new(&config)?;
    let (end, ended) = watch::channel(false);
    tokio::spawn(async move {
        asked_to_end().await;
        end.send_replace(true);
        told_again().await;
        std::process::exit(130);
    });
    let server = match config.listen {
        None => None,
        Some(listen) => {
            let listener = endpoints::bind(listen).await?;
            tracing::info!(address = %listener.local_addr()?, "serving /metrics, /healthz and /readyz");
            // The endpoints answer until the relay has stopped.
            let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
            let serving = endpoints::serve(listener, pulse.clone(), async move {
                let _ = stopped.await;
            });
            Some((stop, tokio::spawn(serving)))
        }
    };
    let worked = work(&config, &pulse, alerts, ended).await;
    if let Some((stop, serving)) = server {
        let _ = stop.send(());
        let _ = tokio::time::timeout(Duration::from_secs(1), serving).await;
    }
    worked.map(|()| true)
}

/// Completes at a second SIGTERM or SIGINT: then the relay ends at once; what is settled stays so, and the rest comes again. SIGHUP
/// doesn't count: for one terminal that is closed, the shell and the system send one each.
async fn told_again() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        if let Ok(mut terminate) = signal(SignalKind::terminate()) {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = tokio::signal::ctrl_c() => {}
            }
            return;
        }
    }
    let _ = tokio::signal::ctrl_c().await;
}

async fn work(
    config: &Config,
    pulse: &Pulse,
    alerts: Option<alerts::AlertMonitor>,
    mut ended: watch::Receiver<bool>,
) -> Result<(), Failure> {
    let Some(mut running) = start(config, &mut ended).await? else { return Ok(()) };
    let alerts = alerts.map(|alerts| tokio::spawn(alerts.run(ended.clone())));
    let daily = retention::Daily::of(config).map(|daily| tokio::spawn(daily.run(ended.clone())));
    pulse.started(&running);
    tracing::info!(subscriptions = config.readers.len(), "the relay is running");
    tell_systemd("READY=1");
    let failed = tokio::select! {
        _ = ended.wait_for(|ended| *ended) => None,
        error = running.failed() => Some(error),
    };
    pulse.stops();
    tell_systemd("STOPPING=1");
    if let Some(error) = failed {
        tracing::error!("{}; the relay exits so that its supervisor can restart it", error.message());
        let _ = running.stop().await;
        return Err(error.into());
    }
    tracing::info!("stopping: deliveries in flight finish, or are returned to the log");
    running.stop().await?;
    if let Some(alerts) = alerts {
        alerts::ended(alerts).await;
    }
    if let Some(daily) = daily {
        retention::ended(daily).await;
    }
    tracing::info!("stopped");
    Ok(())
}

/// Starts the relay; waits for a database that does not answer yet. Nothing if the process is asked to end meanwhile.
async fn start(config: &Config, ended: &mut watch::Receiver<bool>) -> Result<Option<Running>, Failure> {
    let mut backoff = Backoff::new(FIRST_PAUSE, LONGEST_PAUSE);
    let mut waiting = false;
    loop {
        let begun = tokio::select! {
            begun = begin(config) => begun,
            _ = ended.wait_for(|ended| *ended) => return Ok(None),
        };
        let error = match begun {
            Ok(running) => {
                if waiting {
                    tracing::info!("connected to the database");
                }
                return Ok(Some(running));
            }
            Err(failure) => failure,
        };
        // A server may come back; a file that is not there is not going to.
        let waits = !config.store.is_file()
            && error
                .downcast_ref::<postrider::Error>()
                .is_some_and(|error| matches!(error.kind(), postrider::ErrorKind::Unreachable));
        if !waits {
            return Err(error);
        }
        if !waiting {
            tracing::warn!("{error}; retrying until it answers");
            waiting = true;
        }
        tokio::select! {
            _ = ended.wait_for(|ended| *ended) => return Ok(None),
            () = tokio::time::sleep(backoff.next_delay()) => {}
        }
    }
}

async fn begin(config: &Config) -> Result<Running, Failure> {
    let database = Database::open(&config.store).await?;
    retention::check(&database, config).await?;
    match database {
        Database::Postgres(outbox) => relay(&outbox, config)?.start().await.map_err(Into::into),
        Database::Mysql(outbox) => relay(&outbox, config)?.start().await.map_err(Into::into),
        Database::Sqlite(outbox) => relay(&outbox, config)?.start().await.map_err(Into::into),
    }
}

fn relay<S: OutboxSource>(source: &S, config: &Config) -> Result<Relay<S>, Problem> {
    let settings = &config.relay;
    let mut relay = Relay::new(source)
        .lease(settings.lease)
        .poll_interval(settings.poll)
        .shutdown_grace(settings.grace)
        .figures_every(Some(settings.figures));
    if let Some(name) = &settings.name {
        relay = relay.owner(name);
    }
    for reader in &config.readers {
        let Some(sink) = config.sinks.get(&reader.sink) else { continue };
        let destination = sink.destination();
        let sink = Ready::make(config, &reader.sink, sink)?;
        relay = relay.subscribe(&reader.name, |subscriber| {
            let subscriber = subscriber
                .streams(reader.streams.clone())
                .types(reader.types.clone())
                .order(reader.order)
                .lanes(reader.lanes)
                .start(reader.start)
                .retry(reader.retry.clone())
                .on_dead(reader.on_dead)
                .replay(reader.replay)
                .while_unavailable(reader.while_unavailable)
                .concurrency(reader.concurrency)
                .timeout(reader.timeout)
                .patience(reader.patience)
                .longest_pause(reader.longest_pause);
            let subscriber = match reader.batch {
                Some(batch) => subscriber.batch(batch),
                None => subscriber,
            };
            sink.give(subscriber.shown("sink", destination))
        });
    }
    Ok(relay)
}

/// Tells systemd how the relay is doing, where it asked to be told.
fn tell_systemd(state: &str) {
    #[cfg(target_os = "linux")]
    if let Some(socket) = std::env::var_os("NOTIFY_SOCKET") {
        use std::os::linux::net::SocketAddrExt;
        use std::os::unix::ffi::OsStrExt;
        use std::os::unix::net::{SocketAddr, UnixDatagram};
        let bytes = socket.as_bytes();
        let address = match bytes.strip_prefix(b"@") {
            Some(name) => SocketAddr::from_abstract_name(name),
            None => SocketAddr::from_pathname(&socket),
        };
        let told =
            address.and_then(|address| UnixDatagram::unbound()?.send_to_addr(state.as_bytes(), &address));
        if let Err(error) = told {
            tracing::debug!(error = %error, "could not notify systemd");
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = state;
}
