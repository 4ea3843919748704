//! What holds of it.

use super::*;

fn read(input: &str) -> Result<Attributes> {
    Attributes::of(&syn::parse_str(input).expect("Rust"))
}

/// All the errors of an input, as the compiler would show them.
fn refusals(input: &str) -> Vec<String> {
    let error = read(input).err().expect("must be refused");
    error.into_iter().map(|error| error.to_string()).collect()
}

/// The only error of a struct with these attributes and two fields.
fn refusal(attributes: &str) -> String {
    let input = format!("#[event({attributes})] struct OrderPaid {{ order: i64, account: String }}");
    let mut errors = refusals(&input);
    assert_eq!(errors.len(), 1, "{errors:?}");
    errors.remove(0)
}

#[test]
fn what_is_said_is_read() {
    let read = read(
        r#"#[event(name = "Paid", version = 2, stream = "orders")]
           #[event(aggregate = "Order", id = order, key = account, sequenced, max_attempts = 5, crate = "a::b",)]
           struct OrderPaid { order: i64, account: String }"#,
    )
    .expect("valid");
    assert_eq!((read.name.as_str(), read.aggregate.as_str()), ("Paid", "Order"));
    assert_eq!((read.version, read.stream.as_deref()), (Some(2), Some("orders")));
    assert_eq!((read.sequenced, read.max_attempts), (true, Some(5)));
    assert_eq!(spelled(&read.id.member), "order");
    assert_eq!(read.key.map(|key| spelled(&key.member)).as_deref(), Some("account"));
    assert_eq!(written(&read.path), "a::b");
}

