//! The keywords that JSON Schema does not have: results of tests on a type, and what an application states.

/// A field's other names, as `#[schemars(extend("x-aliases" = ["old"]))]` states them: JSON Schema has no word for `serde(alias)`.
pub(crate) const ALIASES: &str = "x-aliases";
/// An enum with a variant for all unknown ones (`serde(other)`), which JSON Schema can't express.
pub(crate) const OTHER: &str = "x-other";
/// The schema of a map's keys: JSON Schema has it only for numbers, and then without their range.
pub(crate) const KEYS: &str = "x-keys";
/// An integer that may be 0, although its schema says that it is not: that is a rule, not a `NonZero`.
pub(crate) const ZERO: &str = "x-zero";
/// A string whose format or length is a rule: the type reads any text.
pub(crate) const ANY_TEXT: &str = "x-any-text";
/// An array whose length is a rule: the type reads any.
pub(crate) const ANY_LENGTH: &str = "x-any-length";
/// An array whose `maxItems` the type checks, as a list of a fixed capacity does: in most schemas it is only a rule.
pub(crate) const AT_MOST: &str = "x-at-most";
/// Values that the schema allows and the type refuses, because it has a parser or rules of its own.
pub(crate) const REFUSED: &str = "x-refused";
/// At the root: how many texts and how many integers the type was asked about. Absent: not asked, or by the first version.
pub(crate) const PROBED: &str = "x-probed";
/// Fields that a variant refuses unless they are null: the content of an adjacently tagged enum, where the variant has none.
pub(crate) const WITHOUT: &str = "x-without";
/// A field that is not always there, but may be written as null.
pub(crate) const NULL: &str = "x-null";
/// A field whose value is read as absent if it does not fit, as the parts of a flattened option are.
pub(crate) const LOST: &str = "x-lost";
/// At the root: `true` if the type does not read a payload of its own schema, so it can't be asked what it reads; an object with
/// `written`, if the type writes that although its schema does not allow it, so the schema does not tell what it writes.
pub(crate) const UNASKED: &str = "x-unasked";
