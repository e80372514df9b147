//! What can be typed: clap types, and tips for what was mistyped.

// The comments here are the help texts, where backticks would be printed.
#![allow(clippy::doc_markdown)]

mod tips;

use std::{collections::BTreeSet, ffi::OsString, ops::Not, path::PathBuf, time::Duration};

use clap::{
    Args, Parser, Subcommand, ValueHint,
    builder::{OsStringValueParser, TypedValueParser},
    error::ErrorKind,
};

pub use tips::{flag, similar_verb};

use crate::{
    domain::{deadline::SHORTEST, duration, lease::is_object_name, rehearsal::Versions},
    output::Format,
};

/// The commands by the questions that they answer, on one screen.
const OVERVIEW: &str = "\
Leases for cluster operators. Usage: kubectl lease COMMAND [OPTIONS]

Which control-plane members are alive?
  apiservers     List the kube-apiservers and whether they are alive
Who leads, who would lead next, and how do I move it?
  candidates     List candidates; explain, wait, rehearse, set-priority, …
  leaders        List every leader-election lease, coordinated or not
May I touch this node now, and how do I keep others off it?
  maint          Hold nodes: acquire, renew, release, status, list, run
  hold           Run a command while holding a lease, any lease
Is it safe to force-delete this pod, and what is safer?
  partitions     List nodes that stopped heartbeating, and their stranded pods
  force-delete   Force-delete pods after a look at the risk
  fence          Declare a dead node's machine to be off
What can I do here?
  doctor         Tell what this cluster and you can do, and what to enable
  completion     Complete what is typed
Examples:
  kubectl lease candidates --watch
  kubectl lease maint run node-1 --reason 'new disk' -- kubectl drain node-1
  kubectl lease force-delete pod db-0
'kubectl lease COMMAND --help' has its flags and examples. kubectl's own flags,
such as --context and -n, work everywhere. -V prints the version.";

const VERSION: &str = concat!(
    env!("CARGO_PKG_VERSION"),
    " (",
    env!("KUBECTL_LEASE_COMMIT"),
    "; for Kubernetes 1.31 and later, tested on ",
    env!("KUBECTL_LEASE_TESTED"),
    ")"
);

/// Leases for cluster operators: who is alive, who leads, who may touch a node, what is safe to delete
#[derive(Debug, Parser)]
#[command(
    name = "kubectl-lease",
    bin_name = "kubectl lease",
    version = VERSION,
    override_help = OVERVIEW,
    subcommand_required = true,
    arg_required_else_help = true,
    disable_help_subcommand = true
)]
pub struct Cli {
    #[command(flatten)]
    pub connection: Connection,

    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    Apiservers(Apiservers),
    Candidates(Candidates),
    Leaders(Leaders),
    #[command(subcommand)]
    Maint(Maint),
    Hold(Hold),
    Partitions(Partitions),
    ForceDelete(ForceDelete),
    Fence(Fence),
    Doctor(Doctor),
    #[command(subcommand)]
    Completion(Completion),
}

const DOCTOR_EXAMPLES: &str = "\
Examples:
  # What this cluster serves, and what you may do there
  kubectl lease doctor

  # And whether the clocks of all kube-apiservers agree
  kubectl lease doctor --clocks

  # As somebody else would see it
  kubectl lease doctor --as jane --as-group sre

  # Have the server guard the prefix of administrators, 'kubeadm'
  kubectl lease doctor --print guard | kubectl apply -f -

  # Only what is not well
  kubectl lease doctor -o json | jq -r '.items[] | select(.level != \"ok\") | .message'";

/// Tell what this cluster and this user can do, and what to enable
///
/// One look at everything that the other commands need: the server's version and clock, the
/// identities of kube-apiservers, coordinated leader election and who runs it, the namespace of
/// maintenance leases, and every right that a command needs. Exit code 4 if something fails.
#[derive(Debug, Args)]
#[command(after_help = DOCTOR_EXAMPLES)]
pub struct Doctor {
    /// Measure the clocks of all kube-apiservers by their renewals, which takes up to 12 seconds
    #[arg(long)]
    pub clocks: bool,

    /// Output format
    #[arg(short, long, value_enum, default_value_t, hide_default_value = true, value_name = "FORMAT")]
    pub output: Format,

    #[command(flatten)]
    pub no_headers: NoHeaders,

    /// Print what an administrator applies to the cluster, and look at nothing
    #[arg(long, value_enum, value_name = "MANIFEST", conflicts_with_all = ["output", "no_headers", "clocks"])]
    pub print: Option<Manifest>,
}

/// What makes a cluster ready for this.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub enum Manifest {
    /// The namespace of maintenance leases, and a role for each command
    Rbac,
    /// The admission policies that keep the prefix 'kubeadm' for administrators
    Guard,
}

const COMPLETION_EXAMPLES: &str = "\
Examples:
  # Once, for completion through kubectl in every shell, with the names of nodes and leases
  kubectl lease completion install

  # For the program called directly, as kubectl-lease
  source <(kubectl lease completion bash)";

const BASH_EXAMPLES: &str = "\
Examples:
  # In this shell
  source <(kubectl lease completion bash)

  # In every new one; needs the package bash-completion
  mkdir -p ~/.local/share/bash-completion/completions
  kubectl lease completion bash >~/.local/share/bash-completion/completions/kubectl-lease";

const ZSH_EXAMPLES: &str = "\
Examples:
  # In this shell, where compinit has been run
  source <(kubectl lease completion zsh)

  # In every new one; ~/.zshrc needs 'fpath+=(~/.zfunc)' before it runs compinit
  mkdir -p ~/.zfunc
  kubectl lease completion zsh >~/.zfunc/_kubectl-lease";

const FISH_EXAMPLES: &str = "\
Examples:
  # In this shell
  kubectl lease completion fish | source

  # In every new one
  mkdir -p ~/.config/fish/completions
  kubectl lease completion fish >~/.config/fish/completions/kubectl-lease.fish";

const POWERSHELL_EXAMPLES: &str = "\
Examples:
  # In this shell
  kubectl lease completion powershell | Out-String | Invoke-Expression

  # In every new one
  New-Item -Force -ItemType Directory (Split-Path $PROFILE)
  Add-Content $PROFILE 'kubectl lease completion powershell | Out-String | Invoke-Expression'";

/// Complete what is typed
#[derive(Debug, Subcommand)]
#[command(after_help = COMPLETION_EXAMPLES)]
pub enum Completion {
    /// Print the completion script for bash
    ///
    /// For the program called directly, as kubectl-lease. 'completion install' is for 'kubectl lease'.
    #[command(after_help = BASH_EXAMPLES)]
    Bash,
    /// Print the completion script for zsh
    ///
    /// For the program called directly, as kubectl-lease. 'completion install' is for 'kubectl lease'.
    #[command(after_help = ZSH_EXAMPLES)]
    Zsh,
    /// Print the completion script for fish
    ///
    /// For the program called directly, as kubectl-lease. 'completion install' is for 'kubectl lease'.
    #[command(after_help = FISH_EXAMPLES)]
    Fish,
    /// Print the completion script for PowerShell
    ///
    /// For the program called directly, as kubectl-lease. 'completion install' is for 'kubectl lease'.
    #[command(after_help = POWERSHELL_EXAMPLES)]
    Powershell,
    Install(InstallCompletion),
}

const INSTALL_EXAMPLES: &str = "\
Examples:
  # Beside kubectl-lease, where kubectl looks for it
  kubectl lease completion install

  # Somewhere else on the PATH
  kubectl lease completion install --dir ~/bin";

/// Install completion through kubectl
///
/// For 'kubectl lease ...<TAB>' kubectl runs a program kubectl_complete-lease from the PATH. This puts
/// a link to kubectl-lease there under that name. kubectl's own completion has to be set up in the
/// shell, as 'kubectl completion --help' describes.
#[derive(Debug, Args)]
#[command(after_help = INSTALL_EXAMPLES)]
pub struct InstallCompletion {
    /// The directory, instead of the one that has kubectl-lease
    #[arg(long, value_name = "DIRECTORY", value_hint = ValueHint::DirPath)]
    pub dir: Option<PathBuf>,
}

