//! `kubectl lease`: parse, run, exit code; nothing else.

use std::process::ExitCode;

use clap::Parser as _;
use kubectl_lease::{cli::Cli, commands, output::Printer};

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(refusal) => {
            // Help and version are 'errors' too, with code 0. A closed pipe is not our problem.
            let _ = refusal.print();
            return ExitCode::from(u8::try_from(refusal.exit_code()).unwrap_or(2));
        }
    };
    let mut printer = Printer::stdio();
    let exit = commands::run(cli, &mut printer).unwrap_or_else(|error| {
        printer.error(&error);
        error.exit_code()
    });
    ExitCode::from(exit.code())
}
