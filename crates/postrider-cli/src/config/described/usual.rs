//! Defaults, as they are written in the file.

use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use crate::config::duration;

/// A default.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Usual {
    /// A text, or one of several words.
    Text(&'static str),
    /// A duration.
    Time(Duration),
    /// A time of the day, in minutes since midnight.
    TimeOfDay(u32),
    /// A whole number.
    Count(u32),
    /// Any number.
    Number(f64),
    /// Yes or no.
    Flag(bool),
    /// A list of texts.
    List(&'static [&'static str]),
    /// Where to listen.
    Address(SocketAddr),
}

impl fmt::Display for Usual {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => write!(f, "{text:?}"),
            Self::Time(time) => write!(f, "{:?}", duration::show(*time)),
            Self::TimeOfDay(minutes) => write!(f, "\"{:02}:{:02}\"", minutes / 60, minutes % 60),
            Self::Count(number) => write!(f, "{number}"),
            Self::Number(number) => write!(f, "{number}"),
            Self::Flag(flag) => write!(f, "{flag}"),
            Self::List(texts) => write!(f, "{texts:?}"),
            Self::Address(address) => write!(f, "\"{address}\""),
        }
    }
}
