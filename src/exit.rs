//! The exit codes, the one table of them. Scripts rely on these: they are never renumbered.

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExitCode {
    /// Done.
    Done,
    /// The API or something else failed.
    Failed,
    /// The command line is wrong.
    Usage,
    /// What was named does not exist.
    NotFound,
    /// Held by another, or the condition asked about is false.
    Held,
    /// Conflict: an object changed after it was read.
    LostRace,
    /// Refused, or declined at the prompt.
    Refused,
    /// Not allowed, or not authenticated.
    Forbidden,
    /// The lease was lost while its command ran.
    LeaseLost,
    /// Something that the command started could not be ended, so its lease was not released.
    NotEnded,
    /// Waited as long as it was told to.
    TimedOut,
    /// Ctrl-C.
    Interrupted,
    /// The code of the command that was run.
    Child(u8),
    /// The command died of this signal, SIGINT or SIGQUIT from the terminal, and so does this process.
    Killed(i32),
}

impl ExitCode {
    /// Those of our own.
    pub const ALL: [Self; 12] = [
        Self::Done,
        Self::Failed,
        Self::Usage,
        Self::NotFound,
        Self::Held,
        Self::LostRace,
        Self::Refused,
        Self::Forbidden,
        Self::LeaseLost,
        Self::NotEnded,
        Self::TimedOut,
        Self::Interrupted,
    ];

    /// For a condition that was asked about.
    pub fn of(condition: bool) -> Self {
        if condition { Self::Done } else { Self::Held }
    }

    pub fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed => 1,
            Self::Usage => 2,
            Self::NotFound => 3,
            Self::Held => 4,
            Self::LostRace => 5,
            Self::Refused => 6,
            Self::Forbidden => 7,
            Self::LeaseLost => 75, // EX_TEMPFAIL: try again later
            Self::NotEnded => 77,  // EX_NOPERM
            Self::TimedOut => 124, // as timeout(1) does
            Self::Interrupted => 130,
            Self::Child(code) => code,
            Self::Killed(signal) => 128_u8.saturating_add(u8::try_from(signal).unwrap_or(u8::MAX)),
        }
    }

    /// What it means, as the table of docs/exit-codes.md says it.
    pub fn meaning(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Failed => "API or other error",
            Self::Usage => "usage",
            Self::NotFound => "not found",
            Self::Held => "held by another, or condition false",
            Self::LostRace => "conflict: an object changed after it was read",
            Self::Refused => "refused or declined",
            Self::Forbidden => "forbidden or not authenticated",
            Self::LeaseLost => "lease lost while running",
            Self::NotEnded => "a process of the command could not be ended, its lease was not released",
            Self::TimedOut => "timed out",
            Self::Interrupted => "interrupted",
            Self::Child(_) | Self::Killed(_) => "the command's own",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_codes_are_those_that_scripts_rely_on() {
        let codes: Vec<u8> = ExitCode::ALL.iter().map(|exit| exit.code()).collect();
        assert_eq!(codes, [0, 1, 2, 3, 4, 5, 6, 7, 75, 77, 124, 130]);
    }

    #[test]
    fn the_documentation_has_the_same_table() {
        let page = include_str!("../docs/exit-codes.md");
        let found: Vec<&str> = page
            .lines()
            .filter(|line| {
                line.strip_prefix("| ").is_some_and(|row| row.starts_with(|c: char| c.is_ascii_digit()))
            })
            .collect();
        let expected = ExitCode::ALL.map(|exit| format!("| {} | {} |", exit.code(), exit.meaning()));
        assert_eq!(found, expected, "docs/exit-codes.md");
    }
}