const APISERVERS_EXAMPLES: &str = "\
Examples:
  # Every kube-apiserver, by host name
  kubectl lease apiservers

  # One of them, by host name or identity
  kubectl lease apiservers cp-1

  # Follow joins, deaths and restarts
  kubectl lease apiservers -w

  # In a script: are all of them alive?
  kubectl lease apiservers --exit-code >/dev/null || echo 'a kube-apiserver is not alive'

  # The host names of those that are not alive
  kubectl lease apiservers -o json | jq -r '.items[] | select(.state != \"alive\") | .hostname'";

/// List the kube-apiservers and whether they are alive
///
/// Every kube-apiserver keeps an identity lease in kube-system and renews it every 10 seconds. The
/// state follows from the last renewal, by the server's clock:
///
///   alive     renewed within 30 seconds
///   late      three renewals missed: restarting, overloaded or just killed
///   silent    not renewed for over a minute: take it for down
///   expired   silent for longer than the lease's duration (an hour), about to be collected
///   skewed    renewed in the future: its clock is ahead, and only --watch tells whether it is alive
///   unknown   the lease has no renewal time
///
/// A kube-apiserver writes the time of a renewal by its own clock. With --watch the state follows from
/// the renewals as they arrive, whatever time they carry.
///
/// An apiserver that was shut down in order deletes its lease and is not listed.
#[derive(Debug, Args)]
#[command(alias = "apiserver", after_help = APISERVERS_EXAMPLES, verbatim_doc_comment)]
pub struct Apiservers {
    /// Show only this one, by host name, identity or lease name
    pub name: Option<String>,

    /// Exit with 4 if one of those listed is not alive
    #[arg(long, conflicts_with = "watch")]
    pub exit_code: bool,

    #[command(flatten)]
    pub listing: Listing,
}

/// How a list is asked for and shown.
#[derive(Debug, Args)]
pub struct Listing {
    /// Output format
    #[arg(short, long, value_enum, default_value_t, hide_default_value = true, value_name = "FORMAT")]
    pub output: Format,

    /// Keep watching, and show what changes
    #[arg(short, long, num_args = 0..=1, require_equals = true, default_value = "false",
        default_missing_value = "true", hide_default_value = true, hide_possible_values = true,
        value_name = "BOOL", action = clap::ArgAction::Set)]
    pub watch: bool,

    #[command(flatten)]
    pub no_headers: NoHeaders,

    /// Only those with these labels, such as key=value,other!=value
    #[arg(short = 'l', long, value_name = "LABELS")]
    pub selector: Option<String>,

    /// Only those with these fields, such as metadata.name=x
    #[arg(long, value_name = "FIELDS")]
    pub field_selector: Option<String>,
}

/// Whether a table goes without its headers; `!` says whether it has them.
#[derive(Clone, Copy, Debug, Args)]
pub struct NoHeaders {
    /// Leave out the line of headers
    #[arg(long, num_args = 0..=1, require_equals = true, default_value = "false",
        default_missing_value = "true", hide_default_value = true, hide_possible_values = true,
        value_name = "BOOL", action = clap::ArgAction::Set)]
    no_headers: bool,
}

impl Not for NoHeaders {
    type Output = bool;

    fn not(self) -> bool {
        !self.no_headers
    }
}

const CANDIDATES_EXAMPLES: &str = "\
Examples:
  # Who leads each component, and who would lead next
  kubectl lease candidates

  # Follow an election as it happens
  kubectl lease candidates kube-controller-manager --watch

  # Why this one, and what would change it
  kubectl lease candidates explain kube-controller-manager

  # In a script: is anything wrong with an election?
  kubectl lease candidates --exit-code >/dev/null || kubectl lease candidates explain kube-scheduler

  # Let cp-2 lead for half an hour, then give it back
  kubectl lease candidates set-priority cp-2 100 --for 30m --wait

  # Wait until cp-2 leads
  kubectl lease candidates wait kube-controller-manager --leader cp-2";

/// List the candidates of coordinated leader elections
///
/// Components with coordinated leader election (KEP-4355) announce themselves as candidates for a
/// lease, and a controller in one kube-apiserver elects the one with the oldest emulation version,
/// then the oldest binary, then the oldest candidate; a priority goes before all of that.
///
/// ROLE says who leads and who would lead next: whoever the controller is about to move the lead to,
/// or who would follow if the leader went. 'next?' marks several that would and are equal in everything
/// that decides. STATE follows from the last ping:
///
///   acked      answered the last ping
///   unpinged   never pinged yet, and renews
///   pending    pinged less than 5 seconds ago, not answered yet
///   stale      did not answer, or missed its renewal: not counted on
///   expired    not renewed for 30 minutes: takes no part
///
/// A priority is 'pinned' where the server does not know priorities yet: the candidate's emulation
/// version is then set below all others, and EMULATION shows the true one.
#[derive(Debug, Args)]
#[command(alias = "candidate", after_help = CANDIDATES_EXAMPLES, verbatim_doc_comment,
    subcommand_negates_reqs = true)]
pub struct Candidates {
    #[command(subcommand)]
    pub verb: Option<CandidatesVerb>,

    /// Only the candidates for this lease
    #[arg(value_parser = object_name)]
    pub lease: Option<String>,

    /// Exit with 4 if something is wrong with an election that is listed, or with the election controller
    #[arg(long, conflicts_with = "watch")]
    pub exit_code: bool,

    #[command(flatten)]
    pub scope: Scope,

    #[command(flatten)]
    pub listing: Listing,
}

#[derive(Debug, Subcommand)]
pub enum CandidatesVerb {
    Explain(Explain),
    Wait(WaitForLeader),
    Rehearse(Rehearse),
    SetPriority(SetPriority),
    ClearPriority(ClearPriority),
    Repair(Repair),
    Prune(Prune),
}

/// In which namespaces to look.
#[derive(Debug, Args)]
pub struct Scope {
    /// In all namespaces, which is also what happens without -n
    #[arg(short = 'A', long, num_args = 0..=1, require_equals = true, default_value = "false",
        default_missing_value = "true", hide_default_value = true, hide_possible_values = true,
        value_name = "BOOL", action = clap::ArgAction::Set)]
    pub all_namespaces: bool,
}

const EXPLAIN_EXAMPLES: &str = "\
Examples:
  # Why does this one lead, and who is next?
  kubectl lease candidates explain kube-controller-manager

  # Only what is wrong
  kubectl lease candidates explain kube-scheduler -o json | jq -r '.wrong[].message'";

/// Explain the election for a lease in words
///
/// Who leads and for how long, who takes part and who does not and why, which rule decides, what
/// would change it, and what is wrong.
#[derive(Debug, Args)]
#[command(after_help = EXPLAIN_EXAMPLES)]
pub struct Explain {
    /// The lease
    #[arg(value_parser = object_name)]
    pub lease: String,

    /// Output format
    #[arg(short, long, value_enum, default_value_t, hide_default_value = true, value_name = "FORMAT")]
    pub output: Format,
}

const WAIT_EXAMPLES: &str = "\
Examples:
  # Go on with an upgrade when cp-2 has led without a break for half a minute
  kubectl lease candidates wait kube-controller-manager --leader cp-2 --stable 30s --timeout 5m

  # One process, not another on the same host
  kubectl lease candidates wait kube-scheduler --leader cp-2_4f96edb3

  # An operator that is elected without coordination
  kubectl lease candidates wait my-operator -n apps --leader my-operator-7d4b9c8f6d-x2x5z";

/// Wait until an instance of a component leads
///
/// Watches the lease until its holder is the process on the host that is named, the lease has not
/// expired and a renewal is seen; with --stable until renewals are seen for that long, without the
/// lease changing hands or expiring in between. Leases that are not coordinated work, too.
///
/// Exits with 0 when it leads, with 124 when the time is over, and with 3 if there is no such lease or
/// candidate then.
#[derive(Debug, Args)]
#[command(after_help = WAIT_EXAMPLES)]
pub struct WaitForLeader {
    /// The lease
    #[arg(value_parser = object_name)]
    pub lease: String,

    /// The host of the process that should lead, or its candidate's name or holder identity; of that the
    /// beginning is enough, such as HOST_4f96
    #[arg(long, value_name = "HOST", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub leader: String,

    /// Wait until it has led and renewed for this long
    #[arg(long, value_name = "DURATION", value_parser = duration::parse, default_value = "0s",
        hide_default_value = true)]
    pub stable: Duration,

    /// Give up after this long
    #[arg(long, value_name = "DURATION", value_parser = duration::parse, default_value = "2m")]
    pub timeout: Duration,
}

