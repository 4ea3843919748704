//! Settings that are wrong, and what is said of each.

use super::*;

/// Files, and what is said of each.
type Cases = Vec<(String, &'static [&'static str])>;

/// The store, the relay, its log and its endpoints.
fn of_the_store_and_the_relay() -> Cases {
    vec![
        ("[store\n".into(), &["line 1"]),
        ("a = 1\n".into(), &["a: there is no such setting"]),
        ("[stroe]\nurl = \"x\"\n".into(), &["stroe: there is no such setting", "\"store\""]),
        ("[store]\nurll = \"sqlite:x\"\n".into(), &["store.urll", "\"url\""]),
        ("[store]\nurl = \"oracle://x\"\n".into(), &["store.url", "postgres://"]),
        ("[store]\nurl = [1]\n".into(), &["store.url: it must be text, not a list"]),
        ("[store]\nurl = \"env:NOT_THERE\"\n".into(), &["store.url", "NOT_THERE is not set"]),
        (
            "[store]\nurl = \"file:/nowhere/at/all\"\n".into(),
            &["store.url", "/nowhere/at/all", "does not exist"],
        ),
        (
            "[store]\nurl = \"postgres://ada:ge@heim@db/shop\"\n".into(),
            &["store.url: the user or password contains an unescaped @; write it as %40"],
        ),
        (
            "[store]\nurl = \"postgres://ada:ge#heim@db/shop\"\n".into(),
            &["store.url: the user or password contains an unescaped #; write it as %23"],
        ),
        (
            "[store]\nurl = \"postgres://ada@db/shop?sslmod=require\"\n".into(),
            &["store.url: unknown parameter \"sslmod\"; did you mean \"sslmode\"?"],
        ),
        (
            "[store]\nurl = \"postgres://ada@db/shop?channel_binding=require\"\n".into(),
            &["store.url: its channel_binding=require can't be met", "write channel_binding=prefer"],
        ),
        (
            "[store]\nurl = \"postgres://db/shop\"\nlisten_url = \"postgres://db/shop?pgbouncer=true\"\n"
                .into(),
            &["store.listen_url: it must be", "the URL of the database itself"],
        ),
        ("[store]\nconnections = 1\n".into(), &["store.connections", "2 or more"]),
        ("[store]\nbell = \"maybe\"\n".into(), &["store.bell", "true or false"]),
        ("store = 3\n".into(), &["store: it must be a table", "a number"]),
        ("[relay]\nlease = 30\n".into(), &["relay.lease", "\"30\" is not a duration", "\"5m\""]),
        ("[relay]\nleese = \"30s\"\n".into(), &["relay.leese", "\"lease\""]),
        ("[relay]\nlease = \"1ms\"\n".into(), &["relay.lease", "it must be between 100ms and 1d"]),
        ("[http]\nlisten = \"everywhere\"\n".into(), &["http.listen", "127.0.0.1:7678"]),
        ("[log]\nformat = \"xml\"\n".into(), &["log.format", "\"human\", \"json\""]),
        (
            "[log]\nlevel = \"postrider=loud\"\n".into(),
            &["log.level: \"postrider=loud\" is not a log level", "info"],
        ),
        ("[log]\nlevel = \"inof\"\n".into(), &["log.level: \"inof\" is not a log level", "info"]),
        ("[store]\nurl = \"postgres://h:port/db\"\n".into(), &["store.url", "is not a valid database URL"]),
        ("[store]\nurl = \"postgres://h/db\"\nschema = \"\"\n".into(), &["store.schema"]),
        ("[relay]\nname = \"\"\n".into(), &["relay.name: it must not be empty"]),
    ]
}

