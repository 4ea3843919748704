//! What people see of a relay: metrics, log lines, its report to the registry, the hook for deaths.

pub(crate) mod death;
pub(crate) mod gauges;
pub(crate) mod line;
pub(crate) mod metrics;
pub(crate) mod presence;
pub(crate) mod stats;