const REHEARSE_EXAMPLES: &str = "\
Examples:
  # Where does the lead go while the control plane is upgraded?
  kubectl lease candidates rehearse kube-controller-manager --to 1.38

  # And when it is taken back
  kubectl lease candidates rehearse kube-controller-manager --to 1.38 --rollback

  # The steps that break the version skew policy
  kubectl lease candidates rehearse kube-scheduler --to 1.39 -o json | jq '.steps[] | select(.withinSkewPolicy == false)'";

/// Rehearse an upgrade of a component: who would lead at each step
///
/// Plays the upgrade through the rule of the election, from the candidates that there are now; nothing is
/// changed. The instances restart one host after the other, by name: each as a new candidate of the new
/// version, without its priority, and is away until another one is elected. Before the first of them all
/// kube-apiservers are upgraded, as the version skew policy has it.
///
/// Each step shows who leads after it, how the lead moves, and which instances of kube-controller-manager,
/// kube-scheduler or cloud-controller-manager break the version skew policy: newer than the
/// kube-apiservers, or more than one minor version older.
#[derive(Debug, Args)]
#[command(after_help = REHEARSE_EXAMPLES)]
pub struct Rehearse {
    /// The lease
    #[arg(value_parser = object_name)]
    pub lease: String,

    /// The version to upgrade to, such as 1.38 or 1.38.2
    #[arg(long, value_name = "VERSION", value_parser = release)]
    pub to: Versions,

    /// Then play it back: the instances first, the last one first, and then the kube-apiservers
    #[arg(long)]
    pub rollback: bool,

    /// Output format
    #[arg(short, long, value_enum, default_value_t, hide_default_value = true, value_name = "FORMAT")]
    pub output: Format,
}

const SET_PRIORITY_EXAMPLES: &str = "\
Examples:
  # Move the lead to the instance on cp-2, and see it through
  kubectl lease candidates set-priority cp-2 100 --wait

  # For the time of an upgrade: cleared when the time is up, or on Ctrl-C
  kubectl lease candidates set-priority cp-2 100 --for 30m

  # In a script
  kubectl lease candidates set-priority cp-2 100 --yes --wait 60s || exit";

/// Prefer a candidate: the highest priority leads
///
/// Moving the lead is a failover: the leader is asked to step down, its process usually exits and
/// restarts, and for up to 15 seconds nobody leads. What will happen is shown and asked about first.
/// A candidate that does not answer a ping is refused, and so is one whose election nobody runs, or
/// whose leader does without coordinated election.
///
/// Where several components have a candidate on a host, all of them get the priority; --lease narrows
/// it. While the lead is moving, a priority is neither taken back nor set for the leader that was asked
/// to step down, which could leave the component without a leader: it is done when that is over. A
/// second Ctrl-C leaves the priority where it is.
///
/// So is a kube-controller-manager or kube-scheduler that is newer than a kube-apiserver which is alive,
/// or more than one minor version older: leading would break Kubernetes' version skew policy. Peers are
/// asked for their versions without credentials, and there is a warning where versions differ and one of
/// them cannot be asked.
///
/// A restart of the component brings a new candidate: its priority is lost then. Where the server
/// does not know priorities, the emulation version of the candidate is pinned below all others, and
/// the original kept in an annotation; clear-priority restores it.
#[derive(Debug, Args)]
#[command(after_help = SET_PRIORITY_EXAMPLES)]
pub struct SetPriority {
    /// The candidate: its name, the beginning of it, or its host
    #[arg(value_parser = candidate_name)]
    pub candidate: String,

    /// From 1 to 2147483647; the highest leads
    #[arg(value_parser = clap::value_parser!(i32).range(1..), allow_hyphen_values = true)]
    pub priority: i32,

    /// Of the candidates for this lease
    #[arg(long, value_name = "LEASE", value_parser = object_name)]
    pub lease: Option<String>,

    /// For how long: stays, and clears it when the time is up or on Ctrl-C
    #[arg(long = "for", value_name = "DURATION", value_parser = lease_duration)]
    pub for_: Option<Duration>,

    /// With --for: only record when it ends; 'clear-priority --expired' clears it
    #[arg(long, requires = "for_")]
    pub detach: bool,

    /// Wait until it leads and renews, for no longer than this; a minute if not given
    #[arg(long, num_args = 0..=1, require_equals = true, value_name = "DURATION", value_parser = duration::parse)]
    pub wait: Option<Option<Duration>>,

    /// Skip confirmation
    #[arg(short, long, alias = "confirm")]
    pub yes: bool,

    /// Also where the candidate does not answer, nobody runs its election, or leading would break the
    /// version skew policy
    #[arg(long, alias = "anyway")]
    pub force: bool,

    #[command(flatten)]
    pub write: Write,
}

const CLEAR_PRIORITY_EXAMPLES: &str = "\
Examples:
  # Back to the order of the versions
  kubectl lease candidates clear-priority cp-2

  # What a 'set-priority --for' left behind, in a cron job
  kubectl lease candidates clear-priority --expired --yes";

/// Take the priority of candidates away again
///
/// The versions then decide. Where they decide for another than the leader, the lead moves: a second
/// failover, which is shown and asked about first. While the lead is moving, the priority is cleared
/// when that is over. A host is also that of candidates that its components left behind.
#[allow(clippy::struct_excessive_bools)] // flags
#[derive(Debug, Args)]
#[command(after_help = CLEAR_PRIORITY_EXAMPLES)]
pub struct ClearPriority {
    /// The candidates: their names, the beginnings of them, or their hosts
    #[arg(value_name = "CANDIDATE", conflicts_with_all = ["all", "expired"], value_parser = candidate_name)]
    pub candidates: Vec<String>,

    /// All that have one
    #[arg(long, conflicts_with = "expired")]
    pub all: bool,

    /// All whose time is over
    #[arg(long)]
    pub expired: bool,

    /// Of the candidates for this lease
    #[arg(long, value_name = "LEASE", value_parser = object_name)]
    pub lease: Option<String>,

    /// Wait until the next one leads and renews, for no longer than this; a minute if not given
    #[arg(long, num_args = 0..=1, require_equals = true, value_name = "DURATION", value_parser = duration::parse)]
    pub wait: Option<Option<Duration>>,

    /// Also while the lead is moving, which can leave the lease without a leader
    #[arg(long)]
    pub force: bool,

    /// Skip confirmation
    #[arg(short, long, alias = "confirm")]
    pub yes: bool,

    #[command(flatten)]
    pub write: Write,
}

const REPAIR_EXAMPLES: &str = "\
Examples:
  # There is no leader, and 'candidates explain' says that the election is stuck
  kubectl lease candidates repair kube-controller-manager --wait

  # What would be done
  kubectl lease candidates repair kube-controller-manager --dry-run";

/// Get a stuck election going again
///
/// The election controller does not elect the holder of an expired lease again. Where that holder is
/// the best candidate, and was asked to step down, there is no leader until its process ends. The one write
/// that helps is an empty holder, after which the controller elects within about 10 seconds. The same
/// write replaces a holder that is null, which can end the kube-apiserver that elects. Other leases are
/// left alone: there is nothing to repair then. What is wrong is shown and asked about first.
#[derive(Debug, Args)]
#[command(after_help = REPAIR_EXAMPLES)]
pub struct Repair {
    /// The lease
    #[arg(value_parser = object_name)]
    pub lease: String,

    /// Wait until a candidate leads and renews, for no longer than this; a minute if not given
    #[arg(long, num_args = 0..=1, require_equals = true, value_name = "DURATION", value_parser = duration::parse)]
    pub wait: Option<Option<Duration>>,

    /// Skip confirmation
    #[arg(short, long, alias = "confirm")]
    pub yes: bool,

    #[command(flatten)]
    pub write: Write,
}

const PRUNE_EXAMPLES: &str = "\
Examples:
  # What components left behind, of all leases
  kubectl lease candidates prune

  # Of one lease, in a script
  kubectl lease candidates prune kube-scheduler --yes

  # What would be deleted
  kubectl lease candidates prune --dry-run";

