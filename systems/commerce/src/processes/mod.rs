//! The processes of the shop, and the story that starts them all.

pub mod api;
pub mod arrivals;
pub mod consumer;
pub mod count;
pub mod migrate;
pub mod settings;
pub mod shoppers;
pub mod stage;
pub mod stub_cache;
pub mod tale;
