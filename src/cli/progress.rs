//! A progress bar on standard error: on a terminal only, and only for runs that take a while.

use std::io::IsTerminal;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// How long a run may take in silence.
const PATIENCE: Duration = Duration::from_millis(500);

/// Counts inputs; shows itself when it takes a while.
pub struct Progress {
    done: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Progress {
    /// Starts to count `total` inputs.
    pub fn new(total: usize, wanted: bool) -> Progress {
        if !wanted || !std::io::stderr().is_terminal() {
            return Progress { done: None, thread: None };
        }
        let (sender, receiver) = channel::<()>();
        let thread = std::thread::spawn(move || {
            let start = std::time::Instant::now();
            let mut count = 0;
            let mut bar: Option<ProgressBar> = None;
            loop {
                let wait = match bar {
                    None => PATIENCE.saturating_sub(start.elapsed()),
                    Some(_) => Duration::from_millis(100),
                };
                match receiver.recv_timeout(wait) {
                    Ok(()) => {
                        count += 1;
                        if let Some(bar) = &bar {
                            bar.set_position(count);
                        }
                    }
                    Err(RecvTimeoutError::Timeout) => match &bar {
                        None => {
                            let own = ProgressBar::new(total as u64);
                            if let Ok(style) = ProgressStyle::with_template(
                                "{spinner} checking {pos}/{len} {wide_bar} {elapsed}",
                            ) {
                                own.set_style(style);
                            }
                            own.set_position(count);
                            bar = Some(own);
                        }
                        Some(bar) => bar.tick(),
                    },
                    Err(RecvTimeoutError::Disconnected) => break,
                }
            }
            if let Some(bar) = bar {
                bar.finish_and_clear();
            }
        });
        Progress { done: Some(sender), thread: Some(thread) }
    }

    /// A handle for a worker.
    pub fn counter(&self) -> Counter {
        Counter(self.done.clone())
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.done = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Counts one input as done.
#[derive(Clone)]
pub struct Counter(Option<Sender<()>>);

impl Counter {
    /// One more.
    pub fn count(&self) {
        if let Some(sender) = &self.0 {
            let _ = sender.send(());
        }
    }
}
