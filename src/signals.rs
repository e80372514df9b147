//! Which signals this process may listen to.

use tokio::signal::unix::SignalKind;

/// Whether this process was started with a signal ignored: SIGHUP by nohup, SIGINT and SIGQUIT for the
/// background jobs of a script. To listen for it would end that, here and in what is started from
/// here, which inherits the ignoring. The answer stays the same as long as everybody asks first.
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
