//! The system on real servers: its processes, its settings file, and the figures of the document.

mod files;
mod fraud;
mod imports;
mod load;
mod monitor;
mod night;
mod outage;
mod refusals;
mod relays;
mod repeating;
mod retries;
mod support;
mod table;
mod unit_of_work;
