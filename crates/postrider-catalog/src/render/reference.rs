//! References inside a JSON Schema.

/// The part of a schema that a `$ref` names, as a JSON pointer; nothing if it leads to another document.
pub(crate) fn pointer(reference: &str) -> Option<String> {
    reference.strip_prefix('#').map(percent_decoded)
}

/// A part of a pointer as the name that it stands for.
pub(super) fn name(part: &str) -> String {
    part.replace("~1", "/").replace("~0", "~")
}

/// A reference is a URI: what a URI can't have is written as `%20` and the like.
fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        let decoded = || u8::from_str_radix(std::str::from_utf8(after.get(..2)?).ok()?, 16).ok();
        match decoded().filter(|_| *first == b'%') {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_is_a_pointer_in_a_uri() {
        for (reference, found) in [
            ("#", Some("")),
            ("#/$defs/Money", Some("/$defs/Money")),
            ("#/$defs/Money%20%EC%9B%90", Some("/$defs/Money 원")),
            ("#/$defs/100%", Some("/$defs/100%")),
            ("#/$defs/a~1b", Some("/$defs/a~1b")),
            ("other.json#/a", None),
        ] {
            assert_eq!(pointer(reference).as_deref(), found);
        }
        assert_eq!(name("a~1b~0c"), "a/b~c");
    }
}
