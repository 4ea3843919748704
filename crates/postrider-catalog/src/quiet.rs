//! Runs code of the application that may panic, and says nothing of its payload.

use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

thread_local! {
    static QUIET: Cell<bool> = const { Cell::new(false) };
}
static HOOK: Once = Once::new();

/// What the code returns; nothing if it panicked. The message of a panic may hold a payload, so it is not printed: the hook that is
/// there says it for all other threads and times.
///
/// An application that sets a hook of its own later prints the panics of its upcasters again. With `panic = "abort"` such a panic ends
/// the process, so it is printed.
pub(crate) fn quietly<T>(code: impl FnOnce() -> T) -> Option<T> {
    if cfg!(panic = "abort") {
        return Some(code());
    }
    if !std::thread::panicking() {
        HOOK.call_once(|| {
            let before = panic::take_hook();
            panic::set_hook(Box::new(move |info| {
                if !QUIET.get() {
                    before(info);
                }
            }));
        });
    }
    let was_quiet = QUIET.replace(true);
    let result = panic::catch_unwind(AssertUnwindSafe(code));
    QUIET.set(was_quiet);
    result.ok()
}
