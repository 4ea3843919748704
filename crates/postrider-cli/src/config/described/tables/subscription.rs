//! Subscriptions, and when they try again.

use postrider::Retry;
use postrider::store::{Subscription, defaults};

use super::{BY_NAME, COUNT, LIST, TEXT, TIME, other, usual};
use crate::config::described::{Described, Usual};
use crate::config::subscription;

pub(super) const SUBSCRIPTION: Described = Described {
    place: "subscription",
    kind: None,
    head: "[[subscription]]",
    what: "A named reader of the log. Repeat the table for each subscription.",
    environment: false,
    settings: &[
        other("name", TEXT, "Name of the subscription. Required."),
        other("sink", TEXT, "Destination of its events: the NAME of a `[sink.NAME]`. Required."),
        usual(
            "streams",
            LIST,
            Usual::List(subscription::EVERYTHING),
            "Streams to deliver; `*` matches any characters.",
        ),
        usual(
            "types",
            LIST,
            Usual::List(subscription::EVERYTHING),
            "Event types to deliver; `*` matches any characters.",
        ),
        usual(
            "order",
            "`key`, `strict` or `none`",
            Usual::Text(subscription::ORDERS[0].0),
            "What a failing event blocks: later events of its key, its whole lane, or nothing.",
        ),
        usual(
            "lanes",
            COUNT,
            Usual::Count(Subscription::LANES),
            "Number of lanes: how many relays can share the subscription.",
        ),
        other("batch", COUNT, "Events per read. Default: 1000, or 5000 for Kafka."),
        usual(
            "start",
            "`beginning`, `now` or a time",
            Usual::Text(subscription::START),
            "Where a new subscription starts to read.",
        ),
        other("retry", BY_NAME, "When to retry a failed event; see below."),
        usual(
            "on_dead",
            "`skip` or `hold`",
            Usual::Text(subscription::ON_DEAD[0].0),
            "After an event died: `skip` goes on with the next event of its key, `hold` blocks the key until an operator acts.",
        ),
        usual(
            "while_unavailable",
            "`wait` or `expire`",
            Usual::Text(subscription::OUTAGES[0].0),
            "During an outage of the destination: `wait` does not count the time toward `max_age`, `expire` does.",
        ),
        usual(
            "concurrency",
            COUNT,
            Usual::Count(defaults::CONCURRENCY as u32),
            "Keys that are delivered at the same time. Within a key, events are delivered one by one.",
        ),
        usual(
            "timeout",
            TIME,
            Usual::Time(defaults::TIMEOUT),
            "Longest time that the destination may take for one event.",
        ),
        usual(
            "patience",
            TIME,
            Usual::Time(defaults::PATIENCE),
            "Longest time that a batch waits for its slowest events once all have started; it waits less if events are \
             usually faster. Slower events keep running and block only their own key. Has no effect with \
             `order = \"strict\"` or on Kafka sinks, where a batch waits for its slowest event.",
        ),
        usual(
            "longest_pause",
            TIME,
            Usual::Time(defaults::LONGEST_PAUSE),
            "Longest pause between two attempts to reach an unavailable destination.",
        ),
        usual(
            "replay",
            "`allow` or `forbid`",
            Usual::Text(subscription::REPLAYS[0].0),
            "Whether operators may replay it.",
        ),
    ],
};

pub(super) const RETRY: Described = Described {
    place: "subscription.retry",
    kind: None,
    head: "retry = { … }",
    what: "When to retry a failed event, in a `[[subscription]]`. Set `every`, or `schedule`, or exponential backoff with \
           `base`, `factor`, `max` and `jitter`. An event is dead after `max_attempts` or `max_age`, whichever comes first.",
    environment: false,
    settings: &[
        other("every", TIME, "Fixed pause between attempts."),
        other("schedule", LIST, "Pauses between attempts, one after the other; the last one repeats."),
        usual("base", TIME, Usual::Time(Retry::BASE), "First pause."),
        usual("factor", COUNT, Usual::Number(Retry::FACTOR), "Factor by which each pause grows."),
        usual("max", TIME, Usual::Time(Retry::MAX), "Longest pause."),
        usual(
            "jitter",
            COUNT,
            Usual::Number(Retry::JITTER),
            "Fraction by which a pause is randomly shortened or extended: 0 to 1.",
        ),
        usual(
            "max_attempts",
            COUNT,
            Usual::Count(Retry::ATTEMPTS),
            "Number of attempts, including the first. Unlimited if only `max_age` is set.",
        ),
        other("max_age", TIME, "An event is dead when this much time has passed since its first failure."),
    ],
};
