//! Cleaning up when a test ends, also when it fails.

/// Runs a future to its end, from `drop`: on a thread and a runtime of its own, because those of the test may be ending.
pub fn run<F: Future<Output = ()>>(clean_up: impl FnOnce() -> F + Send + 'static) {
    let cleaning = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        if let Ok(runtime) = runtime {
            runtime.block_on(clean_up());
        }
    });
    // A failure to clean up must not hide the failure of the test.
    let _ = cleaning.join();
}
