//! What tests that do something else each time have in common: dice that a seed makes fall the same way
//! again, and a folder that tells of a failure.

#![allow(dead_code, clippy::unwrap_used, clippy::print_stderr)]

use std::{
    fs,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use crate::harness::random;

/// A number from the environment.
pub fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap())
}

/// What the dice begin with: `KUBECTL_LEASE_SEED`, or another each time, and it is said which.
pub fn seed() -> u64 {
    let seed = number("KUBECTL_LEASE_SEED").unwrap_or_else(|| u64::from_str_radix(&random(), 16).unwrap());
    eprintln!("KUBECTL_LEASE_SEED={seed}");
    seed
}

pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, limit: u64) -> u64 {
        // splitmix64
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut n = self.0;
        n = (n ^ (n >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        n = (n ^ (n >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (n ^ (n >> 31)) % limit
    }

    pub fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    pub fn millis(&mut self, from: u64, to: u64) -> Duration {
        Duration::from_millis(from + self.below(to - from))
    }

    pub fn of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[usize::try_from(self.below(all.len() as u64)).unwrap()]
    }
}

/// A folder that goes when the test has passed, and is told of when it has not.
pub struct Kept(pub PathBuf);

impl Kept {
    pub fn new(name: &str, seed: u64) -> Self {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{seed}-{}", random()));
        fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        if thread::panicking() || std::env::var_os("KUBECTL_LEASE_HISTORY_KEEP").is_some() {
            eprintln!("kept: {}", self.0.display());
        } else {
            let _ = fs::remove_dir_all(&self.0);
        }
    }
}
