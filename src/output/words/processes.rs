//! What becomes of a command that runs under leases.

use kube_leases::protocols::child::{Loss, Warning};
use nix::sys::signal::Signal;

/// Why a command has to end.
pub fn loss(loss: &Loss) -> String {
    match loss {
        Loss::Lease(why) => why.to_string(),
        Loss::NotRenewed => "its lease could not be renewed in time".to_owned(),
        Loss::WatchdogKilled => "the watchdog that guards the command was killed".to_owned(),
    }
}

/// What keeps a command from ending.
pub fn warning(warning: &Warning) -> String {
    match warning {
        Warning::WithoutTerminal => {
            "the command was stopped: it needs the terminal, which it does not get in the background, in a \
             pipeline or beside other processes of a script; press Ctrl-C, then run it alone in the foreground \
             or redirect its input"
                .to_owned()
        }
        Warning::Surviving(processes) => format!(
            "the command has ended, but {processes} could not be ended: the lease is kept until it is gone; \
             an interrupt leaves it behind, and the lease unreleased"
        ),
        Warning::Unheard(number, processes) => {
            let signal = Signal::try_from(*number).map_or("the signal", Signal::as_str);
            format!("{signal} could not be sent to {processes}: not permitted")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kube_leases::Lost;

    #[test]
    fn words() {
        let lost = Lost::Deleted { name: "node-1".into() };
        for (words, is) in [
            (loss(&Loss::Lease(lost)), "'node-1' was deleted"),
            (loss(&Loss::NotRenewed), "its lease could not be renewed in time"),
            (
                warning(&Warning::Unheard(15, "1 (x)".into())),
                "SIGTERM could not be sent to 1 (x): not permitted",
            ),
            (
                warning(&Warning::Unheard(99, "1 (x)".into())),
                "the signal could not be sent to 1 (x): not permitted",
            ),
        ] {
            assert_eq!(words, is);
        }
    }
}
