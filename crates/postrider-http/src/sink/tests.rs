//! What holds of it.

use super::*;

#[test]
fn more_headers_than_a_request_can_have_are_the_trouble_of_their_event() {
    let many: Vec<_> = (0..33_000).map(|number| (format!("ce-h{number}"), "x".to_owned())).collect();
    let failure = header_map(&many).expect_err("too many");
    assert_eq!(failure.code, "header");
    assert!(failure.message.contains("too many for a request"), "{}", failure.message);
    assert_eq!(header_map(&many[..100]).expect("a hundred").len(), 100);
    let odd = [("ce-odd".to_owned(), "a\nb".to_owned())];
    assert!(header_map(&odd).expect_err("odd").message.contains("ce-odd"));
}
