//! The engine's promises, with real processes and real signals, on PostgreSQL, MariaDB and SQLite.

mod answers;
mod brokers;
mod deaths;
mod freezes;
mod kills;
mod outages;
mod pairs;
mod rounds;
mod stops;

/// The program that the relays run.
const RELAY_PROCESS: &str = env!("CARGO_BIN_EXE_relay_process");

/// Makes tests of functions that are generic over the store: one each on PostgreSQL, on MariaDB and on SQLite.
macro_rules! on_each {
    ($($name:ident),* $(,)?) => {
        mod on_postgres {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                super::$name::<postrider_trials::test_store_postgres::PgTestStore>().await;
            })*
        }

        mod on_mysql {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                super::$name::<postrider_trials::test_store_mysql::MyTestStore>().await;
            })*
        }

        mod on_sqlite {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                super::$name::<postrider_trials::test_store_sqlite::LiteTestStore>().await;
            })*
        }
    };
}

pub(crate) use on_each;
