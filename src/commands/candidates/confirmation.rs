//! What is asked before leadership moves.

use crate::{
    cli::DryRun,
    connection::Reached,
    error::{Error, Result},
    output::{Printer, prompt, words::paste::with_flags},
};

/// Shows what will happen, and asks for confirmation; elsewhere than on a terminal `--yes` is needed.
pub fn agree(
    words: &[String],
    yes: bool,
    dry_run: DryRun,
    cluster: &Reached,
    printer: &mut Printer,
) -> Result<()> {
    for line in words {
        printer.note(&with_flags(line, cluster.flags()));
    }
    if yes || dry_run != DryRun::None {
        return Ok(());
    }
    if !prompt::possible() {
        return Err(Error::Refused {
            message: "there is no terminal to ask on: nothing was changed".into(),
            hint: Some("--yes does it without asking; --dry-run shows what would be done".into()),
        });
    }
    if prompt::confirm("Go on?")? {
        return Ok(());
    }
    Err(Error::Refused { message: "nothing was changed".into(), hint: None })
}
