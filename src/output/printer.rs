//! The one door to stdout and stderr.
//!
//! stdout is for what can be piped: tables, documents, names. Everything said to the person (notes,
//! warnings, errors, hints) goes to stderr.

use std::{
    borrow::Cow,
    collections::BTreeSet,
    io::{self, IsTerminal as _, Write as _},
    sync::{Arc, Mutex, PoisonError},
};

use anstream::{AutoStream, ColorChoice};
use serde_json::Value;

use super::{
    listing::{Format, Item},
    sanitise, structured,
    table::{self, Look, Tone},
};
use crate::{error::Error, error::Result};
use kube_leases::rules::time::ServerTime;

/// Writes for one run of the program.
pub struct Printer {
    out: Box<dyn io::Write + Send>,
    err: Box<dyn io::Write + Send>,
    /// Whether stdout is a terminal on which a watch may redraw.
    terminal: bool,
    colour_out: bool,
    colour_err: bool,
    done_on: DoneOn,
    warned: BTreeSet<String>,
}

/// Where it is said what was done.
#[derive(PartialEq, Eq)]
enum DoneOn {
    Stdout,
    Stderr,
}

/// What a printer has written, see [`Printer::recording`].
#[derive(Clone, Default)]
pub struct Recording(Arc<Mutex<Vec<u8>>>);

impl Recording {
    /// All of it, so far.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().unwrap_or_else(PoisonError::into_inner)).into_owned()
    }
}

impl io::Write for Recording {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A decision's ground, see [`Printer::brief`].
pub struct Brief<'a> {
    pub title: &'a str,
    pub verdict: &'a str,
    pub tone: Tone,
    pub lines: &'a [(&'static str, String)],
    /// Each item in its lines: a further one is indented below the first.
    pub lists: &'a [(&'static str, &'a [Vec<String>])],
}

impl Printer {
    /// For the process's own streams; colour as the terminal, `NO_COLOR` and `CLICOLOR` say.
    pub fn stdio() -> Self {
        let (out, err) = (io::stdout(), io::stderr());
        let colour = |choice| choice != ColorChoice::Never;
        let terminal = out.is_terminal() && std::env::var_os("TERM").is_none_or(|term| term != "dumb");
        Self {
            terminal,
            colour_out: colour(AutoStream::choice(&out)),
            colour_err: colour(AutoStream::choice(&err)),
            // On Windows this turns on, or stands in for, the terminal's escape sequences. A pipe
            // gets none, so there is nothing to look for in what it gets.
            out: if terminal { Box::new(AutoStream::always(out)) } else { Box::new(out) },
            err: Box::new(AutoStream::always(err)),
            done_on: DoneOn::Stdout,
            warned: BTreeSet::new(),
        }
    }

    /// For a test: what would go to pipes, as stdout and stderr.
    pub fn recording() -> (Self, [Recording; 2]) {
        let [out, err] = <[Recording; 2]>::default();
        let printer = Self {
            out: Box::new(out.clone()),
            err: Box::new(err.clone()),
            terminal: false,
            colour_out: false,
            colour_err: false,
            done_on: DoneOn::Stdout,
            warned: BTreeSet::new(),
        };
        (printer, [out, err])
    }

    pub(super) fn is_terminal(&self) -> bool {
        self.terminal
    }

    pub(super) fn look(&self) -> Look {
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"].map(std::env::var_os);
        let bars = self.terminal && has_blocks(locale.iter().flatten().map(|it| it.to_string_lossy()));
        Look { colour: self.colour_out, bars, width: None }
    }

    /// Writes text that this module has made.
    pub(super) fn write(&mut self, text: &str) -> Result<()> {
        self.out.write_all(text.as_bytes())?;
        self.out.flush()?;
        Ok(())
    }

    /// A list of things, in the format asked for.
    pub fn listing<I: Item>(
        &mut self,
        items: &[I],
        format: Format,
        headers: bool,
        now: ServerTime,
    ) -> Result<()> {
        let text = match format {
            Format::Table | Format::Wide => self.table(items, format, headers, now) + "\n",
            Format::Name => names(items),
            Format::Json | Format::Yaml => format.document(&Format::list(items, now)),
        };
        self.write(&text)
    }

    /// The one thing that was asked for by name.
    pub fn single<I: Item>(
        &mut self,
        item: &I,
        format: Format,
        headers: bool,
        now: ServerTime,
    ) -> Result<()> {
        match format {
            Format::Json | Format::Yaml => {
                let document = structured::document(I::KIND, item.document());
                self.write(&format.document(&document))
            }
            _ => self.listing(std::slice::from_ref(item), format, headers, now),
        }
    }

    /// A document of its own kind.
    pub fn document(&mut self, kind: &str, fields: Value, format: Format) -> Result<()> {
        let Value::Object(fields) = fields else { return Ok(()) };
        self.write(&format.document(&structured::document(kind, fields)))
    }

