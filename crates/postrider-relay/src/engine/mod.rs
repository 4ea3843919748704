//! The engine: for each subscription *claim a lane → due → read → deliver → judge → settle*. It knows stores and sinks by their
//! contracts alone.
//!
//! `lane_manager` holds lanes, `lane` is the turn of one of them, `deliver` hands events to the sink and `delivering` stays with them,
//! `judge` decides with `retry_policy` and `contrast` what follows from an outcome, `settle` writes it, `lease` keeps the lane
//! meanwhile.

pub(crate) mod away;
pub(crate) mod breaker;
pub(crate) mod contrast;
pub(crate) mod deliver;
pub(crate) mod delivering;
pub(crate) mod due_schedule;
pub(crate) mod extension;
pub(crate) mod flight;
pub(crate) mod judge;
pub(crate) mod lane;
pub(crate) mod lane_manager;
pub(crate) mod lease;
pub(crate) mod pace;
pub(crate) mod portion;
pub(crate) mod probe;
pub(crate) mod retry_policy;
pub(crate) mod runtime;
pub(crate) mod settle;
pub(crate) mod suspect;
pub(crate) mod work;
