//! Types that hold themselves: trees, and expressions in both taggings.

use super::*;

changes! {
    a_tree_gets_an_optional_field:
        { pub struct Payload { size: u8, left: Option<Box<Payload>>, right: Option<Box<Payload>> } } =>
        { pub struct Payload { size: u8, note: Option<String>, left: Option<Box<Payload>>, right: Option<Box<Payload>> } }
        breaks Nobody;
    a_tree_gets_a_required_field:
        { pub struct Payload { size: u8, left: Option<Box<Payload>>, right: Option<Box<Payload>> } } =>
        { pub struct Payload { size: u8, name: String, left: Option<Box<Payload>>, right: Option<Box<Payload>> } }
        breaks NewReader at "name";
    a_field_of_a_tree_changes_its_type:
        { pub struct Payload { size: u8, left: Option<Box<Payload>>, right: Option<Box<Payload>> } } =>
        { pub struct Payload { size: String, left: Option<Box<Payload>>, right: Option<Box<Payload>> } }
        breaks Both at "size";
    a_branch_of_a_tree_must_be_there:
        { pub struct Node { size: u8, left: Option<Box<Node>>, right: Option<Box<Node>> } pub struct Payload { root: Option<Node> } } =>
        { pub struct Node { size: u8, left: Option<Box<Node>>, right: Option<Box<Node>> } pub struct Payload { root: Node } }
        breaks NewReader at "root";
    an_expression_with_a_tag_gets_a_variant:
        {
            #[serde(tag = "op")]
            pub enum Payload { Add { left: Box<Payload>, right: Box<Payload> }, Number { value: u64 } }
        } =>
        {
            #[serde(tag = "op")]
            pub enum Payload {
                Add { left: Box<Payload>, right: Box<Payload> },
                Divide { left: Box<Payload>, right: Box<Payload> },
                Number { value: u64 },
            }
        } breaks OldReader;
    a_number_of_an_expression_with_a_tag_changes_its_type:
        {
            #[serde(tag = "op")]
            pub enum Payload { Add { left: Box<Payload>, right: Box<Payload> }, Number { value: u64 } }
        } =>
        {
            #[serde(tag = "op")]
            pub enum Payload { Add { left: Box<Payload>, right: Box<Payload> }, Number { value: String } }
        } breaks Both at "value";
    an_expression_gets_a_variant:
        { pub enum Payload { Add { left: Box<Payload>, right: Box<Payload> }, Number(u64) } } =>
        {
            pub enum Payload {
                Add { left: Box<Payload>, right: Box<Payload> },
                Divide { left: Box<Payload>, right: Box<Payload> },
                Number(u64),
            }
        } breaks OldReader;
    an_expression_gets_an_optional_field:
        { pub enum Payload { Add { left: Box<Payload>, right: Box<Payload> }, Number { value: u64 } } } =>
        {
            pub enum Payload {
                Add { left: Box<Payload>, right: Box<Payload>, note: Option<String> },
                Number { value: u64 },
            }
        } breaks Nobody;
}

#[derive(Serialize, serde::Deserialize, schemars::JsonSchema)]
struct Tree<T> {
    size: T,
    left: Option<Box<Tree<T>>>,
    right: Option<Box<Tree<T>>>,
}

#[test]
fn the_example_of_a_tree_is_its_smallest_and_each_change_is_said_once() {
    let report = compared::<Tree<u8>, Tree<String>>();
    let examples: Vec<_> = report.findings.iter().map(|finding| finding.counterexample.clone()).collect();
    let smallest = |size: Value| Some(serde_json::json!({ "size": size, "left": null, "right": null }));
    assert_eq!(examples, [smallest(1.into()), smallest("text".into())], "{report}");
}

#[test]
fn the_example_of_a_list_of_one_link_is_its_smallest_and_an_absent_text_is_no_better_than_one() {
    #[derive(Serialize, serde::Deserialize, schemars::JsonSchema)]
    struct Link {
        note: Option<String>,
        next: Option<Box<Link>>,
    }
    assert_eq!(
        Schema::new(&schema::<Link>().writes).sample(),
        serde_json::json!({ "note": "text", "next": null })
    );
}

/// Twelve parts of the same type: of the eight levels that are looked at, the last alone would have 12 to the power of 8 values.
#[derive(Serialize, serde::Deserialize, schemars::JsonSchema)]
enum Dozen<T> {
    #[rustfmt::skip]
    All {
        a: Box<Dozen<T>>, b: Box<Dozen<T>>, c: Box<Dozen<T>>, d: Box<Dozen<T>>, e: Box<Dozen<T>>, f: Box<Dozen<T>>,
        g: Box<Dozen<T>>, h: Box<Dozen<T>>, i: Box<Dozen<T>>, j: Box<Dozen<T>>, k: Box<Dozen<T>>, l: Box<Dozen<T>>,
    },
    One(T),
}

#[test]
fn a_type_with_a_dozen_parts_of_itself_has_a_bounded_variety_of_each_part() {
    let writes = schema::<Dozen<u8>>().writes;
    let values = Schema::new(&writes).variety();
    assert!(values.len() <= 5_000, "{}", values.len());
    for part in ["a", "l"] {
        let is_other = |value: &&Value| value["All"][part]["One"] == 255;
        assert!(values.iter().any(|value| is_other(&value)), "{part}");
    }
    let report = compared::<Dozen<u8>, Dozen<String>>();
    assert_eq!(report.errors(), 2, "{report}");
}
