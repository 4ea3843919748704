//! What connects the contexts to PostgreSQL and to Postrider.

pub mod postgres;
pub mod relay;
