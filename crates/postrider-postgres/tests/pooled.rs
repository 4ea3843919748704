//! The promises and the engine behind a PgBouncer in transaction mode: everything that the tests do goes through it, but for what
//! the suite itself asks. Stores listen at the server; the engine's relays have nothing to listen at, and poll.

mod support;

use support::Pg;

fn pooled() -> Pg {
    Pg { pooled: true, ..Pg::default() }
}

postrider_conformance::conformance!(pooled());

mod concurrent_writers {
    use super::*;
    postrider_conformance::conformance_of_concurrent_writers!(pooled());
}

mod at_work {
    use async_trait::async_trait;
    use postrider_conformance::engine::{Fixture, Statements};
    use postrider_core::Clock;
    use postrider_postgres::Outbox;
    use sqlx::PgConnection;
    use tokio::sync::Mutex;

    use crate::support::PgLog;

    /// Keeps the logs it made until the test is over.
    #[derive(Default)]
    struct Server(Mutex<Vec<PgLog>>);

    #[async_trait]
    impl Fixture for Server {
        type Outbox = Outbox;

        async fn outbox(&self, clock: Clock) -> Outbox {
            let log = super::pooled().pg_log(clock).await;
            let outbox = log.outbox.clone();
            self.0.lock().await.push(log);
            outbox
        }
    }

    #[async_trait]
    impl Statements for Server {
        async fn run(connection: &mut PgConnection, statement: &'static str) -> Result<(), String> {
            sqlx::raw_sql(statement).execute(connection).await.map(|_| ()).map_err(|error| error.to_string())
        }
    }

    postrider_conformance::engine!(Server::default());
    postrider_conformance::engine_on_sql!(Server::default());
}