/// Delete the candidates that components left behind
///
/// A component that restarts comes back under a new name, and its old LeaseCandidate stays for half an
/// hour. One that is as good as the leader has the controller ping all candidates every few seconds.
/// Deleted are those that have not renewed for 30 minutes, have not answered a ping for 20 seconds, or
/// do not answer one that is sent now because they are late or a newer one of the same host is there;
/// never that of the leader. They are shown and asked about first.
#[derive(Debug, Args)]
#[command(after_help = PRUNE_EXAMPLES)]
pub struct Prune {
    /// Only those of these leases or hosts, or of these names
    #[arg(value_name = "LEASE|CANDIDATE", value_parser = candidate_name)]
    pub names: Vec<String>,

    /// Skip confirmation
    #[arg(short, long, alias = "confirm")]
    pub yes: bool,

    #[command(flatten)]
    pub write: Write,
}

const LEADERS_EXAMPLES: &str = "\
Examples:
  # Every lease of leader election in the cluster
  kubectl lease leaders

  # Of one namespace, and what changes
  kubectl lease leaders -n kube-system -w

  # In a script: does every component of the control plane have a leader?
  kubectl lease leaders -n kube-system --exit-code >/dev/null || echo 'a lease has no valid leader'

  # Leases whose holder is gone
  kubectl lease leaders -o json | jq -r '.items[] | select(.state==\"ghost\") | .holder'";

/// List every leader-election lease, coordinated or not
///
/// That is every lease but the nodes' heartbeats, the identities of kube-apiservers and maintenance
/// leases. STATE follows from the last renewal, by the server's clock:
///
///   healthy    renewed in time
///   late       two thirds of its duration without a renewal: client-go gives up about now
///   expired    its time has run out
///   released   nobody holds it
///   ghost      it expired over a minute ago, and no pod and no node is called what the holder calls itself
///   unknown    has a holder, but no renewal time or duration
///
/// PROCESS is a guess: most holders call themselves <host name>_<uuid>, and in a pod the host name
/// is the pod's, or with host networking the node's.
#[derive(Debug, Args)]
#[command(alias = "leader", after_help = LEADERS_EXAMPLES, verbatim_doc_comment)]
pub struct Leaders {
    /// Only leases of this name
    #[arg(value_parser = object_name)]
    pub name: Option<String>,

    /// Exit with 4 if one of those listed has no valid leader: expired, released, ghost or unknown
    #[arg(long, conflicts_with = "watch")]
    pub exit_code: bool,

    #[command(flatten)]
    pub scope: Scope,

    #[command(flatten)]
    pub listing: Listing,
}

const MAINT_EXAMPLES: &str = "\
Examples:
  # Hold a node, work on it, and let it go
  kubectl lease maint acquire node-1 --reason 'new disk'
  kubectl lease maint release node-1

  # The same for the time of one command
  kubectl lease maint run node-1 --reason 'new disk' -- kubectl drain node-1

  # Who holds what
  kubectl lease maint list";

/// Hold nodes for maintenance, so that nobody else disrupts them meanwhile
///
/// Who holds the lease of a node in the namespace kube-node-maintenance may reboot, drain or repair
/// it; others keep off until it is released or has expired. The lease is a convention: it stops
/// whoever asks for it, and nobody else. A holder that begins with 'kubeadm' is an administrator's
/// and holds until released.
#[derive(Debug, Subcommand)]
#[command(alias = "maintenance", after_help = MAINT_EXAMPLES)]
pub enum Maint {
    Acquire(Acquire),
    Renew(Renew),
    Release(Release),
    Status(Status),
    List(MaintList),
    Run(Run),
}

const ACQUIRE_EXAMPLES: &str = "\
Examples:
  # Hold a node for half an hour
  kubectl lease maint acquire node-1 --reason 'replacing a disk'

  # Hold a whole rack, all of it or nothing, waiting up to ten minutes for those in use
  kubectl lease maint acquire -l rack=r7 --duration 1h --wait=10m

  # Keep everybody off a node until released, as an administrator
  kubectl lease maint acquire node-1 --admin --reason 'under investigation'

  # See what would be done
  kubectl lease maint acquire node-1 --dry-run=server";

/// Take the maintenance leases of nodes
///
/// All or nothing: if one of several cannot be had, those taken are released again. What is yours
/// already is renewed. Held by somebody else is exit code 4.
#[derive(Debug, Args)]
#[command(after_help = ACQUIRE_EXAMPLES)]
pub struct Acquire {
    #[command(flatten)]
    pub nodes: Nodes,

    /// For how long; over 1h only with --admin
    #[arg(short, long, default_value = "30m", value_parser = lease_duration, value_name = "DURATION", allow_hyphen_values = true)]
    pub duration: Duration,

    /// Why, for others to read
    #[arg(short, long, value_name = "TEXT", value_parser = reason)]
    pub reason: Option<String>,

    #[command(flatten)]
    pub wait: Wait,

    #[command(flatten)]
    pub identity: Identity,

    /// Hold as an administrator, until released
    #[arg(long)]
    pub admin: bool,

    /// Skip confirmation: replace the reason of a lease that you hold already
    #[arg(short, long, alias = "confirm")]
    pub yes: bool,

    #[command(flatten)]
    pub taking: Taking,

    #[command(flatten)]
    pub write: Write,
}

const RENEW_EXAMPLES: &str = "\
Examples:
  # Another half hour
  kubectl lease maint renew node-1

  # An hour from now, for all that is yours among these
  kubectl lease maint renew node-1 node-2 --duration 1h";

/// Renew maintenance leases that are yours
#[derive(Debug, Args)]
#[command(after_help = RENEW_EXAMPLES)]
pub struct Renew {
    #[command(flatten)]
    pub nodes: Nodes,

    /// For how long from now; over 1h only with --admin
    #[arg(short, long, default_value = "30m", value_parser = lease_duration, value_name = "DURATION", allow_hyphen_values = true)]
    pub duration: Duration,

    #[command(flatten)]
    pub identity: Identity,

    /// Renew what you hold as an administrator
    #[arg(long)]
    pub admin: bool,

    #[command(flatten)]
    pub write: Write,
}

const RELEASE_EXAMPLES: &str = "\
Examples:
  # Done with a node
  kubectl lease maint release node-1

  # Somebody forgot theirs: shows whose it is, and asks
  kubectl lease maint release node-1 --force";

/// Release maintenance leases
///
/// Only what is still yours after a fresh look. Somebody else's needs --force and a yes; an
/// administrator's needs --admin.
#[derive(Debug, Args)]
#[command(after_help = RELEASE_EXAMPLES)]
pub struct Release {
    #[command(flatten)]
    pub nodes: Nodes,

    /// Release what somebody else holds
    #[arg(long)]
    pub force: bool,

    /// Yes to --force, where there is no terminal to ask on
    #[arg(long, requires = "force")]
    pub confirm: bool,

    #[command(flatten)]
    pub identity: Identity,

    /// Release what an administrator holds
    #[arg(long)]
    pub admin: bool,

    #[command(flatten)]
    pub write: Write,
}

const STATUS_EXAMPLES: &str = "\
Examples:
  # In a script: go on only if nobody else is at it
  kubectl lease maint status node-1 --no-headers && reboot-node node-1";

/// Show whether nodes are held: exit code 0 if free or yours, 4 if held by another
#[derive(Debug, Args)]
#[command(after_help = STATUS_EXAMPLES)]
pub struct Status {
    #[command(flatten)]
    pub nodes: Nodes,

    /// Output format
    #[arg(short, long, value_enum, default_value_t, hide_default_value = true, value_name = "FORMAT")]
    pub output: Format,

    #[command(flatten)]
    pub no_headers: NoHeaders,

    #[command(flatten)]
    pub identity: Identity,
}

const LIST_EXAMPLES: &str = "\
Examples:
  # Every node and who holds it
  kubectl lease maint list

  # What was forgotten: expired without a release, held for over an hour without a renewal, or
  # held by an administrator for over a day
  kubectl lease maint list --abandoned

  # Follow a rolling upgrade
  kubectl lease maint list -w";

/// List every node with its maintenance lease
#[derive(Debug, Args)]
#[command(after_help = LIST_EXAMPLES, alias = "ls")]
pub struct MaintList {
    /// Only those that look forgotten
    #[arg(long)]
    pub abandoned: bool,

    #[command(flatten)]
    pub listing: Listing,

    #[command(flatten)]
    pub identity: Identity,
}

const RUN_EXAMPLES: &str = "\
Examples:
  # Drain a node, and let nobody else touch it meanwhile
  kubectl lease maint run node-1 --reason 'kernel update' -- kubectl drain node-1

  # A shell that ends if the lease is lost
  kubectl lease maint run node-1 node-2 --wait -- bash";

