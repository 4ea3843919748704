//! The parameters of statements.

use postrider_core::OffsetDateTime;
use uuid::Uuid;

/// A parameter.
#[derive(Debug, Clone)]
pub enum Value {
    /// A whole number, or a time in microseconds.
    Number(Option<i64>),
    /// A text.
    Text(Option<String>),
    /// An id.
    Id(Option<Uuid>),
    /// Bytes.
    Bytes(Option<Vec<u8>>),
    /// A time as the log keeps it.
    Time(Option<OffsetDateTime>),
}

macro_rules! value_from {
    ($($type:ty => |$value:ident| $made:expr),+ $(,)?) => {
        $(impl From<$type> for Value {
            fn from($value: $type) -> Self {
                $made
            }
        })+
    };
}

value_from! {
    i64 => |number| Self::Number(Some(number)),
    u32 => |number| Self::Number(Some(i64::from(number))),
    Option<i64> => |number| Self::Number(number),
    Option<u32> => |number| Self::Number(number.map(i64::from)),
    bool => |flag| Self::Number(Some(i64::from(flag))),
    &str => |text| Self::Text(Some(text.to_owned())),
    &String => |text| Self::Text(Some(text.clone())),
    String => |text| Self::Text(Some(text)),
    Option<&str> => |text| Self::Text(text.map(str::to_owned)),
    Option<String> => |text| Self::Text(text),
    Uuid => |id| Self::Id(Some(id)),
    Option<Uuid> => |id| Self::Id(id),
    Option<Vec<u8>> => |bytes| Self::Bytes(bytes),
    OffsetDateTime => |time| Self::Time(Some(time)),
    Option<OffsetDateTime> => |time| Self::Time(time),
}
