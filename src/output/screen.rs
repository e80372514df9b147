//! What `--watch` shows.
//!
//! On a terminal the table is redrawn in place, above a line that says how the connection is and
//! below it the last few changes. In a pipe, or on a terminal that cannot redraw, the first table is
//! followed by a line for each change, and with `-o json|yaml|name` by a document or name for each.

use std::{collections::VecDeque, fmt::Write as _};

use console::{Term, truncate_str};

use super::{
    listing::{Change, Format, Item},
    printer::{Printer, names},
    sanitise, structured,
    table::{self, Cell, Tone},
};
use crate::error::Result;
use kube_leases::rules::time::ServerTime;

/// How many changes stay on the screen, however long the table is.
const LOG_LINES: usize = 5;
/// So many are kept for a screen that has room for them.
const LOG_KEPT: usize = 100;
/// The table's share of the smallest screen: its headers and a row, or how many are hidden.
const FEWEST_ROWS: usize = 2;

const NOTHING_YET: &str = "nothing matches yet, waiting";

/// How the connection is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Link {
    Up,
    /// Lost: what is shown is as of `since`.
    Down {
        since: ServerTime,
        why: String,
    },
}

/// The view of one watch.
pub struct Screen<'a> {
    printer: &'a mut Printer,
    format: Format,
    headers: bool,
    /// How many lines of the terminal the last frame took, and what size the terminal had.
    drawn: usize,
    size: (u16, u16),
    warnings: Vec<String>,
    /// What is to be known now; of each the first line fits on the screen.
    remarks: Vec<String>,
    begun: bool,
    log: VecDeque<(ServerTime, Change)>,
    told: Link,
}

impl<'a> Screen<'a> {
    pub fn new(printer: &'a mut Printer, format: Format, headers: bool) -> Self {
        Self {
            printer,
            format,
            headers,
            drawn: 0,
            size: (0, 0),
            warnings: Vec::new(),
            remarks: Vec::new(),
            begun: false,
            log: VecDeque::new(),
            told: Link::Up,
        }
    }

    /// Something that may be wrong: a part of the screen from now on, or a line on stderr.
    pub fn warn(&mut self, warning: String) {
        if self.redraws() {
            // Each new connection brings the server's warnings again.
            if !self.warnings.contains(&warning) {
                self.warnings.push(warning);
            }
        } else {
            self.printer.warn(&warning);
        }
    }

    /// What is to be known as long as it is said: a part of the screen, or once on stderr.
    pub fn remark(&mut self, remarks: Vec<String>) {
        if !self.redraws() {
            for remark in &remarks {
                self.printer.warn(remark);
            }
        }
        self.remarks = remarks;
    }

    fn is_tabular(&self) -> bool {
        matches!(self.format, Format::Table | Format::Wide)
    }

    fn redraws(&self) -> bool {
        self.is_tabular() && self.printer.is_terminal()
    }

    /// Shows the state of things and what led to it. The first call shows the beginning: its
    /// changes, everything being new, are not told.
    pub fn show<I: Item>(
        &mut self,
        items: &[I],
        changes: &[(Change, &I)],
        link: &Link,
        summary: &str,
        now: ServerTime,
    ) -> Result<()> {
        let first = !std::mem::replace(&mut self.begun, true);
        if self.redraws() {
            if !first {
                self.log.extend(changes.iter().map(|(change, _)| (now, change.clone())));
                self.log.drain(..self.log.len().saturating_sub(LOG_KEPT));
            }
            return self.redraw(items, link, summary, now);
        }
        self.tell_of_link(link);
        if first {
            return self.begin(items, now);
        }
        for (change, item) in changes {
            let text = if self.is_tabular() {
                let Change { subject, what, detail, .. } = change;
                let text = format!("{:.0}   {subject}   {what}   {detail}", now.0);
                sanitise::line(text.trim_end()).into_owned() + "\n"
            } else {
                self.document(*item, Some(change))
            };
            self.printer.write(&text)?;
        }
        Ok(())
    }

