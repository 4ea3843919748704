//! What a mapping, derived or not, makes of a value.

use postrider::store::Recordable;
use postrider::{Event, EventMapping, EventMappings, NewEvent, Payload};
use serde::Serialize;

/// An event of version 1 in the default stream, with nothing else said.
fn plain(name: &str, aggregate: &str, id: &str, payload: &str) -> NewEvent {
    let payload = Payload::Json(payload.into());
    NewEvent::new("events", name, aggregate, id, payload).with_header("schema_version", "1")
}

#[track_caller]
fn assert_becomes(value: &impl Recordable, expected: NewEvent) {
    let event = value.to_new_event().expect("a value of valid JSON").into_owned();
    let expected = expected.with_id(event.event_id);
    assert_eq!(event, expected);
}

#[test]
fn only_the_aggregate_and_its_id_have_to_be_said() {
    #[derive(Serialize, Event)]
    #[event(aggregate = "Order", id = order)]
    struct OrderPaid {
        order: i64,
    }

    assert_becomes(&OrderPaid { order: 7 }, plain("OrderPaid", "Order", "7", r#"{"order":7}"#));
}

#[test]
fn everything_can_be_said_on_the_struct() {
    #[derive(Serialize, Event)]
    #[event(name = "ORDER_PAID", version = 2, stream = "orders", aggregate = "Order")]
    #[event(id = order, key = account, sequenced, max_attempts = 5)]
    struct OrderPaid {
        order: i64,
        account: String,
    }

    let expected = plain("ORDER_PAID", "Order", "7", r#"{"order":7,"account":"A-1"}"#)
        .with_header("schema_version", "2")
        .ordered_by("A-1")
        .sequenced()
        .max_attempts(5);
    let expected = NewEvent { stream: "orders".into(), ..expected };
    assert_becomes(&OrderPaid { order: 7, account: "A-1".into() }, expected);
}

#[test]
fn the_id_and_the_key_can_be_marked_on_their_fields() {
    #[derive(Serialize, Event)]
    #[event(aggregate = "Order")]
    struct OrderPaid {
        #[event(key)]
        account: &'static str,
        #[event(id)]
        order: i64,
    }

    let expected = plain("OrderPaid", "Order", "7", r#"{"account":"A-1","order":7}"#).ordered_by("A-1");
    assert_becomes(&OrderPaid { account: "A-1", order: 7 }, expected);
}

#[test]
fn one_field_can_be_named_and_another_marked() {
    #[derive(Serialize, Event)]
    #[event(aggregate = "Order", id = r#type)]
    struct OrderPaid {
        r#type: char,
        #[event(key)]
        account: u8,
    }

    let expected = plain("OrderPaid", "Order", "x", r#"{"type":"x","account":1}"#).ordered_by("1");
    assert_becomes(&OrderPaid { r#type: 'x', account: 1 }, expected);
}

#[test]
fn the_fields_of_a_tuple_struct_are_named_by_their_index_or_marked() {
    #[derive(Serialize, Event)]
    #[event(aggregate = "Order", id = 1)]
    struct OrderPaid(#[event(key)] String, i64);

    let expected = plain("OrderPaid", "Order", "7", r#"["A-1",7]"#).ordered_by("A-1");
    assert_becomes(&OrderPaid("A-1".into(), 7), expected);
}

#[test]
fn a_struct_with_parameters_is_an_event_wherever_its_parts_allow_it() {
    #[derive(Serialize, Event)]
    #[event(aggregate = "Order", id = order)]
    struct Changed<'a, Id, Change: Copy = u8, const LANES: usize = 1>
    where
        Id: PartialEq,
    {
        order: Id,
        change: Change,
        #[event(key)]
        account: &'a str,
    }

    let value: Changed<'_, u64, bool, 3> = Changed { order: 7, change: true, account: "A-1" };
    let payload = r#"{"order":7,"change":true,"account":"A-1"}"#;
    assert_becomes(&value, plain("Changed", "Order", "7", payload).ordered_by("A-1"));

    // Not an event, and no error until somebody records it.
    let _ = Changed::<'_, Vec<u8>> { order: Vec::new(), change: 1, account: "A-1" };
}

#[test]
fn a_struct_written_by_a_macro_can_be_an_event() {
    macro_rules! happened {
        ($name:ident, $field:ident) => {
            #[derive(Serialize, Event)]
            #[event(aggregate = "Order", id = $field)]
            struct $name {
                $field: i64,
                #[event(key)]
                account: u8,
            }
        };
    }
    happened!(OrderPaid, order);

    let expected = plain("OrderPaid", "Order", "7", r#"{"order":7,"account":1}"#).ordered_by("1");
    assert_becomes(&OrderPaid { order: 7, account: 1 }, expected);
}

#[test]
fn a_crate_that_depends_on_the_core_only_says_where_the_trait_is() {
    #[derive(Serialize, Event)]
    #[event(crate = "postrider_core", aggregate = "Order", id = 0)]
    struct OrderPaid(i64);

    assert_becomes(&OrderPaid(7), plain("OrderPaid", "Order", "7", "7"));
}

#[test]
fn the_trait_is_looked_for_only_where_the_struct_says_that_it_is() {
    mod elsewhere {
        pub(super) trait Event {
            const NAME: &'static str;
            const AGGREGATE: &'static str;
            fn aggregate_id(&self) -> String;
        }
    }

    // An event of that other trait, and of no other. Without a doc comment: that trait has no summary.
    #[derive(Event)]
    #[event(crate = "elsewhere", aggregate = "Order", id = 0)]
    struct OrderPaid(i64);

    let id = elsewhere::Event::aggregate_id(&OrderPaid(7));
    let parts = [<OrderPaid as elsewhere::Event>::NAME, <OrderPaid as elsewhere::Event>::AGGREGATE, &id];
    assert_eq!(parts, ["OrderPaid", "Order", "7"]);
}

/// What happens, in the words of the business: it knows of no outbox.
mod domain {
    use serde::Serialize;

    #[derive(Serialize)]
    pub(crate) struct LedgerPosted {
        pub(crate) transaction: u64,
        pub(crate) account: String,
    }
}

/// How the domain is recorded.
mod adapter {
    use super::domain::LedgerPosted;

    impl postrider::Event for LedgerPosted {
        const NAME: &'static str = "LEDGER_POSTED";
        const VERSION: u32 = 3;
        const AGGREGATE: &'static str = "Transaction";
        const SEQUENCED: bool = true;

        fn aggregate_id(&self) -> String {
            format!("T-{}", self.transaction)
        }

        fn ordering_key(&self) -> Option<String> {
            Some(self.account.clone())
        }
    }
}

fn posted() -> (domain::LedgerPosted, NewEvent) {
    let value = domain::LedgerPosted { transaction: 9, account: "A-1".into() };
    let event = plain("LEDGER_POSTED", "Transaction", "T-9", r#"{"transaction":9,"account":"A-1"}"#);
    (value, event.with_header("schema_version", "3").ordered_by("A-1").sequenced())
}

#[test]
fn a_pure_struct_is_mapped_by_hand_in_an_adapter_module() {
    let (value, expected) = posted();
    assert_becomes(&value, expected);
}

#[test]
fn a_struct_is_mapped_at_run_time_by_a_catalog_entry() {
    let catalog = EventMappings::new().with(
        EventMapping::new("LEDGER_POSTED", "Transaction", |posted: &domain::LedgerPosted| {
            format!("T-{}", posted.transaction)
        })
        .version(3)
        .ordering_key(|posted: &domain::LedgerPosted| posted.account.clone())
        .sequenced(),
    );
    let (value, expected) = posted();
    assert_becomes(&catalog.event(&value).expect("an entry"), expected);
}
