//! The lengths of files and functions, and the scanner that finds them.

use xtask::sizes::{self, FILE_LINES, FUNCTION_LINES, Function};

#[test]
fn no_file_has_more_than_400_lines_and_no_function_more_than_60() {
    let found = sizes::too_long().expect("the files of the workspace");
    assert!(found.is_empty(), "too long, look for the second noun or step:\n{}", found.join("\n"));
}

/// A function of so many lines.
fn planted(lines: usize) -> String {
    format!("fn planted() {{\n{}}}\n", "    step();\n".repeat(lines - 2))
}

#[test]
fn a_file_or_a_function_that_is_too_long_is_found() {
    assert_eq!(sizes::findings("a.rs", &planted(FUNCTION_LINES)), [""; 0]);
    assert_eq!(
        sizes::findings("a.rs", &format!("\n{}", planted(FUNCTION_LINES + 1))),
        ["a.rs:2: planted has 61 lines; it must have at most 60"]
    );
    assert_eq!(sizes::findings("a.sql", &"\n".repeat(FILE_LINES)), [""; 0]);
    assert_eq!(
        sizes::findings("a.sql", &"\n".repeat(FILE_LINES + 1)),
        ["a.sql has 401 lines; it must have at most 400"]
    );
}

#[test]
fn braces_in_strings_characters_and_comments_are_not_counted() {
    let bodies = [
        r#""}""#,
        r##"r#"}"}"#"##,
        r#""\"}\\""#,
        r##"br#""}"#"##,
        "'}'",
        r"'\''; '}'",
        "b'}'",
        "/* } /* } */ } */",
        "// }",
        "|r: &'static str| r",
        "r#type",
        "{ fn_of() }",
    ];
    for body in bodies {
        let source = format!("pub(crate) async fn one<'a>(it: [u8; 3]) -> [u8; 3] {{\n{body}\n}}\n");
        let one = Function { name: "one".to_owned(), line: 1, lines: 3 };
        assert_eq!(sizes::functions(&source), [one], "{body}");
    }
}

#[test]
fn only_functions_with_a_body_are_counted() {
    let source =
        "trait T {\n    fn none(&self);\n    fn some(&self) {}\n}\ntype F = fn(u8) -> u8;\n// fn no() {}\n";
    assert_eq!(sizes::functions(source), [Function { name: "some".to_owned(), line: 3, lines: 1 }]);
    let nested = "fn outer() {\n    fn inner() {\n    }\n}\n";
    let lines: Vec<(String, usize)> =
        sizes::functions(nested).into_iter().map(|each| (each.name, each.lines)).collect();
    assert_eq!(lines, [("outer".to_owned(), 4), ("inner".to_owned(), 2)]);
}
