//! The promises, on MariaDB or MySQL, with publishers that see what is committed and with publishers that see one snapshot.

mod support;

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
