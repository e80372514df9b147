//! `kubectl lease completion`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};

const EXAMPLES: &str = "\
Examples:
  # Install completion for 'kubectl lease' in all shells, including names of nodes and leases
  kubectl lease completion install

  # Load completion for kubectl-lease, called directly, into the current bash
  source <(kubectl lease completion bash)";

const BASH_EXAMPLES: &str = "\
Examples:
  # Load completion into the current shell
  source <(kubectl lease completion bash)

  # Load completion in every new shell; requires the package bash-completion
  mkdir -p ~/.local/share/bash-completion/completions
  kubectl lease completion bash >~/.local/share/bash-completion/completions/kubectl-lease";

const ZSH_EXAMPLES: &str = "\
Examples:
  # Load completion into the current shell, after compinit
  source <(kubectl lease completion zsh)

  # Load completion in every new shell; requires 'fpath+=(~/.zfunc)' before compinit in ~/.zshrc
  mkdir -p ~/.zfunc
  kubectl lease completion zsh >~/.zfunc/_kubectl-lease";

const FISH_EXAMPLES: &str = "\
Examples:
  # Load completion into the current shell
  kubectl lease completion fish | source

  # Load completion in every new shell
  mkdir -p ~/.config/fish/completions
  kubectl lease completion fish >~/.config/fish/completions/kubectl-lease.fish";

const POWERSHELL_EXAMPLES: &str = "\
Examples:
  # Load completion into the current shell
  kubectl lease completion powershell | Out-String | Invoke-Expression

  # Load completion in every new shell
  New-Item -Force -ItemType Directory (Split-Path $PROFILE)
  Add-Content $PROFILE 'kubectl lease completion powershell | Out-String | Invoke-Expression'";

/// Output shell completion code
#[derive(Debug, Subcommand)]
#[command(after_help = EXAMPLES)]
pub enum Completion {
    /// Output completion code for bash
    ///
    /// The code completes kubectl-lease, called directly. For 'kubectl lease', use 'completion install'.
    #[command(after_help = BASH_EXAMPLES)]
    Bash,
    /// Output completion code for zsh
    ///
    /// The code completes kubectl-lease, called directly. For 'kubectl lease', use 'completion install'.
    #[command(after_help = ZSH_EXAMPLES)]
    Zsh,
    /// Output completion code for fish
    ///
    /// The code completes kubectl-lease, called directly. For 'kubectl lease', use 'completion install'.
    #[command(after_help = FISH_EXAMPLES)]
    Fish,
    /// Output completion code for PowerShell
    ///
    /// The code completes kubectl-lease, called directly. For 'kubectl lease', use 'completion install'.
    #[command(after_help = POWERSHELL_EXAMPLES)]
    Powershell,
    Install(InstallCompletion),
}

const INSTALL_EXAMPLES: &str = "\
Examples:
  # Install next to kubectl-lease
  kubectl lease completion install

  # Install into another directory of the PATH
  kubectl lease completion install --dir ~/bin";

/// Install completion for 'kubectl lease'
///
/// To complete 'kubectl lease', kubectl runs a program kubectl_complete-lease from the PATH. This command
/// creates it as a link to kubectl-lease. Completion for kubectl itself must be set up in the shell, see
/// 'kubectl completion --help'.
#[derive(Debug, Args)]
#[command(after_help = INSTALL_EXAMPLES)]
pub struct InstallCompletion {
    /// Directory for the link. Defaults to the directory of kubectl-lease.
    #[arg(long, value_name = "DIRECTORY", value_hint = ValueHint::DirPath)]
    pub dir: Option<PathBuf>,
}
