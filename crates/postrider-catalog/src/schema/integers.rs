//! The ranges of integers.

use serde_json::{Map, Value};

use super::ZERO;

/// The integers of Rust, as schemars names them.
pub(crate) const INTEGERS: [(&str, i128, i128); 12] = [
    ("int8", i8::MIN as i128, i8::MAX as i128),
    ("int16", i16::MIN as i128, i16::MAX as i128),
    ("int32", i32::MIN as i128, i32::MAX as i128),
    ("int64", i64::MIN as i128, i64::MAX as i128),
    ("uint8", 0, u8::MAX as i128),
    ("uint16", 0, u16::MAX as i128),
    ("uint32", 0, u32::MAX as i128),
    ("uint64", 0, u64::MAX as i128),
    ("uint128", 0, i128::MAX),
    // One less than it has: `i128::MAX` stands for all that only a `u128` has.
    ("int128", i128::MIN, i128::MAX - 1),
    ("int", i64::MIN as i128, i64::MAX as i128),
    ("uint", 0, u64::MAX as i128),
];

/// The range of an integer is that of its Rust type, which the format names. A `NonZero` with a sign has two.
pub(crate) fn integers(node: &Map<String, Value>) -> Vec<(i128, i128)> {
    let format = node.get("format").and_then(Value::as_str);
    let known = INTEGERS.iter().find(|(name, ..)| format == Some(name));
    let (least, most) = known.map_or((i128::MIN, i128::MAX), |(_, least, most)| (*least, *most));
    if node.contains_key(ZERO) {
        return vec![(least, most)];
    }
    let from_one = node.get("minimum").and_then(Value::as_u64) == Some(1);
    if least == 0 && from_one {
        return vec![(1, most)];
    }
    if node.get("not").and_then(|not| not.get("const")).and_then(Value::as_i64) == Some(0) {
        // One without a sign has nothing below 0.
        return [(least, -1), (1, most)].into_iter().filter(|(least, most)| least <= most).collect();
    }
    vec![(least, most)]
}
