//! Ages as kubectl's users read them.

use jiff::SignedDuration;

/// An age as kubectl's tables write it: two units where the second one still matters.
///
/// The steps are those of apimachinery's `duration.HumanDuration`; unlike there, an instant of the
/// future reads `in 5s` instead of `<invalid>`.
pub fn age(age: SignedDuration) -> String {
    let seconds = age.as_secs();
    if seconds < 0 {
        return format!("in {}", human(seconds.unsigned_abs()));
    }
    human(seconds.unsigned_abs())
}

/// When it was: `5s ago`; an instant of the future is `in 5s`.
pub fn ago(since: SignedDuration) -> String {
    if since.as_secs() < 0 { age(since) } else { format!("{} ago", age(since)) }
}

fn human(seconds: u64) -> String {
    const MINUTE: u64 = 60;
    const HOUR: u64 = 60 * MINUTE;
    const DAY: u64 = 24 * HOUR;
    const YEAR: u64 = 365 * DAY;

    let two = |big: u64, big_unit: &str, small: u64, small_unit: &str| match small {
        0 => format!("{big}{big_unit}"),
        _ => format!("{big}{big_unit}{small}{small_unit}"),
    };
    match seconds {
        s if s < 2 * MINUTE => format!("{s}s"),
        s if s < 10 * MINUTE => two(s / MINUTE, "m", s % MINUTE, "s"),
        s if s < 3 * HOUR => format!("{}m", s / MINUTE),
        s if s < 8 * HOUR => two(s / HOUR, "h", s % HOUR / MINUTE, "m"),
        s if s < 2 * DAY => format!("{}h", s / HOUR),
        s if s < 8 * DAY => two(s / DAY, "d", s % DAY / HOUR, "h"),
        s if s < 2 * YEAR => format!("{}d", s / DAY),
        s if s < 8 * YEAR => two(s / YEAR, "y", s % YEAR / DAY, "d"),
        s => format!("{}y", s / YEAR),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_read_as_in_kubectl() {
        for (seconds, text) in [
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (192, "3m12s"),
            (599, "9m59s"),
            (600, "10m"),
            (10_799, "179m"),
            (10_800, "3h"),
            (12_000, "3h20m"),
            (28_800, "8h"),
            (172_799, "47h"),
            (172_800, "2d"),
            (180_000, "2d2h"),
            (691_200, "8d"),
            (63_071_999, "729d"),
            (63_072_000, "2y"),
            (70_000_000, "2y80d"),
            (300_000_000, "9y"),
            (-5, "in 5s"),
        ] {
            assert_eq!(age(SignedDuration::from_secs(seconds)), text);
        }
    }
}
