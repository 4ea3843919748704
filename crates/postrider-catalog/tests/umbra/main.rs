//! Umbra's events: their names pass, and every output says who publishes and receives them (U8, U15).

mod catalog;

use std::collections::BTreeSet;

use catalog::{CONTEXTS, umbra};
use postrider_catalog::{Convention, problems, render};

/// U8.
#[test]
fn the_catalog_has_the_events_and_the_routes_of_the_document() {
    let umbra = umbra();
    let counts: Vec<(&str, usize)> =
        CONTEXTS.iter().map(|context| (context.name, context.events.len())).collect();
    let expected =
        [("guild", 4), ("billing", 10), ("licensing", 5), ("recovery", 7), ("member", 2), ("identity", 2)];
    assert_eq!(counts, expected);
    assert_eq!(umbra.events.len(), 30);
    assert_eq!(umbra.events.iter().map(|event| umbra.subscribers_of(event).count()).sum::<usize>(), 55);
    let received = |name: &str| {
        let subscriber = umbra.subscribers.iter().find(|subscriber| subscriber.name == name).expect(name);
        umbra.events.iter().filter(|event| subscriber.receives(event)).count()
    };
    assert_eq!(["licensing", "billing", "notification", "audit"].map(received), [9, 3, 13, 30]);
}

/// U15.
#[test]
fn every_name_is_in_the_past_tense() {
    for event in umbra().events {
        assert_eq!(
            Convention::PascalPastTense.check(&event.name).map_err(|refusal| refusal.to_string()),
            Ok(())
        );
    }
}

#[test]
fn nothing_is_odd() {
    assert_eq!(problems(&umbra()), []);
}

#[test]
fn the_page_has_a_table_per_stream_and_a_section_per_event() {
    let page = render::markdown(&umbra());
    assert!(page.starts_with("# Events of Umbra\n\n30 events in 6 streams, 4 subscribers, 55 routes from an event to a subscriber.\n"));
    let sections = page.lines().filter(|line| line.starts_with("### ")).count();
    assert_eq!((page.matches("\n## Stream ").count(), sections), (6, 30));
    for line in [
        "| [`BotKicked`](#botkicked) | 1 | The bot was thrown out of a guild. | `guild` | `guild` | `audit`, `billing`, `licensing` |",
        "- Follow-up: `licensing` records [`LicenseSuspended`](#licensesuspended).",
        "- Follows from [`BotKicked`](#botkicked): `licensing` records it.",
        "| `retry_count` | whole number, 0 or more | yes | How often the charge has failed. |",
        "| `suspects` | list of text | yes | The users who may have done it. |",
    ] {
        assert!(page.lines().any(|found| found == line), "{line}\nis missing in\n{page}");
    }
}

#[test]
fn every_link_of_the_page_leads_to_a_heading() {
    let page = render::markdown(&umbra());
    let headings: BTreeSet<String> =
        page.lines().filter_map(|line| line.strip_prefix("### ")).map(str::to_lowercase).collect();
    let links: BTreeSet<String> =
        page.split("](#").skip(1).filter_map(|rest| Some(rest.split_once(')')?.0.to_owned())).collect();
    assert_eq!(headings, links);
}

#[test]
fn the_picture_has_every_event_and_every_follow_up() {
    let picture = render::mermaid(&umbra());
    assert!(picture.starts_with("flowchart LR\n"), "{picture}");
    assert_eq!(picture.matches(":::event").count(), 30);
    assert_eq!(picture.matches("subgraph ").count(), 6);
    assert_eq!(picture.matches(" -.-> ").count(), 11);
    assert_eq!(picture.matches(" (all to audit)").count(), 6, "audit receives all that there is");
    for line in [
        "e_BotKicked --> h_licensing_BotKicked",
        "h_licensing_BotKicked -.-> e_LicenseSuspended",
        "e_PaymentFailed --> r_billing_notification",
    ] {
        assert!(picture.lines().any(|found| found.trim() == line), "{line}\nis missing in\n{picture}");
    }
}

#[test]
fn the_folder_has_a_page_per_domain_service_and_event() {
    let files = render::event_catalog(&umbra());
    let text = |path: &str| &files.iter().find(|file| file.path == path).expect(path).text;
    let pages = |start: &str| {
        files.iter().filter(|file| file.path.starts_with(start) && file.path.ends_with("index.mdx")).count()
    };
    assert_eq!((pages("domains/"), pages("services/")), (6 + 30, 8));
    assert_eq!(files.iter().filter(|file| file.path.ends_with("schema.json")).count(), 30);
    let billing = text("services/billing/index.mdx");
    assert!(billing.contains("sends:\n  - id: \"BillingKeyDeleted\"\n    version: 1.0.0\n"), "{billing}");
    assert!(billing.contains("receives:\n  - id: \"BillingKeyDeleted\"\n"), "{billing}");
    let kicked = text("domains/guild/events/BotKicked/index.mdx");
    assert!(kicked.starts_with(
        "---\nid: \"BotKicked\"\nname: \"BotKicked\"\nversion: 1.0.0\nsummary: \"The bot was thrown out of a guild.\"\nschemaPath: schema.json\n---\n"
    ), "{kicked}");
}

#[test]
fn the_file_is_the_same_in_whatever_order_it_was_built() {
    let mut turned = umbra();
    turned.events.reverse();
    turned.subscribers.reverse();
    let file = render::json(&umbra());
    assert_eq!(file, render::json(&turned));
    let read: postrider_catalog::CatalogFile = serde_json::from_str(&file).expect("a catalog");
    assert_eq!(read.events, umbra().events);
    for output in [render::markdown, render::mermaid, render::asyncapi] {
        assert_eq!(output(&umbra()), output(&turned));
    }
    assert_eq!(render::event_catalog(&umbra()), render::event_catalog(&turned));
}
