//! What leaves the log, and when.

use postrider::store::Pacing;

use super::{BY_NAME, COUNT, FLAG, LIST, TEXT, TIME, other, usual};
use crate::config::described::{Described, Usual};
use crate::config::retention;

pub(super) const RETENTION: Described = Described {
    place: "retention",
    kind: None,
    head: "[retention]",
    what: "When events leave the log, and where they go.",
    environment: true,
    settings: &[
        usual(
            "delivered",
            TIME,
            Usual::Time(retention::DELIVERED),
            "How long events stay in the log after every subscription has settled them.",
        ),
        usual(
            "archive",
            FLAG,
            Usual::Flag(retention::ARCHIVE),
            "Move these events to the archive. With `false` they are deleted.",
        ),
        other(
            "archived",
            TIME,
            "How long archived events are kept after they were recorded, as in `5y`; they are dropped in whole months. Default: forever.",
        ),
        usual(
            "inbox",
            TIME,
            Usual::Time(retention::INBOX),
            "How long inboxes remember the events that were handled.",
        ),
        usual(
            "at",
            "time of day",
            Usual::TimeOfDay(retention::AT),
            "When retention runs, on one of the relays. A missed run happens as soon as a relay is running again.",
        ),
        usual(
            "zone",
            TEXT,
            Usual::Text(retention::ZONE),
            "Time zone of `at`: a name of the IANA database, as in `Asia/Seoul`. If daylight saving skips the time, retention runs right after the change; if the time occurs twice, it runs once.",
        ),
        usual("batch", COUNT, Usual::Count(Pacing::USUAL.batch), "Rows per batch."),
        usual("pause", TIME, Usual::Time(Pacing::USUAL.pause), "Shortest pause between two batches."),
        usual(
            "share",
            "number",
            Usual::Number(Pacing::USUAL.share),
            "Fraction of the time that retention may work. With 0.25 it pauses for 90 ms after a batch that took 30 ms.",
        ),
        other(
            "mask",
            LIST,
            "Payload fields to replace with `\"***\"` in the archive: a name at any depth (`email`), or a path (`card.number`, `*.phone`). A payload that is not JSON is archived as an empty one.",
        ),
        usual(
            "by_month",
            FLAG,
            Usual::Flag(retention::BY_MONTH),
            "Partition the archive by the month of recording, on MariaDB and MySQL. On PostgreSQL it always is.",
        ),
        other("target", BY_NAME, "A table of your own instead of the archive; see below."),
    ],
};

pub(super) const TARGET: Described = Described {
    place: "retention.target",
    kind: None,
    head: "[retention.target]",
    what: "A table of your own that receives archived events, in the transaction that removes them from the log. Postrider only inserts into it, as the relay's role (`grant insert`). `postrider events` does not search it.",
    environment: false,
    settings: &[
        other("table", TEXT, "Table name, as in `audit.events`. Case-sensitive."),
        other(
            "columns",
            BY_NAME,
            "Its columns and the event fields to store in them, as in `{ id = \"event_id\", body = \"payload\" }`: `id`, `event_id`, `stream`, `event_type`, `aggregate_type`, `aggregate_id`, `ordering_key`, `sequence`, `payload`, `content_type`, `content`, `headers`, `occurred_at`, `recorded_at`, `archived_at`.",
        ),
        usual(
            "existing",
            "`fail` or `skip`",
            Usual::Text(retention::EXISTING[0].0),
            "What happens if the table already has the event: `fail` fails the batch and retries it, `skip` leaves the row as it is, for a table that a subscriber also fills. With `skip` the column that stores `event_id` must be unique, and the relay's role needs `select` on it.",
        ),
    ],
};