#[test]
fn what_is_not_said_is_left_to_the_trait() {
    let read = read(r#"#[event(aggregate = "Order", id = 0)] struct r#Paid(i64);"#).expect("valid");
    assert_eq!((read.name.as_str(), read.version, read.stream), ("Paid", None, None));
    assert!(read.key.is_none() && !read.sequenced && read.max_attempts.is_none());
    assert_eq!(written(&read.path), "::postrider");
}

#[test]
fn one_field_may_be_both_id_and_key() {
    let read =
        read(r#"#[event(aggregate = "Order")] struct Paid(u8, #[event(id, key)] u8);"#).expect("valid");
    assert_eq!(spelled(&read.id.member), "1");
    assert_eq!(read.key.map(|key| spelled(&key.member)).as_deref(), Some("1"));
}

#[test]
fn an_enum_and_a_union_are_sent_elsewhere() {
    let message = "`Event` must be derived on a struct; for an enum, use `NewEvent` or an `EventMapping`";
    assert_eq!(refusals("enum Paid { Card, Cash }"), [message]);
    assert_eq!(refusals("union Paid { card: u8 }"), [message.replace("an enum", "a union")]);
}

#[test]
fn all_that_is_missing_is_said_at_once() {
    assert!(refusal("id = order").starts_with("`aggregate` is required"));
    assert!(refusal("aggregate = \"Order\"").starts_with("`id` is required"));
    assert_eq!(refusals("struct OrderPaid { order: i64 }").len(), 2);
}

#[test]
fn an_unknown_word_is_answered_with_the_known_ones() {
    assert_eq!(
        refusal("nmae = \"Paid\""),
        "`nmae` is not known; on a struct it must be `name`, `version`, `stream`, `aggregate`, `id`, `key`, \
         `sequenced`, `max_attempts` or `crate`"
    );
    assert!(refusal("a::b").starts_with("`a::b` is not known; on a struct it must be"));
    assert_eq!(
        refusals("struct Paid { #[event(name)] order: i64 }"),
        ["`name` is not known; on a field it must be `id` or `key`"]
    );
}

#[test]
fn every_known_word_is_in_the_answer_and_given_only_once() {
    for (word, value) in [
        ("name", "= \"a\""),
        ("version", "= 1"),
        ("stream", "= \"a\""),
        ("aggregate", "= \"a\""),
        ("id", "= order"),
        ("key", "= order"),
        ("sequenced", ""),
        ("max_attempts", "= 1"),
        ("crate", "= \"a\""),
    ] {
        assert!(refusal("other").contains(&format!("`{word}`")), "{word}");
        assert_eq!(
            refusal(&format!("{word} {value}, {word} {value}")),
            format!("`{word}` must be given only once")
        );
    }
}

#[test]
fn a_field_is_not_marked_beside_another() {
    for twice in [
        "#[event(aggregate = \"Order\", id = a)] struct Paid { a: u8, #[event(id)] b: u8 }",
        "#[event(aggregate = \"Order\")] struct Paid { #[event(id)] a: u8, #[event(id)] b: u8 }",
    ] {
        assert_eq!(refusals(twice), ["`id` must be given only once"]);
    }
}

#[test]
fn a_field_that_does_not_exist_is_answered_with_those_that_do() {
    assert_eq!(refusal("id = ordr"), "there is no field `ordr`; OrderPaid has `order`, `account`");
    assert_eq!(refusal("key = 0"), "there is no field `0`; OrderPaid has `order`, `account`");
    assert_eq!(refusals("#[event(id = 1)] struct Paid(u8);"), ["there is no field `1`; Paid has `0`"]);
    assert_eq!(refusals("#[event(id = a)] struct Paid;"), ["there is no field `a`; Paid has no fields"]);
}

#[test]
fn a_number_out_of_range_is_refused() {
    assert_eq!(refusal("version = 0"), "`version` must be from 1 to 4294967295");
    assert_eq!(refusal("version = 4294967296"), "`version` must be from 1 to 4294967295");
    assert_eq!(refusal("max_attempts = 0"), "`max_attempts` must be from 1 to 2147483647");
    assert_eq!(refusal("max_attempts = 2147483648"), "`max_attempts` must be from 1 to 2147483647");
    assert_eq!(refusal("max_attempts = -1"), "`max_attempts` must be from 1 to 2147483647");
}

#[test]
fn a_name_that_no_table_could_keep_is_refused() {
    let (longest, longer) = ("x".repeat(LONGEST_NAME), "x".repeat(LONGEST_NAME + 1));
    for key in ["name", "stream", "aggregate"] {
        assert_eq!(refusal(&format!("{key} = \"\"")), format!("`{key}` must not be empty"));
        assert_eq!(
            refusal(&format!("{key} = \"{longer}\"")),
            format!("`{key}` must have at most 200 bytes, not 201")
        );
        assert!(refusal(&format!("{key} = \"a\\0\"")).contains("NUL"));
    }
    let named = |name: &str| format!("#[event(aggregate = \"Order\", id = 0)] struct {name}(u8);");
    read(&named(&longest)).expect("long enough");
    assert_eq!(refusals(&named(&longer)), ["`name` must have at most 200 bytes, not 201"]);
}

#[test]
fn the_longest_name_is_the_one_that_record_allows() {
    assert_eq!(LONGEST_NAME, postrider_core::Limits::NAME);
}

#[test]
fn a_value_of_the_wrong_kind_is_answered_with_an_example() {
    let text = "`name` must be text in quotes, as in `name = \"…\"`";
    assert_eq!(refusal("name = Paid"), text);
    assert_eq!(refusal("name"), text);
    assert_eq!(refusal("name(\"Paid\")"), text);
    assert_eq!(refusal("version = \"2\""), "`version` must be a whole number, as in `version = 2`");
    let field = "`id` must be the name of a field or its index, as in `id = order`";
    assert_eq!(refusal("id = \"order\""), field);
    assert_eq!(refusal("id = self.order"), field);
    assert_eq!(refusal("id = order.number"), field);
    assert_eq!(refusal("sequenced = true"), "`sequenced` must not have a value");
    assert_eq!(refusal("crate = \"a b\""), "`crate` must be the path of a crate, as in `postrider_core`");
    assert_eq!(refusals("struct Paid { #[event(id = order)] order: u8 }"), ["`id` must not have a value"]);
}