/// Run a command while holding the maintenance leases of nodes
///
/// The leases are taken as by 'maint acquire', renewed at a third of their duration (every 20
/// minutes at least) and released when the command ends; its exit code is returned. If a lease is
/// lost, or cannot be renewed in time, the command and all of its process group are ended before
/// anybody else may take the lease, and the exit code is 75. A node that you hold already by 'maint
/// acquire' is taken over without a gap and given back. The command finds the fencing token, which
/// only grows, in KUBECTL_LEASE_TOKEN, and the lease in KUBECTL_LEASE_NAMESPACE,
/// KUBECTL_LEASE_NAME, KUBECTL_LEASE_UID, KUBECTL_LEASE_TRANSITIONS and KUBECTL_LEASE_HOLDER.
#[derive(Debug, Args)]
#[command(after_help = RUN_EXAMPLES)]
pub struct Run {
    #[command(flatten)]
    pub nodes: Nodes,

    /// How long others wait if this machine dies; renewed while the command runs
    #[arg(short, long, default_value = "5m", value_parser = kept_duration, value_name = "DURATION", allow_hyphen_values = true)]
    pub duration: Duration,

    /// Why, for others to read
    #[arg(short, long, value_name = "TEXT", value_parser = reason)]
    pub reason: Option<String>,

    #[command(flatten)]
    pub wait: Wait,

    #[command(flatten)]
    pub identity: Identity,

    /// Also go on from leases that you hold as an administrator, and give them back afterwards
    #[arg(long)]
    pub admin: bool,

    /// Skip confirmation: replace the reason of a lease that you hold already
    #[arg(short, long, alias = "confirm")]
    pub yes: bool,

    #[command(flatten)]
    pub taking: Taking,

    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

const HOLD_EXAMPLES: &str = "\
Examples:
  # Only one of these runs at a time, in the whole cluster
  kubectl lease hold nightly-report -n batch -- ./report.sh

  # A poor man's leader election: wait for the turn, run until the lease is lost, and again
  while :; do kubectl lease hold my-controller --wait -- ./my-controller; done";

/// Run a command while holding a lease, any lease
///
/// For programs that know nothing of leader election. The lease is created where it is missing,
/// renewed at a third of its duration, and released when the command ends; its exit code is
/// returned. If the lease is lost, or cannot be renewed in time, the command and all of its process
/// group are ended before anybody else may take it, and the exit code is 75. Goes together with
/// client-go's leader election on the same lease: like there, a lease is expired when it has been
/// seen unchanged for its duration. The command finds the fencing token, which only grows, in
/// KUBECTL_LEASE_TOKEN, and the lease in KUBECTL_LEASE_NAMESPACE, KUBECTL_LEASE_NAME,
/// KUBECTL_LEASE_UID, KUBECTL_LEASE_TRANSITIONS and KUBECTL_LEASE_HOLDER.
#[derive(Debug, Args)]
#[command(after_help = HOLD_EXAMPLES)]
pub struct Hold {
    /// The lease, in the namespace of -n or of the context
    #[arg(value_parser = object_name)]
    pub name: String,

    /// How long others wait if this machine dies; renewed while the command runs
    #[arg(short, long, default_value = "15s", value_parser = kept_duration, value_name = "DURATION", allow_hyphen_values = true)]
    pub duration: Duration,

    #[command(flatten)]
    pub wait: Wait,

    #[command(flatten)]
    pub identity: Identity,

    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

const PARTITIONS_EXAMPLES: &str = "\
Examples:
  # Which nodes are not heard of, and what is stranded on them?
  kubectl lease partitions

  # One node, with its conditions, taints and who holds it
  kubectl lease partitions node-7 -o wide

  # Follow an outage
  kubectl lease partitions -w

  # In a script: is the cluster whole?
  kubectl lease partitions --exit-code >/dev/null || echo 'something is cut off'";

/// List nodes that stopped heartbeating, and the pods stranded on them
///
/// The state of a node follows from its heartbeat (its lease in kube-node-lease, renewed every 10
/// seconds) and from what the node controller says:
///
///   late      no heartbeat for over 40 seconds, not given up yet
///   silent    given up: Ready is Unknown, and what runs there is not known
///   notready  its kubelet is alive and says that it is not ready: a hanging runtime, for one
///   fenced    silent, and declared to be off since then ('fence', the out-of-service taint)
///   back      declared to be off, and heard of again: take the taint off
///   gone      there are pods of it, but no such node object; its machine may run all the same
///
/// A pod on a node that is down is NodeDown. RISK is that of force-deleting it, as 'force-delete'
/// judges it. A cluster without partitions gets one line.
///
/// A controller that was scaled to 0 or suspended by a command that 'force-delete' printed, and not
/// brought back, is told of on stderr, with the command that does so and what to make sure of
/// before; in -o json as 'stopped'.
#[derive(Debug, Args)]
#[command(after_help = PARTITIONS_EXAMPLES, alias = "partition", verbatim_doc_comment,
    mut_arg("selector", |arg| arg.help("Only nodes with these labels, such as key=value,other!=value")),
    mut_arg("field_selector", |arg| arg.help("Only nodes with these fields, such as metadata.name=x")))]
pub struct Partitions {
    /// Only this node
    #[arg(value_parser = object_name)]
    pub node: Option<String>,

    /// Exit with 4 if there are partitions
    #[arg(long, conflicts_with = "watch")]
    pub exit_code: bool,

    #[command(flatten)]
    pub listing: Listing,
}

const FORCE_DELETE_EXAMPLES: &str = "\
Examples:
  # See what force-deleting a pod could do, and what is safer; nothing is deleted
  kubectl lease force-delete pod db-0 -n shop --dry-run

  # Look, ask, and delete
  kubectl lease force-delete pod db-0 -n shop --reason 'node-7 burnt down'

  # Take the safest way instead: evict it, delete it with its grace, or wait for pod GC
  kubectl lease force-delete pod db-0 -n shop --safe

  # All that is stranded on one node
  kubectl lease force-delete --node node-7

  # In a script, after its own fencing of the machine
  kubectl lease force-delete pod db-0 -n shop --confirm --i-have-fenced";

/// Force-delete pods, after a look at what that could do
///
/// Force deletion removes the object and does not wait for the containers: they may still be
/// running, beside those that replace them. So the node's heartbeat, the pod's owner, its volumes,
/// leader leases and disruption budgets are looked at first and shown with the risk, from none to
/// critical, the reasons, and what is safer. What may not be read counts as a risk.
///
/// On a terminal it then asks: for a y, at a high risk for the pod's name, at a critical one for
/// a sentence. Elsewhere it takes --confirm, and at a critical risk --i-have-fenced too. What is
/// deleted is what was shown: a pod that changed meanwhile is not, nor one whose node was heard of
/// meanwhile (exit code 5).
///
/// Without a name, on a terminal, it offers the stranded and stuck pods of the cluster.
#[derive(Debug, Args)]
#[command(after_help = FORCE_DELETE_EXAMPLES)]
pub struct ForceDelete {
    /// The pods: NAME or pod/NAME, in the namespace of -n or of the context
    #[arg(value_name = "POD", value_parser = pod_word)]
    pods: Vec<PodWord>,

    /// All pods of the namespace with these labels
    #[arg(short = 'l', long, value_name = "LABELS", conflicts_with = "node", value_parser = labels)]
    pub selector: Option<String>,

    /// All pods, of any namespace, that are stranded or stuck on this node
    #[arg(long, value_name = "NODE", value_parser = object_name)]
    pub node: Option<String>,

    /// Do what is safest instead, without force, and wait for its effect: evict, delete with its
    /// grace, or wait for pod GC
    #[arg(long)]
    pub safe: bool,

    #[command(flatten)]
    pub consent: Consent,

    /// Why, for the Event that records it
    #[arg(short, long, value_name = "TEXT", value_parser = reason)]
    pub reason: Option<String>,

    /// Wait until it is gone and what replaces it is ready, for no longer than this; forever if not
    /// given
    #[arg(long, num_args = 0..=1, require_equals = true, value_name = "DURATION", value_parser = duration::parse)]
    pub wait: Option<Option<Duration>>,

    #[command(flatten)]
    pub write: Write,
}

