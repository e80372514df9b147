//! Which signals this process may listen to, and what they are.

use nix::sys::signal::{SigSet, Signal};
use tokio::signal::unix::SignalKind;

/// Whether a signal asks a process to end.
pub fn asks_to_end(number: i32) -> bool {
    [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup(), SignalKind::quit()]
        .contains(&SignalKind::from_raw(number))
}

/// A signal mask as a word for another process.
pub(crate) fn mask_to_word(mask: &SigSet) -> String {
    mask.iter().map(|signal| (signal as i32).to_string()).collect::<Vec<_>>().join(",")
}

/// The signal mask that another process wrote.
pub fn mask_from_word(word: &str) -> SigSet {
    word.split(',').filter_map(|number| Signal::try_from(number.parse::<i32>().ok()?).ok()).collect()
}

/// Whether this process was started with a signal ignored: SIGHUP by nohup, SIGINT and SIGQUIT for the
/// background jobs of a script. To listen for it would end that, here and in what is started from
/// here, which inherits the ignoring. The answer stays the same as long as it is asked before anything listens.
pub fn is_ignored(kind: SignalKind) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    is_in_mask(&status, kind)
}

/// The signals that are ignored are a bit mask of which SIGHUP, number 1, is the lowest.
fn is_in_mask(status: &str, kind: SignalKind) -> bool {
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    u32::try_from(kind.as_raw_value() - 1).is_ok_and(|bit| mask.checked_shr(bit).is_some_and(|m| m & 1 == 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mask_survives_being_a_word() {
        for mask in [SigSet::empty(), SigSet::all(), SigSet::from(Signal::SIGHUP) | Signal::SIGTERM] {
            assert_eq!(mask_from_word(&mask_to_word(&mask)), mask);
        }
    }

    #[test]
    fn the_mask_of_ignored_signals() {
        let status =
            "Name:\tx\nSigBlk:\tffffffffffffffff\nSigIgn:\t0000000000001003\nSigCgt:\t0000000000004000\n";
        assert!(is_in_mask(status, SignalKind::hangup()));
        assert!(is_in_mask(status, SignalKind::interrupt()));
        for kind in [SignalKind::quit(), SignalKind::terminate(), SignalKind::user_defined1()] {
            assert!(!is_in_mask(status, kind), "{kind:?}");
        }
        assert!(!is_in_mask("", SignalKind::hangup()));
    }
}
