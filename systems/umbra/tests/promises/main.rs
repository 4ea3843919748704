//! What Umbra promises, on a real PostgreSQL with real processes. Each test names the requirements that it proves.

mod alerts;
mod catalog;
mod delivery;
mod edges;
mod endings;
mod flows;
mod idempotency;
mod keys;
mod licences;
mod nights;
mod operations;
mod orders;
mod pages;
mod processes;
mod refusals;
mod requests;
mod running;
mod schedule;
mod world;
