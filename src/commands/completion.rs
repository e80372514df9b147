//! `kubectl lease completion`.

use std::{
    env, fs, io,
    path::{Path, PathBuf},
};

use clap::CommandFactory as _;
use clap_complete::aot::{Generator, Shell, generate};

use crate::{
    cli::{Cli, Completion, InstallCompletion},
    complete::PROGRAM,
    error::{Error, Result},
    exit::ExitCode,
    output::Printer,
};

const PLUGIN: &str = "kubectl-lease";

pub fn run(verb: &Completion, printer: &mut Printer) -> Result<ExitCode> {
    let shell = match verb {
        Completion::Bash => Shell::Bash,
        Completion::Zsh => Shell::Zsh,
        Completion::Fish => Shell::Fish,
        Completion::Powershell => Shell::PowerShell,
        Completion::Install(args) => return install(args, printer),
    };
    printer.raw(&script(shell))?;
    Ok(ExitCode::Done)
}

/// The script that completes the program called by its own name.
fn script(shell: impl Generator) -> String {
    let mut script = Vec::new();
    generate(shell, &mut Cli::command().bin_name(PLUGIN), PLUGIN, &mut script);
    String::from_utf8_lossy(&script).into_owned()
}

fn install(args: &InstallCompletion, printer: &mut Printer) -> Result<ExitCode> {
    let path = env::var_os("PATH").unwrap_or_default();
    let directories: Vec<PathBuf> = env::split_paths(&path).collect();
    let plugin = find(&directories).ok_or_else(|| Error::Usage {
        message: format!("{PLUGIN} is not on the PATH, where kubectl would find it"),
        hint: Some(format!("put {PLUGIN} into a directory of the PATH first")),
    })?;
    let home = plugin.parent().unwrap_or(Path::new("."));
    let directory = args.dir.as_deref().unwrap_or(home);
    let link = directory.join(PROGRAM).with_extension(env::consts::EXE_EXTENSION);
    let refuse = |error: &io::Error| Error::Refused {
        message: format!("{} cannot be written: {error}", link.display()),
        hint: Some("--dir DIRECTORY puts it somewhere else on the PATH".into()),
    };
    match fs::symlink_metadata(&link) {
        Ok(_) if is_ours(&link, &plugin) => {
            printer.done(&format!("{} is there already", link.display()))?;
        }
        Ok(_) => {
            return Err(Error::Refused {
                message: format!("{} is there already, and is something else", link.display()),
                hint: Some("remove it first, if it is an older one of this plugin's".into()),
            });
        }
        Err(_) => {
            place(&plugin, &link).map_err(|error| refuse(&error))?;
            printer.done(&format!("{} -> {}", link.display(), plugin.display()))?;
        }
    }
    let canonical = |path: &Path| fs::canonicalize(path).ok();
    if !directories.iter().any(|other| canonical(other) == canonical(directory)) {
        printer.warn(&format!("{} is not on the PATH: kubectl will not find it there", directory.display()));
    }
    printer.note(
        "kubectl's own completion has to be set up in your shell: 'kubectl completion --help' says how",
    );
    Ok(ExitCode::Done)
}

/// The plugin as kubectl finds it. A link is kept as it is: krew's points to the newest version.
fn find(directories: &[PathBuf]) -> Option<PathBuf> {
    directories
        .iter()
        .filter(|directory| !directory.as_os_str().is_empty())
        .map(|directory| directory.join(PLUGIN).with_extension(env::consts::EXE_EXTENSION))
        .find(|candidate| candidate.is_file())
}

fn is_ours(link: &Path, plugin: &Path) -> bool {
    matches!((fs::canonicalize(link), fs::canonicalize(plugin)), (Ok(one), Ok(other)) if one == other)
}

#[cfg(unix)]
fn place(plugin: &Path, link: &Path) -> io::Result<()> {
    std::os::unix::fs::symlink(plugin, link)
}

/// Links need a right that few have.
#[cfg(not(unix))]
fn place(plugin: &Path, link: &Path) -> io::Result<()> {
    fs::copy(plugin, link).map(|_| ())
}
