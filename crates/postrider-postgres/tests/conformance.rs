//! The promises, on PostgreSQL.

mod support;

use support::Pg;

postrider_conformance::conformance!(Pg::default());

mod concurrent_writers {
    use super::*;
    postrider_conformance::conformance_of_concurrent_writers!(Pg::default());
}