impl ForceDelete {
    /// The names of the pods; the word 'pod' before them is the kind, as for kubectl.
    pub fn names(&self) -> BTreeSet<&str> {
        let named = |(n, word): (usize, &'_ PodWord)| n > 0 || !word.is_kind;
        self.pods.iter().enumerate().filter(|of| named(*of)).map(|(_, word)| word.name.as_str()).collect()
    }

    /// What clap cannot tell, for which the kind is a name like any other.
    pub fn check(&self) -> crate::error::Result<()> {
        let other = match (&self.selector, &self.node) {
            (Some(_), _) => "-l",
            (_, Some(_)) => "--node",
            _ => return Ok(()),
        };
        if self.names().is_empty() {
            return Ok(());
        }
        Err(crate::error::Error::usage(format!("pods are either named or chosen by {other}, not both")))
    }
}

/// What the user agrees to.
#[derive(Debug, Args)]
pub struct Consent {
    /// Yes, where there is no terminal to ask on
    #[arg(long)]
    pub confirm: bool,

    /// Yes to a critical risk, with --confirm: the machine is off, or cut off from all that it shares
    #[arg(long, requires = "confirm")]
    pub i_have_fenced: bool,

    /// Go on where force does not help (finalizers keep the object, or it is a mirror pod), over a disruption
    /// budget that has nothing left, or with several pods whose disruption budgets may not be read
    #[arg(long)]
    pub anyway: bool,
}

/// A pod's name, or the word for its kind, which is a name too.
#[derive(Clone, Debug)]
struct PodWord {
    name: String,
    is_kind: bool,
}

fn pod_word(word: &str) -> Result<PodWord, String> {
    const KINDS: [&str; 3] = ["pod", "pods", "po"];
    match word.split_once('/') {
        None => Ok(PodWord { name: object_name(word)?, is_kind: KINDS.contains(&word) }),
        Some((kind, name)) if KINDS.contains(&kind) => match name.split_once('/') {
            None => Ok(PodWord { name: object_name(name)?, is_kind: false }),
            Some(_) => Err(format!("'{name}' is not a name that a pod can have")),
        },
        Some((kind, _)) => Err(format!("only pods can be force-deleted, no {kind}; -n names a namespace")),
    }
}

/// A label selector that selects: an empty one is all there is to the API, and most often a variable
/// that was not set.
fn labels(selector: &str) -> Result<String, String> {
    if selector.trim().is_empty() {
        return Err("an empty selector would mean all there are".into());
    }
    Ok(selector.to_owned())
}

const FENCE_EXAMPLES: &str = "\
Examples:
  # The machine of node-7 is switched off: let its pods go
  kubectl lease fence node-7 --reason 'power supply'

  # And wait until they are gone
  kubectl lease fence node-7 --wait=2m

  # It is repaired and runs again
  kubectl lease fence node-7 --undo";

/// Declare a dead node's machine to be off, so that its pods are let go
///
/// Puts the taint node.kubernetes.io/out-of-service on the node: its pods are ended, pod GC deletes
/// them within half a minute and their volumes are detached at once, without asking the machine. So
/// make sure that it is off, or cut off from all that it shares, and stays so. It is refused while
/// the kubelet still heartbeats, asks for a sentence to be typed (elsewhere than on a terminal it
/// takes --confirm), and holds the node's maintenance lease meanwhile.
#[derive(Debug, Args)]
#[command(after_help = FENCE_EXAMPLES)]
pub struct Fence {
    /// The node
    #[arg(value_parser = object_name)]
    pub node: String,

    /// Take the taint off: the node is back
    #[arg(long)]
    pub undo: bool,

    /// Yes, the machine is off; where there is no terminal to ask on
    #[arg(long)]
    pub confirm: bool,

    /// Yes also where pods there are at a critical risk, or volumes are attached, with --confirm: the machine
    /// is off, or cut off from all that it shares
    #[arg(long, requires = "confirm")]
    pub i_have_fenced: bool,

    /// Why, for others to read
    #[arg(short, long, value_name = "TEXT", value_parser = reason)]
    pub reason: Option<String>,

    /// Wait until the pods there are gone, for no longer than this; forever if not given
    #[arg(long, num_args = 0..=1, require_equals = true, value_name = "DURATION", value_parser = duration::parse)]
    pub wait: Option<Option<Duration>>,

    #[command(flatten)]
    pub identity: Identity,

    #[command(flatten)]
    pub taking: Taking,

    #[command(flatten)]
    pub write: Write,
}

/// Which nodes.
#[derive(Debug, Args)]
#[group(id = "which-nodes")]
pub struct Nodes {
    /// The nodes
    #[arg(value_name = "NODE", conflicts_with_all = ["selector", "all"], value_parser = object_name)]
    pub nodes: Vec<String>,

    /// All nodes with these labels
    #[arg(short = 'l', long, value_name = "LABELS", value_parser = labels)]
    pub selector: Option<String>,

    /// All nodes
    #[arg(long, conflicts_with = "selector")]
    pub all: bool,
}

impl Nodes {
    /// Whether each was named, rather than selected.
    pub fn are_named(&self) -> bool {
        !self.nodes.is_empty()
    }
}

/// Whether to wait for what somebody else holds.
#[derive(Debug, Args)]
pub struct Wait {
    /// Wait until it is free, for no longer than this; forever if not given
    #[arg(long, num_args = 0..=1, require_equals = true, value_name = "DURATION", value_parser = duration::parse)]
    pub wait: Option<Option<Duration>>,
}

/// Who holds.
#[derive(Debug, Args)]
pub struct Identity {
    /// Hold under this name instead of your user name, login and host name
    #[arg(long, value_name = "NAME")]
    pub holder: Option<String>,
}

/// What to take that would be left alone.
#[derive(Debug, Args)]
pub struct Taking {
    /// Take a lease whose fields cannot be judged: a holder without renewTime or duration
    #[arg(long)]
    pub take_malformed: bool,

    /// Take a node that medik8s is working on
    #[arg(long)]
    pub ignore_medik8s: bool,
}

/// How to write.
#[derive(Debug, Args)]
pub struct Write {
    /// Only show what would be done: client decides here, server asks the server to check it too
    #[arg(long, value_enum, num_args = 0..=1, require_equals = true, default_missing_value = "client",
        default_value = "none", hide_default_value = true, value_name = "HOW")]
    pub dry_run: DryRun,

    /// Whose fields they are
    #[arg(long, default_value = "kubectl-lease", value_name = "NAME", hide_short_help = true)]
    pub field_manager: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum DryRun {
    None,
    Client,
    Server,
}

/// A duration that a lease can have: whole seconds, at least one.
fn lease_duration(text: &str) -> Result<Duration, String> {
    let duration = duration::parse(text)?;
    if duration < Duration::from_secs(1) || i32::try_from(duration.as_secs()).is_err() {
        return Err(format!("'{text}' is not between 1s and 68 years"));
    }
    if duration.subsec_nanos() != 0 {
        return Err(format!("'{text}' is not a whole number of seconds"));
    }
    Ok(duration)
}

/// A reason is one line that others read.
fn reason(text: &str) -> Result<String, String> {
    if text.chars().any(char::is_control) {
        return Err("a reason cannot have control characters or line breaks".into());
    }
    Ok(text.to_owned())
}

/// A duration that leaves time to renew.
fn kept_duration(text: &str) -> Result<Duration, String> {
    let duration = lease_duration(text)?;
    if duration < SHORTEST {
        return Err(format!("'{text}' is too short to renew in: at least {}s", SHORTEST.as_secs()));
    }
    Ok(duration)
}

/// A name that the API could give an object: it becomes part of a URL.
fn object_name(name: &str) -> Result<String, String> {
    let name = name.strip_prefix("node/").unwrap_or(name);
    if !is_object_name(name) {
        return Err("not a name that an object can have: lower case letters, digits, '-' and '.'".into());
    }
    Ok(name.to_owned())
}

/// A name that a candidate could have, which are those of keys in a `ConfigMap`: it becomes part of a
/// URL.
fn candidate_name(name: &str) -> Result<String, String> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if name.is_empty() || name.len() > 253 || name.starts_with("..") || name == "." || !name.chars().all(fits)
    {
        return Err("not a name that a candidate can have: letters, digits, '-', '_' and '.'".into());
    }
    Ok(name.to_owned())
}