/// Sinks.
fn of_sinks() -> Cases {
    vec![
        ("[sink.x]\n".into(), &["sink.x.type: it is required", "\"kafka\""]),
        ("[sink.x]\ntype = \"kafak\"\n".into(), &["sink.x.type", "not \"kafak\""]),
        ("[sink.x]\ntype = \"kafka\"\n".into(), &["sink.x.brokers: it is required", "127.0.0.1:9092"]),
        ("[sink.x]\ntype = \"kafka\"\nbrokers = \"b:1\"\ntopik = \"t\"\n".into(), &["sink.x.topik", "\"topic\""]),
        ("[sink.x]\ntype = \"kafka\"\nbrokers = \"b:1\"\ntopic = \"{strem}\"\n".into(), &["sink.x", "{strem}"]),
        ("[sink.x]\ntype = \"kafka\"\nbrokers = \"b:1\"\nproperties = { acks = \"1\" }\n".into(), &["sink.x", "acks is \"1\", but must be all"]),
        (
            "[sink.x]\ntype = \"kafka\"\nbrokers = \"b:1\"\nproperties = { \"linger.mss\" = \"1\" }\n".into(),
            &["sink.x", "linger.mss", "not a property"],
        ),
        (
            "[sink.x]\ntype = \"kafka\"\nbrokers = \"b:1\"\nproperties = { \"transactional.id\" = \"shop\" }\n".into(),
            &["sink.x", "transactional.id can't be set: Postrider does not use Kafka transactions"],
        ),
        (
            "[sink.x]\ntype = \"kafka\"\nbrokers = \"b:1\"\nproperties = { \"bootstrap.servers\" = \"c:1\" }\n".into(),
            &["sink.x", "bootstrap.servers", "can't be set"],
        ),
        (
            "[sink.x]\ntype = \"kafka\"\nbrokers = \"b:1\"\nsend_timeout = \"30s\"\n".into(),
            &["sink.x.send_timeout: 30s is too long for relay.lease = 30s", "set send_timeout to 12s or less", "1m15s or more"],
        ),
        (
            "[relay]\nlease = \"5s\"\n[sink.x]\ntype = \"kafka\"\nbrokers = \"b:1\"\nsend_timeout = \"10s\"\n".into(),
            &["sink.x.send_timeout: 10s is too long for relay.lease = 5s", "set send_timeout to 2s or less", "25s or more"],
        ),
        ("[sink.x]\ntype = \"http\"\nurl = \"https://h/\"\nauthority = \"/nowhere.pem\"\n".into(), &["sink.x", "can't read the certificate /nowhere.pem"]),
        ("[sink.x]\ntype = \"kafka\"\nbrokers = \"b:1\"\nuser = \"u\"\n".into(), &["sink.x.password: it is required"]),
        ("[sink.x]\ntype = \"http\"\nurl = \"ftp://x\"\n".into(), &["sink.x"]),
        ("[sink.x]\ntype = \"http\"\nurl = \"http://h/\"\nsecret = \"!\"\n".into(), &["sink.x.secret"]),
        (
            "[sink.x]\ntype = \"http\"\nurl = \"http://h/\"\nstatuses = { 204 = \"event\" }\n".into(),
            &["sink.x.statuses.204: it must be a status from 300 to 599"],
        ),
        (
            "[sink.x]\ntype = \"http\"\nurl = \"http://h/\"\nstatuses = { 404 = \"event\", 0404 = \"reject\" }\n".into(),
            &["sink.x.statuses.0404: it must be a status"],
        ),
        (
            "[sink.x]\ntype = \"http\"\nurl = \"http://h/\"\nstatuses = { 404 = \"mine\" }\n".into(),
            &["sink.x.statuses.404: it must be \"endpoint\", \"event\", \"retry\" or \"reject\", not \"mine\""],
        ),
        (
            "[sink.x]\ntype = \"http\"\nurl = \"http://h/\"\nlongest_retry_after = \"0s\"\n".into(),
            &["sink.x.longest_retry_after: it must be greater than 0"],
        ),
    ]
}

/// What sinks write.
fn of_formats() -> Cases {
    vec![
        (
            "[sink.x]\ntype = \"stdout\"\nattributes = [\"strem\"]\n".into(),
            &["sink.x.attributes: \"strem\" is not an optional attribute", "\"recordedtime\", \"schemaversion\", \"stream\""],
        ),
        (
            "[sink.x]\ntype = \"http\"\nurl = \"http://h/\"\nattributes = [\"stream\", \"time\"]\n".into(),
            &["sink.x.attributes: \"time\" is always written", "\"aggregatetype\""],
        ),
        (
            "[sink.x]\ntype = \"kafka\"\nbrokers = \"b:1\"\nformat = \"payload\"\nattributes = [\"stream\"]\n".into(),
            &["sink.x: the attribute \"stream\" can't be written", "use the format binary or structured"],
        ),
        (
            "[sink.x]\ntype = \"kafka\"\nbrokers = \"b:1\"\nformat = \"envelope\"\n".into(),
            &["sink.x.envelope: it is required with format = \"envelope\"", "payload = \"{payload}\""],
        ),
        (
            "[sink.x]\ntype = \"http\"\nurl = \"http://h/\"\nenvelope = { id = \"{id}\" }\n".into(),
            &["sink.x.envelope: it works only with format = \"envelope\"; set that, too"],
        ),
        (
            "[sink.x]\ntype = \"http\"\nurl = \"http://h/\"\nformat = \"envelope\"\nenvelope = { id = \"{event}\" }\n".into(),
            &["sink.x.envelope: the field \"id\"", "{event}"],
        ),
        (
            "[sink.x]\ntype = \"http\"\nurl = \"http://h/\"\nformat = \"envelope\"\nenvelope = { meta = { at = [1] } }\n".into(),
            &["sink.x.envelope.meta.at: it must be text, a number, true or false, or a table of such"],
        ),
        (
            "[sink.x]\ntype = \"kafka\"\nbrokers = \"b:1\"\nformat = \"envelope\"\nenvelope = { id = \"{id}\" }\nattributes = [\"stream\"]\n".into(),
            &["sink.x: the attribute \"stream\" can't be written", "the format envelope", "use the format binary or structured"],
        ),
    ]
}

