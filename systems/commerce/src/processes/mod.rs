//! The processes of the shop, and the story that starts them all.

pub mod api;
pub mod consumer;
pub mod migrate;
pub mod settings;
pub mod stub_cache;
pub mod tale;
