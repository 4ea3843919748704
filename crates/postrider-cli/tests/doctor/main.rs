//! `postrider doctor`, the built binary, against a real PostgreSQL, real brokers and endpoints with something wrong in each.

mod fixture;
mod log;
mod pooler;
mod sinks;
