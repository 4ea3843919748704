//! The promises, on SQLite. Those about transactions that are open at the same time have no meaning here:
//! there is one writer.

mod support;

use support::Lite;

postrider_conformance::conformance!(Lite::default());
