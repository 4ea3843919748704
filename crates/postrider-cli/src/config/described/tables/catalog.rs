//! The events of the system as data.

use super::{BY_NAME, TEXT, other, usual};
use crate::config::catalog;
use crate::config::described::{Described, Usual};

pub(super) const CATALOG: Described = Described {
    place: "catalog",
    kind: None,
    head: "[catalog]",
    what: "Where the catalog of events is, and how events are named: for `postrider catalog`.",
    environment: true,
    settings: &[
        usual(
            "file",
            TEXT,
            Usual::Text(catalog::FILE),
            "File that the application writes with `Catalog::write`.",
        ),
        usual(
            "lock",
            TEXT,
            Usual::Text(catalog::LOCK),
            "File with every schema that events were recorded with.",
        ),
        other(
            "names",
            BY_NAME,
            "Convention of the names in each stream, as in `{ \"*\" = \"PascalPastTense\", \"commands.*\" = \"Commands\" }`. The conventions are `PascalPastTense`, `Commands`, `SCREAMING_SNAKE` and `domain.action.vN`, the last with a company's prefix if you want one (`acme.domain.action.vN`). If several patterns match a stream, the one with the most letters counts.",
        ),
    ],
};