/// Subscriptions.
fn of_subscriptions() -> Cases {
    let s = subscription;
    vec![
        ("[[subscription]]\nsink = \"out\"\n".into(), &["subscription[1].name: it is required"]),
        (
            format!("{SINKS}[[subscription]]\nname = \"s\"\nsink = \"otu\"\n"),
            &["subscription[s].sink", "\"out\""],
        ),
        (s("order = \"keys\""), &["subscription[s].order", "\"key\", \"strict\", \"none\""]),
        (s("lanes = 0"), &["subscription[s].lanes: it must be 1 or more"]),
        (s("lanes = 1000"), &["\"s\": lanes must be between 1 and 256, not 1000"]),
        (s("types = [\"a\\u0000\"]"), &["\"s\": a pattern of its filter must not contain a NUL"]),
        (
            format!("{SINKS}[[subscription]]\nname = \"\"\nsink = \"out\"\n"),
            &["a subscription's name must have 1 to"],
        ),
        (s("batch = -1"), &["subscription[s].batch", "1 or more"]),
        (s("streams = []"), &["subscription[s].streams", "it must not be empty"]),
        (s("streams = \"a\"\ntypes = 3"), &["subscription[s].types", "it must be a list"]),
        (s("start = \"yesterday\""), &["subscription[s].start", "\"beginning\""]),
        (s("retry = { schedule = [] }"), &["subscription[s].retry", "must have at least one pause"]),
        (
            s("retry = { schedule = [\"soon\"] }"),
            &["subscription[s].retry.schedule", "\"soon\" is not a duration"],
        ),
        (
            s("retry = { every = \"1s\", schedule = [\"1s\"] }"),
            &["subscription[s].retry", "every and schedule can't be used together"],
        ),
        (
            s("retry = { every = \"1s\", max_atempts = 3 }"),
            &["subscription[s].retry.max_atempts", "\"max_attempts\""],
        ),
        (s("timeout = \"0s\""), &["subscription[s].timeout", "it must be greater than 0"]),
        (
            format!("{}[[subscription]]\nname = \"s\"\nsink = \"out\"\n", s("")),
            &["two subscriptions are named \"s\""],
        ),
    ]
}

/// Retention.
fn of_retention() -> Cases {
    vec![
        ("[retention]\nat = \"25:00\"\n".into(), &["retention.at", "\"02:00\""]),
        ("[retention]\nmask = [\"card\"]\n".into(), &["retention.archive"]),
        ("[retention]\narchive = true\nmask = [\"card.\"]\n".into(), &["retention.mask", "\"card.\" is not a field name", "card.number"]),
        ("[retention]\nbatch = 0\n".into(), &["retention.batch: it must be between 1 and 100000"]),
        ("[retention]\nshare = 2\n".into(), &["retention.share: it must be between 0.01 and 1"]),
        ("[retention]\narchive = true\narchived = \"7d\"\n".into(), &["retention.archived", "shorter than delivered"]),
        ("[retention]\nzone = \"Asia/Soul\"\n".into(), &["retention.zone", "no time zone \"Asia/Soul\"", "Asia/Seoul"]),
        ("[retention]\nzone = \"in the east\"\n".into(), &["retention.zone", "IANA"]),
        (
            "[retention]\narchive = true\n[retention.target]\ntable = \"t\"\ncolumns = { a = \"id\" }\nexisting = \"replace\"\n".into(),
            &["retention.target.existing", "\"replace\"", "skip"],
        ),
        ("[retention]\narchive = true\n[retention.target]\ntable = \"t\"\n".into(), &["retention.target.columns", "event_id"]),
        ("[retention]\nby_month = true\n".into(), &["retention.archive", "by_month", "set it to true"]),
        (
            "[retention]\narchive = true\nby_month = true\n[retention.target]\ntable = \"t\"\ncolumns = { a = \"id\" }\n".into(),
            &["retention.by_month", "leave it out"],
        ),
        (
            "[retention]\narchive = true\n[retention.target]\ntable = \"t\"\ncolumns = { id = \"evnt_id\" }\n".into(),
            &["retention.target.columns.id", "\"evnt_id\" is not a field", "event_id"],
        ),
        (
            "[retention]\narchive = true\n[retention.target]\ntable = \"t\"\ncolumns = { a = \"payload\" }\n".into(),
            &["retention.target", "one column of t must store event_id"],
        ),
        (
            "[retention]\narchive = true\narchived = \"5y\"\n[retention.target]\ntable = \"t\"\ncolumns = { a = \"id\" }\n".into(),
            &["retention.archived", "Postrider never deletes from your table"],
        ),
    ]
}