    fn begin<I: Item>(&mut self, items: &[I], now: ServerTime) -> Result<()> {
        if items.is_empty() {
            self.printer.note(NOTHING_YET);
        }
        if self.is_tabular() {
            return self.printer.listing(items, self.format, self.headers, now);
        }
        for item in items {
            let text = self.document(item, None);
            self.printer.write(&text)?;
        }
        Ok(())
    }

    /// One item of a stream of documents.
    fn document<I: Item>(&self, item: &I, change: Option<&Change>) -> String {
        if self.format == Format::Name {
            return names(std::slice::from_ref(item));
        }
        let mut fields = item.document();
        if let Some(change) = change {
            fields.insert("change".into(), change.what.into());
        }
        let document = self.format.document(&structured::document(I::KIND, fields));
        if self.format == Format::Yaml { format!("---\n{document}") } else { document }
    }

    fn tell_of_link(&mut self, link: &Link) {
        if self.told == *link {
            return;
        }
        match link {
            Link::Up => self.printer.note("connected again"),
            Link::Down { why, .. } => {
                self.printer.note(&format!("connection lost, trying again: {why}"));
            }
        }
        self.told = link.clone();
    }

    fn redraw<I: Item>(&mut self, items: &[I], link: &Link, summary: &str, now: ServerTime) -> Result<()> {
        let size = Term::stdout().size();
        // A terminal that does not say how large it is.
        let (height, width) = if size.0 == 0 || size.1 == 0 { (24, 80) } else { size };
        // The last line stays free: a line break there would scroll.
        let height = usize::from(height).saturating_sub(1).max(1);
        let look = self.printer.look();
        let colour = look.colour;

        let clock = |time: ServerTime| format!("{:.0}", time.0)[11..].to_owned();
        let mut below = vec![match link {
            Link::Up if items.is_empty() => Tone::Faint.paint(&format!("{NOTHING_YET}; Ctrl-C ends"), colour),
            Link::Up => Tone::Faint.paint(&format!("{summary}; watching, Ctrl-C ends"), colour),
            Link::Down { since, why } => Tone::Bad.paint(
                &format!("connection lost, shown as of {}, trying again: {why}", clock(*since)),
                colour,
            ),
        }];
        let remarks = self.remarks.iter().filter_map(|remark| remark.lines().next());
        below.extend(self.warnings.iter().map(String::as_str).chain(remarks).map(|warning| {
            format!("{}{}", Tone::Doubtful.paint("warning: ", colour), sanitise::line(warning))
        }));
        let table = self.printer.table(items, self.format, self.headers, now);
        let mut lines: Vec<&str> = table.lines().collect();
        // The older changes are shown where the table leaves room.
        let free = height.saturating_sub(lines.len() + 1 + below.len());
        let log: Vec<_> = self
            .log
            .iter()
            .skip(self.log.len().saturating_sub(free.max(LOG_LINES)))
            .map(|(time, change)| {
                vec![
                    Cell::new(clock(*time)).tone(Tone::Faint),
                    Cell::new(&change.subject),
                    Cell::new(change.what).tone(change.tone),
                    Cell::new(&change.detail),
                ]
            })
            .collect();
        below.extend(table::render(None, &log, look).lines().map(str::to_owned));

        let hidden_note;
        below.truncate(height.saturating_sub(FEWEST_ROWS + 1).max(1));
        let room = height.saturating_sub(below.len() + 1).max(FEWEST_ROWS);
        if lines.len() > room {
            hidden_note = format!("… and {} more", lines.len() - room + 1);
            lines.truncate(room - 1);
            lines.push(&hidden_note);
        }
        lines.push("");
        lines.extend(below.iter().map(String::as_str));
        lines.truncate(height);

        let mut frame = String::new();
        if self.drawn > 0 && self.size != size {
            // The terminal may have wrapped or moved the lines: where they are now is not known.
            frame.push_str("\x1b[2J\x1b[H");
        } else if self.drawn > 0 {
            // Up to the first line of the last frame, then clear from there on.
            let _ = write!(frame, "\x1b[{}A\r\x1b[J", self.drawn);
        }
        for line in &lines {
            frame.push_str(&truncate_str(line, usize::from(width), "…"));
            frame.push('\n');
        }
        (self.drawn, self.size) = (lines.len(), size);
        self.printer.write(&frame)
    }
}
