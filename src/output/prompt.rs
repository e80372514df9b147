//! Asking the person at the terminal.

use std::io::IsTerminal as _;

use super::sanitise;
use crate::error::{Error, Result};

/// Whether there is somebody to ask.
pub fn possible() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// A question to be answered by y or n; n if just Enter is pressed.
pub fn confirm(question: &str) -> Result<bool> {
    let question = sanitise::line(question).into_owned();
    dialoguer::Confirm::new().with_prompt(question).default(false).interact().map_err(|error| match error {
        dialoguer::Error::IO(error) if error.kind() == std::io::ErrorKind::Interrupted => Error::Interrupted,
        dialoguer::Error::IO(error) => Error::Output(error),
    })
}