/// Alerts, and who is told.
fn of_alerts() -> Cases {
    vec![
        ("[[alert]]\nto = [\"log\"]\n".into(), &["alert[1].when: it is required"]),
        ("[[alert]]\nwhen = \"undeliverd > 3\"\n".into(), &["alert[1].when", "undelivered"]),
        ("[[alert]]\nwhen = \"dead > many\"\n".into(), &["alert[1].when", "\"many\" is not a number"]),
        ("[[alert]]\nwhen = \"dead > 1\"\nto = [\"slak\"]\n[notify.slack]\ntype = \"slack\"\nurl = \"https://x\"\n".into(), &["alert[1].to", "\"slack\""]),
        (
            "[[alert]]\nwhen = \"undelivered > 2000000\"\n".into(),
            &["alert[1].when", "at most 1000000 undelivered events are counted", "never be reached"],
        ),
        ("[[alert]]\nwhen = \"undelivered_over(5m) > 1000000\"\n".into(), &["alert[1].when", "never be reached"]),
        ("[[alert]]\npreset = \"bank\"\n".into(), &["alert[1].preset", "ledger"]),
        (
            "[[alert]]\npreset = \"ledger\"\nto_when = { \"dead > 1\" = [\"log\"] }\n".into(),
            &["alert[1].to_when.\"dead > 1\"", "the preset \"ledger\" has no such condition; it must be one of \"event dies\", "],
        ),
        (
            "[[alert]]\npreset = \"ledger\"\nto_when = { \"event dies\" = [\"slack\"] }\n".into(),
            &["alert[1].to_when.\"event dies\"", "there is no [notify.slack]"],
        ),
        (
            "[[alert]]\npreset = \"ledger\"\nto_when = { \"unavailable_seconds > 60\" = [\"log\"], \"unavailable_seconds>60\" = [] }\n".into(),
            &["alert[1].to_when", "duplicate condition; conditions must be unique"],
        ),
        (
            "[[alert]]\nwhen = \"dead > 1\"\nto_when = { \"dead > 1\" = [\"log\"] }\n".into(),
            &["alert[1].to_when", "to_when is for the conditions of a preset"],
        ),
        ("[[alert]]\npreset = \"ledger\"\nto_when = [\"log\"]\n".into(), &["alert[1].to_when", "it must be a table"]),
        ("[[alert]]\nwhen = \"dead > 1\"\nof = \"every\"\n".into(), &["alert[1].of", "\"each\", \"all\""]),
        ("[[alert]]\nwhen = \"dead > 1\"\nof = \"all\"\nsubscription = \"s\"\n".into(), &["alert[1].of", "can't be used together"]),
        ("[[alert]]\nwhen = \"dead > 1\"\nrepeat = \"0s\"\n".into(), &["alert[1].repeat", "it must be greater than 0"]),
        (
            "[[alert]]\nwhen = \"dead > 1\"\n[[alert]]\nwhen = \"dead > 1\"\nsubscription = \"s\"\n".into(),
            &["alert[2].name", "another alert for each subscription is also named \"dead > 1\""],
        ),
        ("[[alert]]\nwhen = \"undelivered_over(5) > 1\"\n".into(), &["alert[1].when", "undelivered_over(5m)"]),
        ("[relay]\nalerts_every = \"1ms\"\n".into(), &["relay.alerts_every", "it must be between 1s and 1d"]),
        ("[notify.p]\ntype = \"webhook\"\nurl = \"https://\"\n".into(), &["notify.p.url", "https://host/path"]),
        ("[notify.p]\ntype = \"webhook\"\nurl = \"https://h/\"\ntoken = \"\\u0007\"\n".into(), &["notify.p.token", "not allowed in a header"]),
        ("[notify.p]\ntype = \"pagerduty\"\n".into(), &["notify.p.key: it is required"]),
        ("[notify.p]\ntype = \"slack\"\nurl = \"hooks\"\n".into(), &["notify.p.url", "https://"]),
    ]
}

#[test]
fn what_is_wrong_is_named_with_what_would_be_right() {
    let cases = [
        of_the_store_and_the_relay(),
        of_sinks(),
        of_formats(),
        of_subscriptions(),
        of_retention(),
        of_alerts(),
    ]
    .concat();
    for (text, words) in &cases {
        let sentence = complaint(text);
        for word in *words {
            assert!(sentence.contains(word), "{word:?} is missing for\n{text}\n{sentence}");
        }
    }
}