/// A release of Kubernetes.
fn release(version: &str) -> Result<Versions, String> {
    Versions::of_release(version).ok_or_else(|| "not a version, such as 1.38 or 1.38.2".into())
}

/// What was typed, or what is wrong with it, with a tip where it can be guessed what was meant.
pub fn parse(typed: impl Iterator<Item = OsString>) -> Result<Cli, clap::Error> {
    let words = words(typed);
    Cli::try_parse_from(&words).map_err(|error| match error.kind() {
        ErrorKind::InvalidSubcommand | ErrorKind::UnknownArgument | ErrorKind::MissingRequiredArgument => {
            tips::guess(&words, error)
        }
        _ => error,
    })
}

/// The words typed, with `--wait 5m` made `--wait=5m`: the length of the wait is optional, so clap
/// alone would take `5m` for the next argument.
pub fn words(typed: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut words: Vec<OsString> = Vec::new();
    let mut command = false;
    for word in typed {
        let length =
            word.to_str().filter(|text| text.ends_with(char::is_alphabetic) && duration::parse(text).is_ok());
        match (words.last_mut(), length) {
            (Some(last), Some(length)) if !command && last == "--wait" => last.push(format!("={length}")),
            _ => {
                command |= word == "--";
                words.push(word);
            }
        }
    }
    words
}

/// A path that may be empty: kubectl takes that for not given, clap alone would refuse it.
fn file() -> impl TypedValueParser<Value = PathBuf> {
    OsStringValueParser::new().map(PathBuf::from)
}

const CONNECTION: &str = "Connection, as for kubectl";

/// Which cluster, as whom: kubectl's own flags.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = CONNECTION)]
pub struct Connection {
    /// The kubeconfig file
    #[arg(long, global = true, value_name = "FILE", value_hint = ValueHint::FilePath, value_parser = file())]
    pub kubeconfig: Option<PathBuf>,

    /// The kubeconfig context to use
    #[arg(long, global = true, value_name = "NAME")]
    pub context: Option<String>,

    /// The kubeconfig cluster to use
    #[arg(long, global = true, value_name = "NAME")]
    pub cluster: Option<String>,

    /// The kubeconfig user to use
    #[arg(long, global = true, value_name = "NAME")]
    pub user: Option<String>,

    /// The namespace, for commands that work in one
    #[arg(short, long, global = true, value_name = "NAMESPACE")]
    pub namespace: Option<String>,

    /// Give up on a single request after this long; 0 never does
    #[arg(long, global = true, value_name = "DURATION", default_value = "30s", value_parser = duration::parse)]
    pub request_timeout: Duration,

    /// Act as this user
    #[arg(long = "as", global = true, value_name = "USER")]
    pub impersonate: Option<String>,

    /// Act as a member of this group; may be repeated
    #[arg(long = "as-group", global = true, value_name = "GROUP")]
    pub impersonate_groups: Vec<String>,

    /// Act as the user with this uid
    #[arg(long = "as-uid", global = true, value_name = "UID", hide_short_help = true)]
    pub impersonate_uid: Option<String>,

    /// Act with this extra user information, KEY=VALUE; may be repeated
    #[arg(long = "as-user-extra", global = true, value_name = "KEY=VALUE", hide_short_help = true)]
    pub impersonate_extra: Vec<String>,

    /// The address of the API server
    #[arg(short, long, global = true, value_name = "URL", hide_short_help = true)]
    pub server: Option<String>,

    /// A bearer token to authenticate with
    #[arg(long, global = true, value_name = "TOKEN", hide_short_help = true)]
    pub token: Option<String>,

    /// The user name for basic authentication
    #[arg(long, global = true, value_name = "NAME", hide_short_help = true)]
    pub username: Option<String>,

    /// The password for basic authentication
    #[arg(long, global = true, value_name = "PASSWORD", hide_short_help = true)]
    pub password: Option<String>,

    /// A file with the certificate authority's certificates
    #[arg(long, global = true, value_name = "FILE", value_hint = ValueHint::FilePath, value_parser = file(), hide_short_help = true)]
    pub certificate_authority: Option<PathBuf>,

    /// A file with the client certificate
    #[arg(long, global = true, value_name = "FILE", value_hint = ValueHint::FilePath, value_parser = file(), hide_short_help = true)]
    pub client_certificate: Option<PathBuf>,

    /// A file with the client certificate's key
    #[arg(long, global = true, value_name = "FILE", value_hint = ValueHint::FilePath, value_parser = file(), hide_short_help = true)]
    pub client_key: Option<PathBuf>,

    /// Do not check the server's certificate: anybody can answer in its place
    #[arg(long, global = true, hide_short_help = true, num_args = 0..=1, require_equals = true, default_value = "false",
        default_missing_value = "true", hide_default_value = true, hide_possible_values = true,
        value_name = "BOOL", action = clap::ArgAction::Set)]
    pub insecure_skip_tls_verify: bool,

    /// The name that the server's certificate must have
    #[arg(long, global = true, value_name = "NAME", hide_short_help = true)]
    pub tls_server_name: Option<String>,

    /// The proxy to go through
    #[arg(long, global = true, value_name = "URL", hide_short_help = true)]
    pub proxy_url: Option<String>,

    /// Ask for uncompressed answers
    #[arg(long, global = true, hide_short_help = true, num_args = 0..=1, require_equals = true, default_value = "false",
        default_missing_value = "true", hide_default_value = true, hide_possible_values = true,
        value_name = "BOOL", action = clap::ArgAction::Set)]
    pub disable_compression: bool,
}

