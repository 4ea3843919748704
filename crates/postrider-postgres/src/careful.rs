//! Queries that tolerate rows with invalid text, which would make PostgreSQL reject the whole result.

/// The text with every text of an event made sendable. Events are listed by the same columns everywhere; conditions, and the
/// keys that lanes are told by, stay as they are.
pub(crate) fn carefully(text: &str) -> String {
    let listed = |table: &str, cast: &str| {
        let names = ["stream", "event_type", "aggregate_type", "aggregate_id", "ordering_key"];
        let column = |name: &str| format!("{table}.{name}{cast}");
        let plain = [
            names.map(column).join(", ") + &format!(", {table}.sequence, {table}.payload,"),
            format!("{table}.content_type{cast}, {table}.content, {table}.headers,"),
        ];
        let sendable = |name: &str| format!("{{schema}}.sendable({table}.{name}) as {name}");
        let careful = [
            format!("{}, {table}.sequence, {},", names.map(sendable).join(", "), sendable("payload")),
            format!("{}, {}, {},", sendable("content_type"), sendable("content"), sendable("headers")),
        ];
        plain.into_iter().zip(careful)
    };
    // A list that goes on in the next line is the same list; a comment ends with its line.
    let lines = text.lines().map(|line| line.split_once("--").map_or(line, |(code, _)| code));
    let text = lines.flat_map(str::split_whitespace).collect::<Vec<_>>().join(" ");
    [("e", ""), ("e", "::text"), ("a", "")]
        .into_iter()
        .flat_map(|(table, cast)| listed(table, cast))
        .fold(text, |text, (plain, careful)| text.replace(&plain, &careful))
        .replace("select stream, count(*)", "select {schema}.sendable(stream) as stream, count(*)")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_statement_that_returns_events_has_a_careful_form() {
        for text in [
            include_str!("../sql/read.sql"),
            include_str!("../sql/read_as_of.sql"),
            include_str!("../sql/due.sql"),
            include_str!("../sql/open_deliveries.sql"),
            include_str!("../sql/recorded.sql"),
            include_str!("../sql/event.sql"),
            include_str!("../sql/events.sql"),
            include_str!("../sql/take_events.sql"),
        ] {
            let careful = carefully(text);
            let listed = text.matches("headers, e.occurred_at").count()
                + text.matches("headers, a.occurred_at").count();
            let listed = listed.max(1);
            for column in
                ["stream", "aggregate_id", "ordering_key", "payload", "content_type", "content", "headers"]
            {
                let found = careful.matches(&format!("as {column},")).count()
                    - text.matches(&format!("as {column},")).count();
                assert!(found >= listed, "{column}: {found} of {listed} in {careful}");
            }
        }
    }
}
