//! The binary `postrider`: the only place that reads arguments.

use std::process::ExitCode;

mod demo;

const USAGE: &str = "\
postrider: a transactional outbox

  postrider demo       a small shop on an embedded database: what is recorded, delivered, lost (nothing)
  postrider help       this text
  postrider version    the version
";

#[tokio::main]
async fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["demo"] => match demo::run().await {
            Ok(true) => ExitCode::SUCCESS,
            Ok(false) => ExitCode::from(1),
            Err(failure) => {
                eprintln!("postrider: demo: {failure}");
                ExitCode::from(1)
            }
        },
        ["help" | "--help" | "-h"] => {
            print!("{USAGE}");
            ExitCode::SUCCESS
        }
        ["version" | "--version" | "-V"] => {
            println!("postrider {}", env!("CARGO_PKG_VERSION"));
            ExitCode::SUCCESS
        }
        [] => {
            eprint!("{USAGE}");
            ExitCode::from(2)
        }
        ["demo" | "help" | "version", extra, ..] => {
            eprintln!("postrider: `{extra}` is one word too many; `postrider help` shows what there is");
            ExitCode::from(2)
        }
        [first, ..] => {
            eprintln!("postrider: `{first}` is not a command here; `postrider help` lists them");
            ExitCode::from(2)
        }
    }
}