impl Connection {
    /// What was typed of it that tells which cluster is meant and as whom, to be typed again; no secrets.
    pub fn typed(&self) -> String {
        let kubeconfig = self.kubeconfig.as_ref().map(|file| file.display().to_string());
        let named = [
            ("kubeconfig", &kubeconfig),
            ("context", &self.context),
            ("cluster", &self.cluster),
            ("user", &self.user),
            ("server", &self.server),
            ("as", &self.impersonate),
            ("as-uid", &self.impersonate_uid),
        ];
        let groups = self.impersonate_groups.iter().map(|group| ("as-group", group));
        let extra = self.impersonate_extra.iter().map(|extra| ("as-user-extra", extra));
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@=".contains(c);
        let quoted = |value: &str| {
            if value.chars().all(plain) {
                value.to_owned()
            } else {
                format!("'{}'", value.replace('\'', r"'\''"))
            }
        };
        let named = named.into_iter().filter_map(|(flag, value)| Some((flag, value.as_ref()?)));
        let named = named.chain(groups).chain(extra);
        named.map(|(flag, value)| format!("--{flag}={}", quoted(value))).collect::<Vec<_>>().join(" ")
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    fn parse(line: &str) -> Result<Cli, clap::Error> {
        Cli::try_parse_from(words(line.split(' ').map(OsString::from)))
    }

    #[test]
    fn a_priority_against_the_version_skew_policy_is_set_by_force_or_anyway() {
        for (flags, forced) in [("", false), (" --force", true), (" --anyway", true)] {
            let cli = parse(&format!("kubectl-lease candidates set-priority cp-1 5{flags}")).unwrap();
            let Command::Candidates(Candidates { verb: Some(CandidatesVerb::SetPriority(args)), .. }) =
                cli.command
            else {
                panic!("{flags}")
            };
            assert_eq!(args.force, forced, "{flags}");
        }
    }

    #[test]
    fn what_was_typed_to_reach_a_cluster_can_be_typed_again() {
        let typed = |words: &str| {
            let words = std::iter::once("kubectl-lease").chain(words.split('|')).chain(["partitions"]);
            Cli::try_parse_from(words).unwrap().connection.typed()
        };
        assert_eq!(Connection::default().typed(), "");
        for (words, again) in [
            ("--context|prod", "--context=prod"),
            ("--context=two words|-n=x", "--context='two words'"),
            ("--user=it's", r"--user='it'\''s'"),
            (
                "--kubeconfig=/a/b|--as=jane@x|--as-group=a|--as-group=b",
                "--kubeconfig=/a/b --as=jane@x --as-group=a --as-group=b",
            ),
            (
                "--as=jane|--as-uid=5e1f|--as-user-extra=team=a|--as-user-extra=team=b",
                "--as=jane --as-uid=5e1f --as-user-extra=team=a --as-user-extra=team=b",
            ),
            ("--token=secret|--server=https://a:6443", "--server=https://a:6443"),
        ] {
            assert_eq!(typed(words), again);
        }
    }

    #[test]
    fn a_wait_may_have_a_length_or_none() {
        let wait = |line: &str| match parse(line).unwrap().command {
            Command::Maint(Maint::Acquire(args)) => (args.wait.wait, args.nodes.nodes),
            Command::Maint(Maint::Run(args)) => (args.wait.wait, args.nodes.nodes),
            _ => panic!("{line}"),
        };
        let nodes = || vec!["node-1".to_owned()];
        let minutes = |n: u64| Some(Some(Duration::from_secs(n * 60)));
        assert_eq!(wait("x maint acquire node-1"), (None, nodes()));
        assert_eq!(wait("x maint acquire --wait node-1"), (Some(None), nodes()));
        assert_eq!(wait("x maint acquire node-1 --wait"), (Some(None), nodes()));
        assert_eq!(wait("x maint acquire --wait 5m node-1"), (minutes(5), nodes()));
        assert_eq!(wait("x maint acquire --wait=5m node-1"), (minutes(5), nodes()));
        assert_eq!(wait("x maint run node-1 --wait 5m -- sleep --wait 5m"), (minutes(5), nodes()));
    }

    #[test]
    fn a_pod_is_named_as_for_kubectl() {
        let names = |line: &str| match parse(line).unwrap().command {
            Command::ForceDelete(args) => args.names().into_iter().map(str::to_owned).collect::<Vec<_>>(),
            _ => panic!("{line}"),
        };
        for line in [
            "x force-delete pod db-0",
            "x force-delete pod/db-0",
            "x force-delete db-0",
            "x force-delete po db-0",
        ] {
            assert_eq!(names(line), ["db-0"], "{line}");
        }
        assert_eq!(names("x force-delete pods db-0 db-1 db-0"), ["db-0", "db-1"]);
        assert!(names("x force-delete pod").is_empty(), "the kind, never a name");
        assert_eq!(names("x force-delete pod pod"), ["pod"], "but only once");
        assert_eq!(names("x force-delete pod pod web-1"), ["pod", "web-1"]);
        let check = |line: &str| match parse(line).unwrap().command {
            Command::ForceDelete(args) => args.check().is_ok(),
            _ => panic!("{line}"),
        };
        for (line, sound) in [
            ("x force-delete pod -l app=db", true),
            ("x force-delete pod --node a", true),
            ("x force-delete pod db-0", true),
            ("x force-delete db-0 -l app=db", false),
            ("x force-delete pod db-0 --node a", false),
        ] {
            assert_eq!(check(line), sound, "{line}");
        }
        assert_eq!(names("x force-delete pod/pod"), ["pod"]);
        for line in [
            "x force-delete deployment/web",
            "x force-delete node/a",
            "x force-delete pod/a/b",
            "x force-delete ../a",
            "x force-delete pod/pod/a",
            "x force-delete pod/node/a",
            "x force-delete default/db-0",
            "x force-delete -l=",
            "x force-delete -l app=db --node a",
            "x partitions -w --exit-code",
            "x apiservers -w --exit-code",
            "x candidates -w --exit-code",
            "x leaders -w --exit-code",
            "x force-delete db-0 --i-have-fenced",
            "x fence",
            "x fence a b",
        ] {
            assert_eq!(parse(line).unwrap_err().exit_code(), 2, "{line}");
        }
    }

    #[test]
    fn flags_take_true_and_false_as_for_kubectl() {
        for (line, watch, headers) in [
            ("x apiservers", false, true),
            ("x apiservers -w", true, true),
            ("x apiservers -w=false", false, true),
            ("x apiservers --watch=true --no-headers=false", true, true),
            ("x apiservers -wo json --no-headers", true, false),
            ("x apiservers --watch name", true, true),
        ] {
            let Command::Apiservers(args) = parse(line).unwrap().command else { panic!("{line}") };
            assert_eq!((args.listing.watch, !args.listing.no_headers), (watch, headers), "{line}");
        }
        for (line, headers) in [("", true), (" --no-headers", false), (" --no-headers=false", true)] {
            let command = |verb: &str| parse(&format!("x {verb}{line}")).unwrap().command;
            let Command::Doctor(args) = command("doctor") else { panic!("{line}") };
            assert_eq!(!args.no_headers, headers, "doctor{line}");
            let Command::Maint(Maint::Status(args)) = command("maint status node-1") else {
                panic!("{line}")
            };
            assert_eq!(!args.no_headers, headers, "maint status{line}");
        }
        assert_eq!(parse("x doctor --print guard --no-headers").unwrap_err().exit_code(), 2);
        assert_eq!(parse("x doctor --print guard --clocks").unwrap_err().exit_code(), 2);
        let connection = |line: &str| parse(line).unwrap().connection;
        assert!(connection("x --insecure-skip-tls-verify apiservers").insecure_skip_tls_verify);
        assert!(!connection("x apiservers --insecure-skip-tls-verify=false").insecure_skip_tls_verify);
        assert!(connection("x apiservers --disable-compression=true").disable_compression);
        assert_eq!(parse("x apiservers --watch=maybe").unwrap_err().exit_code(), 2);
    }

    #[test]
    fn help_and_version_are_words_too() {
        let shown = |line: &str| {
            let error = super::parse(line.split(' ').map(OsString::from)).unwrap_err();
            (error.exit_code(), error.to_string())
        };
        for (words, flag) in [
            ("x help", "x --help"),
            ("x help maint", "x maint --help"),
            ("x help maint acquire", "x maint acquire --help"),
            ("x maint help acquire", "x maint acquire --help"),
            ("x -n help help candidates explain", "x candidates explain --help"),
            ("x -n help maint help", "x maint --help"),
            ("x candidates help set-priority", "x candidates set-priority --help"),
            ("x doctor help", "x doctor --help"),
            ("x help help", "x --help"),
            ("x --insecure-skip-tls-verify help maint", "x maint --help"),
            ("x -nshop help", "x --help"),
            ("x --context prod version", "x --version"),
            // Behind '--' is somebody else's command, which nobody asked to be run.
            ("x help maint run node-1 -- reboot", "x maint run --help"),
            ("x help hold x -- reboot", "x hold --help"),
            ("x version hold x -- reboot", "x --version"),
        ] {
            assert_eq!(shown(words), shown(flag), "{words}");
            assert_eq!(shown(words).0, 0, "{words}");
        }
        assert_eq!(shown("x help frobnicate"), shown("x frobnicate"));
        assert_eq!(shown("x -- help").0, 2);
        assert_eq!(shown("x maint acquire help --bogus").0, 2, "a node may be called so");
        assert_eq!(shown("x maint version").0, 2);
    }

    #[test]
    fn names_and_durations_that_cannot_be_are_refused() {
        for line in [
            "x maint acquire ../pods",
            "x maint acquire Node",
            "x maint acquire a/b",
            "x maint acquire node-1 -d 0",
            "x maint acquire node-1 -d=-5m",
            "x maint acquire node-1 -d 70y",
            "x maint acquire node-1 --all",
            "x maint run node-1",
            "x maint run node-1 -d 2s -- true",
            "x hold",
            "x hold a b -- true",
            "x maint release node-1 --confirm",
        ] {
            assert_eq!(parse(line).unwrap_err().exit_code(), 2, "{line}");
        }
    }

    #[test]
    fn the_overview_has_every_command_and_fits_a_screen() {
        for command in Cli::command().get_subcommands().filter(|command| !command.is_hide_set()) {
            let line = format!("\n  {} ", command.get_name());
            assert!(OVERVIEW.contains(&line), "{line}");
        }
        assert!(OVERVIEW.lines().count() < 24, "and a prompt below it");
        assert!(OVERVIEW.lines().all(|line| line.chars().count() <= 80));
    }

    #[test]
    fn every_command_has_examples_of_itself() {
        fn check(command: &clap::Command, path: &str) {
            for below in command.get_subcommands() {
                let path = format!("{path} {}", below.get_name());
                let text = below.get_after_help().map(ToString::to_string).unwrap_or_default();
                assert!(text.starts_with("Examples:\n  # ") && text.contains(&path), "{path}: {text}");
                check(below, &path);
            }
        }
        check(&Cli::command(), "kubectl lease");
    }

    #[test]
    fn the_definition_is_sound() {
        Cli::command().debug_assert();
    }
}
