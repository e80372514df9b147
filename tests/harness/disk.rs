//! A disk that testifies: every pod of a test appends lines to a file in a directory that all nodes
//! share, and whoever reads them knows who wrote when. Two pods that should never run at once write to
//! the same file.
//!
//! A line is `SECONDS UID NODE`. The seconds are those of `/proc/uptime`, which is one clock for every
//! container of the machine and has hundredths, and which nobody sets.

use std::{
    collections::BTreeMap,
    fmt, fs,
    path::{Path, PathBuf},
};

/// How often a pod writes, in seconds.
pub const PERIOD: f64 = 0.15;

/// A writer that has not written for this long (in hundredths of a second) had stopped meanwhile, for
/// its machine was frozen; a busy machine may keep it waiting for less.
const PAUSE: u64 = 150;

/// A line is written a moment after its time was read.
const TOLERANCE: u64 = 5;

/// Columns of `side_by_side` are so far apart.
const GAP: usize = 3;

/// What a pod does that writes to a file, named as a shell would, until it is told to end. Its uid and node
/// are in its environment.
pub fn script(file: &str) -> String {
    format!(
        "trap 'exit 0' TERM; while :; do read now rest </proc/uptime; \
         echo \"$now $POD_UID $NODE_NAME\" >>\"/disk/{file}\"; sleep {PERIOD}; done"
    )
}

/// One line of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// In hundredths of a second, of the machine's clock.
    pub time: u64,
    pub uid: String,
    pub node: String,
}

/// A pod that wrote, without a pause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Writer {
    pub uid: String,
    pub node: String,
    pub from: u64,
    pub to: u64,
}

/// Two pods that wrote to one file at the same time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Overlap {
    pub from: u64,
    pub to: u64,
    pub first: Writer,
    pub second: Writer,
}

impl Overlap {
    pub fn seconds(&self) -> f64 {
        seconds(self.to - self.from)
    }
}

impl fmt::Display for Overlap {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { first, second, .. } = self;
        write!(
            to,
            "two writers for {:.2}s, from {:.2} to {:.2}: pod {} on {} and pod {} on {}",
            self.seconds(),
            seconds(self.from),
            seconds(self.to),
            first.uid,
            first.node,
            second.uid,
            second.node
        )
    }
}

#[allow(clippy::cast_precision_loss)]
fn seconds(hundredths: u64) -> f64 {
    hundredths as f64 / 100.0
}

/// What was written to a file. A last line that is not whole yet, or was never finished for the power
/// failed, says nothing.
pub fn parse(text: &str) -> Result<Vec<Line>, String> {
    let whole = text.rfind('\n').map_or("", |end| &text[..=end]);
    whole.lines().map(|line| parse_line(line).ok_or_else(|| format!("not a line: '{line}'"))).collect()
}

fn parse_line(line: &str) -> Option<Line> {
    let mut words = line.split(' ');
    let (seconds, hundredths) = words.next()?.split_once('.')?;
    if hundredths.len() != 2 {
        return None;
    }
    let time = seconds.parse::<u64>().ok()? * 100 + hundredths.parse::<u64>().ok()?;
    let (uid, node) = (words.next()?.to_owned(), words.next()?.to_owned());
    (words.next().is_none() && !uid.is_empty() && !node.is_empty()).then_some(Line { time, uid, node })
}

/// Who wrote, and when: a pod with a pause is a writer before it and another after it.
pub fn writers(lines: &[Line]) -> Vec<Writer> {
    let mut times: BTreeMap<(&str, &str), Vec<u64>> = BTreeMap::new();
    for line in lines {
        times.entry((&line.uid, &line.node)).or_default().push(line.time);
    }
    let mut writers = Vec::new();
    for ((uid, node), mut times) in times {
        times.sort_unstable();
        let stretches = times.chunk_by(|one, next| next - one <= PAUSE);
        writers.extend(stretches.map(|stretch| Writer {
            uid: uid.to_owned(),
            node: node.to_owned(),
            from: stretch[0],
            to: stretch[stretch.len() - 1],
        }));
    }
    writers.sort_by(|one, other| (one.from, &one.uid).cmp(&(other.from, &other.uid)));
    writers
}

/// Every stretch of time in which two pods wrote to this file, first to last.
pub fn overlaps(lines: &[Line]) -> Vec<Overlap> {
    let writers = writers(lines);
    let mut found = Vec::new();
    for (n, first) in writers.iter().enumerate() {
        for second in &writers[n + 1..] {
            let (from, to) = (first.from.max(second.from), first.to.min(second.to));
            // One line amid those of another is a moment, and counts; the last of one and the first of
            // the next may bear the same time.
            let at_once = second.from + TOLERANCE < first.to && first.from + TOLERANCE < second.to;
            if first.uid != second.uid && at_once {
                found.push(Overlap { from, to, first: first.clone(), second: second.clone() });
            }
        }
    }
    found.sort_by_key(|overlap| (overlap.from, overlap.to));
    found
}

