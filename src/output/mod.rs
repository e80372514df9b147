//! The only place that writes.
//!
//! Commands hand over plain text, tones and documents; what reaches the terminal is made here, so
//! that nothing a cluster stores can bring its own escape sequences.

pub mod listing;
pub mod printer;
pub mod progress;
pub mod prompt;
pub mod sanitise;
pub mod screen;
pub mod structured;
pub mod table;
pub mod taking;
pub mod words;

pub use listing::{Change, Format, Item};
pub use printer::{Brief, Printer};
pub use table::{Cell, Tone};

/// How wide the terminal is, if stdout is one.
pub fn width() -> Option<u16> {
    console::Term::stdout().size_checked().map(|(_, width)| width)
}
