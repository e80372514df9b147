//! `kubectl lease`: parse, run, exit code; nothing else.

use std::{path::PathBuf, process::ExitCode};

use kubectl_lease::{cli, commands, complete, output::Printer, this_program};

fn main() -> ExitCode {
    let typed = std::env::args_os();
    if let Some(exit) = this_program().ok().and_then(|program| program.serve(std::env::args_os())) {
        return exit;
    }
    let program = std::env::args_os().next().map(PathBuf::from).unwrap_or_default();
    if complete::is_asked(&program) {
        let words: Vec<_> = typed.skip(1).collect();
        // Silent on failure, whatever it is: the answer goes into a command line that is being typed.
        let _ = Printer::stdio().raw(&complete::answer(words));
        return ExitCode::SUCCESS;
    }
    let cli = match cli::parse(typed) {
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
    #[cfg(unix)]
    if let (kubectl_lease::ExitCode::Killed(signal), Ok(program)) = (exit, this_program()) {
        program.die_of(signal);
    }
    ExitCode::from(exit.code())
}
