//! What is shown on stderr while something takes its time; on a terminal only, unless it is news.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::{Printer, sanitise};

/// How far work on several things has come.
pub struct Bar(ProgressBar);

impl Bar {
    pub fn new(total: usize, what: &str) -> Self {
        let bar = ProgressBar::with_draw_target(Some(total as u64), ProgressDrawTarget::stderr());
        if total > 1 {
            let style = ProgressStyle::with_template("{msg} [{bar:30}] {pos}/{len}");
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("=> "));
            bar.set_message(what.to_owned());
        } else {
            bar.set_draw_target(ProgressDrawTarget::hidden());
        }
        Self(bar)
    }

    pub fn one_done(&self) {
        self.0.inc(1);
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

/// A line that says what is being waited for: kept up to date on a terminal, elsewhere said again
/// only when it is news.
pub struct WaitLine {
    line: ProgressBar,
    said: String,
}

impl Default for WaitLine {
    fn default() -> Self {
        let line = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        if let Ok(style) = ProgressStyle::with_template("{spinner} {wide_msg}") {
            line.set_style(style);
        }
        line.enable_steady_tick(Duration::from_millis(120));
        Self { line, said: String::new() }
    }
}

impl WaitLine {
    /// `news` is what does not change by the mere passing of time.
    pub fn say(&mut self, printer: &mut Printer, news: &str, detail: &str) {
        if self.line.is_hidden() {
            if self.said != news {
                printer.note(news);
                news.clone_into(&mut self.said);
            }
        } else {
            self.line.set_message(sanitise::line(&format!("{news}{detail}")).into_owned());
        }
    }
}

impl Drop for WaitLine {
    fn drop(&mut self) {
        // First, or it draws the line once more.
        self.line.disable_steady_tick();
        self.line.finish_and_clear();
    }
}
