//! The promises, on MariaDB or MySQL, with publishers that see what is committed and with publishers that see one snapshot.

mod support;

use postrider_conformance::promises::relays;
use support::My;

mod repeatable_read {
    use super::*;
    postrider_conformance::conformance!(My::default());

    mod concurrent_writers {
        use super::*;
        postrider_conformance::conformance_of_concurrent_writers!(My::default());
    }
}

mod read_committed {
    use super::*;
    postrider_conformance::conformance!(My { isolation: "read committed", ..My::default() });

    mod concurrent_writers {
        use super::*;
        postrider_conformance::conformance_of_concurrent_writers!(My {
            isolation: "read committed",
            ..My::default()
        });
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_what_no_relay_has_is_said_to_be_unread() {
    relays::only_what_no_relay_has_is_said_to_be_unread(&My::default()).await;
}
