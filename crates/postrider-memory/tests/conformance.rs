//! The promises, in memory: those about transactions that are open at the same time as well.

mod support;

use support::Memory;

/// The promises that every store keeps.
mod every_store {
    use super::Memory;
    postrider_conformance::conformance!(Memory);
}

/// The promises about transactions that are open at the same time.
mod concurrent_writers {
    use super::Memory;
    postrider_conformance::conformance_of_concurrent_writers!(Memory);
}