    pub(super) fn table<I: Item>(
        &self,
        items: &[I],
        format: Format,
        headers: bool,
        now: ServerTime,
    ) -> String {
        let wide = format == Format::Wide;
        let rows: Vec<_> = items.iter().flat_map(|item| item.rows(now, wide)).collect();
        let width = super::width();
        let look = Look { width: width.filter(|_| I::WRAPS && self.terminal), ..self.look() };
        table::render(headers.then(|| I::headers(wide)), &rows, look)
    }

    /// Text for a program, as it is.
    pub fn raw(&mut self, text: &str) -> Result<()> {
        self.write(text)
    }

    /// Keeps stdout for documents, which will have what was done.
    pub fn keep_for_documents(&mut self) {
        self.done_on = DoneOn::Stderr;
    }

    /// What was done, a line each.
    pub fn done(&mut self, line: &str) -> Result<()> {
        if self.done_on == DoneOn::Stderr {
            self.note(line);
            return Ok(());
        }
        let line = sanitise::line(line).into_owned() + "\n";
        self.write(&line)
    }

    /// Something worth knowing.
    pub fn note(&mut self, message: &str) {
        self.say("", Tone::Plain, message);
    }

    /// The summary before a confirmation: a title with the word that counts, lines with a
    /// label each, and lists below them.
    pub fn brief(&mut self, brief: &Brief<'_>) {
        let colour = self.colour_err;
        let width = brief.lines.iter().map(|(label, _)| label.len()).max().unwrap_or(0);
        let title = sanitise::line(brief.title);
        let mut lines = vec![format!("{title}: {}", brief.tone.paint(brief.verdict, colour))];
        lines.extend(brief.lines.iter().map(|(label, line)| {
            let label = Tone::Faint.paint(&format!("{label:width$}"), colour);
            format!("  {label}   {}", sanitise::line(line))
        }));
        for (heading, items) in brief.lists.iter().filter(|(_, items)| !items.is_empty()) {
            lines.push(format!("  {}", Tone::Faint.paint(heading, colour)));
            lines.extend(items.iter().map(|item| {
                let item: Vec<_> = item.iter().map(|line| sanitise::line(line)).collect();
                format!("  {}", item.join("\n       "))
            }));
        }
        let text = lines.join("\n") + "\n";
        let _ = self.err.write_all(text.as_bytes());
        let _ = self.err.flush();
    }

    /// Something that may be wrong; each is said once.
    pub fn warn(&mut self, message: &str) {
        if self.warned.insert(message.to_owned()) {
            self.say("warning: ", Tone::Doubtful, message);
        }
    }

    /// What to do about what was just said.
    pub fn hint(&mut self, message: &str) {
        self.say("hint: ", Tone::Faint, message);
    }

    /// What went wrong, and what to do next.
    pub fn error(&mut self, error: &Error) {
        if error.is_silent() {
            return;
        }
        self.say("error: ", Tone::Bad, &error.to_string());
        if let Some(hint) = error.hint() {
            self.hint(&hint);
        }
    }

    /// Lines after the first are indented, so that no message can pretend to be another one.
    fn say(&mut self, label: &str, tone: Tone, message: &str) {
        let lines: Vec<_> = message.lines().map(sanitise::line).collect();
        let label = if label.is_empty() { String::new() } else { tone.paint(label, self.colour_err) };
        // A failed write to stderr cannot be reported anywhere.
        let _ = writeln!(self.err, "{label}{}", lines.join("\n  "));
        let _ = self.err.flush();
    }
}

/// Whether a terminal of this locale has block characters: the first variable that is set counts. Where none is, as
/// in many containers, the terminal is taken for one of today.
fn has_blocks<'a>(locale: impl IntoIterator<Item = Cow<'a, str>>) -> bool {
    locale.into_iter().find(|value| !value.is_empty()).is_none_or(|value| {
        let value = value.to_lowercase();
        value.contains("utf-8") || value.contains("utf8")
    })
}

pub(super) fn names<I: Item>(items: &[I]) -> String {
    items.iter().fold(String::new(), |text, item| text + &sanitise::line(&item.resource()) + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_drawn_where_the_locale_has_them() {
        for (locale, drawn) in [
            (&[][..], true),
            (&["C.UTF-8"], true),
            (&["en_US.utf8"], true),
            (&["C"], false),
            (&["POSIX"], false),
            (&["de_DE.ISO-8859-1"], false),
            // The first that is set counts.
            (&["C", "en_US.UTF-8"], false),
            (&["", "en_US.UTF-8"], true),
        ] {
            assert_eq!(has_blocks(locale.iter().map(|it| Cow::Borrowed(*it))), drawn, "{locale:?}");
        }
    }
}
