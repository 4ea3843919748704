//! The programs of a system: its own, and the binary `postrider`.

use std::env;
use std::path::PathBuf;
use std::process::Command;

use tokio::net::TcpListener;

/// This program again, for another of the system's processes. In a test, give it `env!("CARGO_BIN_EXE_…")` instead.
pub fn own() -> Command {
    Command::new(env::current_exe().unwrap_or_else(|error| panic!("this program has no path: {error}")))
}

/// The binary `postrider`, which stands beside the programs of the systems.
pub fn postrider() -> Command {
    Command::new(postrider_path())
}

/// Where the binary `postrider` is.
pub fn postrider_path() -> PathBuf {
    let own = env::current_exe().unwrap_or_else(|error| panic!("this program has no path: {error}"));
    // A test program is in `deps`, one folder further down.
    let path =
        own.ancestors().skip(1).take(2).map(|folder| folder.join("postrider")).find(|path| path.is_file());
    path.unwrap_or_else(|| {
        panic!("the binary postrider is missing beside {}: run `cargo build -p postrider-cli`", own.display())
    })
}

/// Sets up log lines on stderr for a process, as JSON when `LOG_JSON` is set.
pub fn logs() {
    let level =
        env::var("LOG_LEVEL").ok().and_then(|level| level.parse().ok()).unwrap_or(tracing::Level::INFO);
    let lines = tracing_subscriber::fmt().with_writer(std::io::stderr).with_max_level(level).with_ansi(false);
    let _ = if env::var_os("LOG_JSON").is_some() {
        lines.json().flatten_event(true).try_init()
    } else {
        lines.try_init()
    };
}

/// Serves HTTP on a free port of loopback (or on `LISTEN`), and says so on stdout: `listening on http://127.0.0.1:PORT`.
pub async fn serve(router: axum::Router) -> std::io::Result<()> {
    let address = env::var("LISTEN").unwrap_or_else(|_| "127.0.0.1:0".to_owned());
    let listener = TcpListener::bind(&address).await?;
    println!("listening on http://{}", listener.local_addr()?);
    axum::serve(listener, router).with_graceful_shutdown(crate::narrator::stopped()).await
}

/// The value of a variable that a process needs.
pub fn setting(name: &str) -> Result<String, String> {
    env::var(name).map_err(|_| format!("{name} must be set"))
}

/// A client of HTTP. It follows no redirect: what one service was asked is not asked of another one.
pub fn client() -> reqwest::Client {
    // A second installation is refused, and the first one stays.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).build();
    client.unwrap_or_else(|error| panic!("there is no client of HTTP: {error}"))
}
