//! Asking the person at the terminal.

use std::io::IsTerminal as _;

use super::{Printer, sanitise};
use crate::error::{Error, Result};

/// Whether a prompt can be answered: stdin and stderr are terminals.
pub fn possible() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// A short question to be answered by y or n and Enter; n if just Enter is pressed. As in other questions Enter
/// ends the answer: of one that is typed in full, nothing is left for the shell.
pub fn confirm(question: &str) -> Result<bool> {
    let answer = dialoguer::Input::<String>::new().with_prompt(format!("{question} [y/N]")).allow_empty(true);
    Ok(is_yes(&answer.interact_text().map_err(unanswered)?))
}

/// Whether that is typed to agree.
pub fn is_yes(answer: &str) -> bool {
    matches!(answer.trim().to_lowercase().as_str(), "y" | "yes")
}

/// A question to be answered in words; empty if just Enter is pressed. It stands above the prompt,
/// because one that is longer than the line would be drawn again with the answer.
pub fn answer(printer: &mut Printer, question: &str) -> Result<String> {
    printer.note(question);
    let answer = dialoguer::Input::<String>::new().with_prompt("Answer").allow_empty(true).interact_text();
    Ok(answer.map_err(unanswered)?.trim().to_owned())
}

/// Which of these; none if Escape is pressed.
pub fn choose(question: &str, choices: &[String]) -> Result<Vec<usize>> {
    let question = sanitise::line(question).into_owned();
    let choices: Vec<_> = choices.iter().map(|choice| sanitise::line(choice)).collect();
    let chosen = dialoguer::MultiSelect::new().with_prompt(question).items(&choices).interact_opt();
    Ok(chosen.map_err(unanswered)?.unwrap_or_default())
}

fn unanswered(error: dialoguer::Error) -> Error {
    // A choice that is broken off leaves it hidden.
    let _ = console::Term::stderr().show_cursor();
    match error {
        dialoguer::Error::IO(error) if error.kind() == std::io::ErrorKind::Interrupted => Error::Interrupted,
        dialoguer::Error::IO(error) => Error::Output(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_yes_agrees() {
        for (answer, agrees) in [
            ("y", true),
            ("Y", true),
            ("yes", true),
            (" Yes ", true),
            ("", false),
            ("n", false),
            ("no", false),
            ("ye", false),
            ("yn", false),
            ("yes please", false),
        ] {
            assert_eq!(is_yes(answer), agrees, "{answer}");
        }
    }
}
