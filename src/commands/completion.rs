//! `kubectl lease completion`.

use std::{
    env, fs, io,
    path::{Path, PathBuf, absolute},
};

use clap::CommandFactory as _;
use clap_complete::aot::{Generator, Shell, generate};

use crate::{
    cli::{Cli, Completion, InstallCompletion, shown},
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
    generate(shell, &mut shown(Cli::command().bin_name(PLUGIN)), PLUGIN, &mut script);
    // In the script for bash, clap_complete writes the hyphen of the name in two ways, so that nothing
    // below a command is completed: https://github.com/clap-rs/clap/issues/6421
    String::from_utf8_lossy(&script).replace("kubectl__subcmd__lease", "kubectl__lease")
}

fn install(args: &InstallCompletion, printer: &mut Printer) -> Result<ExitCode> {
    let path = env::var_os("PATH").unwrap_or_default();
    let directories: Vec<PathBuf> = env::split_paths(&path).collect();
    let plugin = find(&directories).and_then(|found| absolute(&found).ok()).ok_or_else(|| Error::Usage {
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
        Ok(_) if is_current(&link, &plugin) => {
            printer.done(&format!("{} is there already", link.display()))?;
        }
        Ok(_) if !is_ours(&link) => {
            return Err(Error::Refused {
                message: format!("{} exists and is not a link to {PLUGIN}", link.display()),
                hint: Some("remove it first, if it is not needed".into()),
            });
        }
        _ => {
            place(&plugin, &link).map_err(|error| refuse(&error))?;
            printer.done(&format!("{} -> {}", link.display(), plugin.display()))?;
        }
    }
    if cfg!(not(unix)) {
        printer.note("it is a copy: do this again after each upgrade");
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
        .find(|candidate| candidate.is_file() && is_executable(candidate))
}

#[cfg(unix)]
fn is_executable(file: &Path) -> bool {
    nix::unistd::access(file, nix::unistd::AccessFlags::X_OK).is_ok()
}

#[cfg(unix)]
fn is_current(link: &Path, plugin: &Path) -> bool {
    matches!((fs::canonicalize(link), fs::canonicalize(plugin)), (Ok(one), Ok(other)) if one == other)
}

/// A link to where the plugin is not any more, or to another of its versions.
#[cfg(unix)]
fn is_ours(link: &Path) -> bool {
    fs::read_link(link).is_ok_and(|target| target.file_name() == Some(PLUGIN.as_ref()))
}

#[cfg(unix)]
fn place(plugin: &Path, link: &Path) -> io::Result<()> {
    match fs::remove_file(link) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => std::os::unix::fs::symlink(plugin, link),
    }
}

/// By its name.
#[cfg(not(unix))]
fn is_executable(_: &Path) -> bool {
    true
}

#[cfg(not(unix))]
fn is_current(copy: &Path, plugin: &Path) -> bool {
    matches!((fs::read(copy), fs::read(plugin)), (Ok(one), Ok(other)) if one == other)
}

/// A copy says nothing of where it is from, but no other program has its name.
#[cfg(not(unix))]
fn is_ours(copy: &Path) -> bool {
    copy.is_file()
}

/// Symbolic links need a privilege on Windows that few users have: a copy.
#[cfg(not(unix))]
fn place(plugin: &Path, copy: &Path) -> io::Result<()> {
    fs::copy(plugin, copy).map(|_| ())
}
