//! Umbra: a SaaS for Discord servers whose contexts talk by events alone.
//!
//! The modules of the contexts import [`contracts`] and nothing of one another, of Postrider or of sqlx; [`adapters`] connect them
//! to a database, to Postrider and to the outside world, whose [`stubs`] are here, too. [`telling`] acts it all out.

pub mod adapters;
pub mod audit;
pub mod billing;
pub mod contracts;
pub mod guild;
pub mod identity;
pub mod licensing;
pub mod member;
pub mod notification;
pub mod recovery;
pub mod stubs;
pub mod telling;