/// For how many seconds two pods or more wrote to this file at once, if they did.
pub fn at_once(lines: &[Line]) -> Option<f64> {
    let overlaps = overlaps(lines);
    let (mut sum, mut counted) = (0, 0);
    for overlap in &overlaps {
        sum += overlap.to.saturating_sub(overlap.from.max(counted));
        counted = counted.max(overlap.to);
    }
    (!overlaps.is_empty()).then(|| seconds(sum))
}

/// Which pods wrote to some files, a column for each: a row is for as many seconds as that did not change.
/// `+` is between pods that wrote at once.
pub fn side_by_side(files: &[(String, Vec<Line>)]) -> String {
    let columns: Vec<_> = files.iter().map(|(_, lines)| (writers(lines), overlaps(lines))).collect();
    let all = || columns.iter().flat_map(|(writers, _)| writers);
    let Some(begin) = all().map(|writer| writer.from).min() else { return String::new() };
    let end = all().map(|writer| writer.to).max().unwrap_or(begin);
    let cells = |second: u64| -> Vec<String> {
        let start = begin + second * 100;
        let within = |from: u64, to: u64| from < start + 100 && to >= start;
        let cell = |(writers, overlaps): &(Vec<Writer>, Vec<Overlap>)| {
            let wrote = writers.iter().filter(|writer| within(writer.from, writer.to));
            let mut names: Vec<_> = wrote
                .map(|writer| format!("{} on {}", &writer.uid[..writer.uid.len().min(8)], writer.node))
                .collect();
            names.dedup();
            let doubled = overlaps.iter().any(|overlap| within(overlap.from, overlap.to));
            let between = if doubled { " + " } else { ", then " };
            if names.is_empty() { "-".to_owned() } else { names.join(between) }
        };
        columns.iter().map(cell).collect()
    };
    let seconds: Vec<_> = (0..=(end - begin) / 100).map(|second| (second, cells(second))).collect();
    let mut rows =
        vec![[vec!["SECONDS".to_owned()], files.iter().map(|(name, _)| name.clone()).collect()].concat()];
    rows.extend(seconds.chunk_by(|one, next| one.1 == next.1).map(|same| {
        let (first, last) = (same[0].0, same[same.len() - 1].0);
        let time = if first == last { first.to_string() } else { format!("{first}-{last}") };
        [vec![time], same[0].1.clone()].concat()
    }));
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0) + GAP;
    let line = |row: &Vec<String>| {
        let cells = row.iter().enumerate().map(|(column, cell)| format!("{cell:<0$}", width(column)));
        format!("{}\n", cells.collect::<String>().trim_end())
    };
    rows.iter().map(line).collect()
}

/// The directory that the pods of a test share.
pub struct Disk {
    pub folder: PathBuf,
}

impl Disk {
    pub fn new(folder: &Path) -> Self {
        fs::create_dir_all(folder).unwrap();
        Self { folder: folder.to_owned() }
    }

    /// The names of the files that were written to.
    pub fn files(&self) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(&self.folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    pub fn lines(&self, file: &str) -> Vec<Line> {
        parse(&fs::read_to_string(self.folder.join(file)).unwrap_or_default()).unwrap()
    }

    /// Every moment with two writers of any one file, in words.
    pub fn findings(&self) -> Vec<String> {
        let of = |file: &String| {
            overlaps(&self.lines(file)).iter().map(|found| format!("{file}: {found}")).collect::<Vec<_>>()
        };
        self.files().iter().flat_map(of).collect()
    }

    /// How many pods wrote at least, of all files, at every moment between two times.
    pub fn fewest_writers(&self, from: u64, to: u64) -> usize {
        let all: Vec<Writer> = self.files().iter().flat_map(|file| writers(&self.lines(file))).collect();
        let at = |time| all.iter().filter(|writer| (writer.from..=writer.to + PAUSE).contains(&time)).count();
        (from..to).step_by(10).map(at).min().unwrap_or_default()
    }

    /// Who wrote to each file, and when: for the message of a test that fails.
    pub fn describe(&self) -> String {
        let of = |file: &String| {
            let tell = |writer: &Writer| {
                let (from, to) = (seconds(writer.from), seconds(writer.to));
                format!("{file}: pod {} on {} from {from:.2} to {to:.2}\n", writer.uid, writer.node)
            };
            writers(&self.lines(file)).iter().map(tell).collect::<String>()
        };
        self.files().iter().map(of).collect()
    }
}

/// Now, by the clock of the lines, in hundredths of a second.
pub fn now() -> u64 {
    let uptime = fs::read_to_string("/proc/uptime").unwrap();
    parse_line(&format!("{} x x", uptime.split(' ').next().unwrap())).unwrap().time
}
