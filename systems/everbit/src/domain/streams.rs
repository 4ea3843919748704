//! The five streams, and the worker of each.

/// Commands to execute orders.
pub const TRADE_COMMAND: &str = "everbit.trade.command";
/// What happened to orders, fills and positions.
pub const TRADE_EVENT: &str = "everbit.trade.event";
/// Commands to run backtests.
pub const BACKTEST_COMMAND: &str = "everbit.backtest.command";
/// The results of backtests.
pub const BACKTEST_EVENT: &str = "everbit.backtest.event";
/// Settings, the kill switch, operations.
pub const SYSTEM_EVENT: &str = "everbit.system.event";

/// All of them. Nothing else may be published: market data must not go through the queue.
pub const ALL: [&str; 5] = [TRADE_COMMAND, TRADE_EVENT, BACKTEST_COMMAND, BACKTEST_EVENT, SYSTEM_EVENT];

/// The worker of the stream of order commands.
pub const ORDER_EXECUTOR: &str = "order-executor-worker";
/// The worker of the stream of trade events.
pub const NOTIFICATION: &str = "notification-worker";
/// The worker of the stream of backtest commands.
pub const BACKTEST: &str = "backtest-worker";
/// The worker of the stream of system events.
pub const SYSTEM: &str = "system-worker";

/// Each worker and its stream. The results of backtests have no worker: a reader gets them by HTTP.
pub const WORKERS: [(&str, &str); 4] = [
    (ORDER_EXECUTOR, TRADE_COMMAND),
    (NOTIFICATION, TRADE_EVENT),
    (BACKTEST, BACKTEST_COMMAND),
    (SYSTEM, SYSTEM_EVENT),
];
