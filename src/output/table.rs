//! Tables as kubectl prints them: no borders, upper-case headers, colour only to mark a state.

use std::{borrow::Cow, time::Duration};

use comfy_table::{Attribute, Color, ContentArrangement, presets};
use owo_colors::OwoColorize;

use super::sanitise;

/// What a piece of text means; the colour follows from it and says nothing that the word does not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tone {
    #[default]
    Plain,
    Good,
    Doubtful,
    Bad,
    Faint,
}

impl Tone {
    /// `text` made harmless and, where colour is wanted, coloured.
    pub fn paint(self, text: &str, colour: bool) -> String {
        let text = sanitise::line(text);
        if !colour {
            return text.into_owned();
        }
        match self {
            Self::Plain => text.into_owned(),
            Self::Good => text.green().to_string(),
            Self::Doubtful => text.yellow().to_string(),
            Self::Bad => text.red().to_string(),
            Self::Faint => text.dimmed().to_string(),
        }
    }
}

/// One field of a row: plain text that is made harmless when it is drawn.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cell {
    pub text: String,
    pub tone: Tone,
    /// How much is left of something, in eighths; a small bar on a terminal.
    gauge: Option<u8>,
}

/// What the place of the table can show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Look {
    pub colour: bool,
    pub bars: bool,
    /// Where lines are wrapped.
    pub width: Option<u16>,
}

impl Cell {
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// kubectl's word for a field that is not there.
    pub fn or_none(text: Option<impl Into<String>>) -> Self {
        text.map_or_else(|| Self::new("<none>"), Self::new)
    }

    /// With a bar for how much of a whole is left.
    #[must_use]
    pub fn gauge(self, left: Duration, whole: Duration) -> Self {
        let eighths = 8.0 * left.as_secs_f64() / whole.as_secs_f64().max(1.0);
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        Self { gauge: Some(eighths.ceil().clamp(0.0, 8.0) as u8), ..self }
    }

    #[must_use]
    pub fn tone(self, tone: Tone) -> Self {
        Self { tone, ..self }
    }
}

/// Lays rows out below their headers, a line each, without the final line break.
pub fn render(headers: Option<&[&str]>, rows: &[Vec<Cell>], look: Look) -> String {
    let mut table = comfy_table::Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    if let Some(width) = look.width {
        table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
    }
    if look.colour {
        table.enforce_styling();
    } else {
        table.force_no_tty();
    }
    if let Some(headers) = headers {
        table.set_header(headers);
    }
    for row in rows {
        table.add_row(row.iter().map(|cell| drawn(cell, look)));
    }
    let last = table.column_count().saturating_sub(1);
    for (n, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, if n == last { 0 } else { 3 }));
    }
    table.trim_fmt()
}

fn drawn(cell: &Cell, look: Look) -> comfy_table::Cell {
    // A cell without width would be laid out as no cell at all.
    let text = if cell.text.is_empty() { "<none>".into() } else { sanitise::line(&cell.text) };
    let drawn = comfy_table::Cell::new(match cell.gauge {
        Some(eighths) if look.bars => {
            let full = usize::from(eighths);
            Cow::Owned(format!("{}{} {text}", "█".repeat(full), "░".repeat(8 - full)))
        }
        _ => text,
    });
    match cell.tone {
        Tone::Plain => drawn,
        Tone::Good => drawn.fg(Color::DarkGreen),
        Tone::Doubtful => drawn.fg(Color::DarkYellow),
        Tone::Bad => drawn.fg(Color::DarkRed),
        Tone::Faint => drawn.add_attribute(Attribute::Dim),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Look = Look { colour: false, bars: false, width: None };
    const FANCY: Look = Look { colour: true, bars: true, width: None };

    #[test]
    fn what_is_left_is_a_bar_on_a_terminal_only() {
        let minutes = |n: u64| Duration::from_secs(n * 60);
        for (left, bar) in
            [(30, "████████"), (15, "████░░░░"), (1, "█░░░░░░░"), (0, "░░░░░░░░"), (90, "████████")]
        {
            let rows = vec![vec![Cell::new("x").gauge(minutes(left), minutes(30))]];
            assert_eq!(render(None, &rows, FANCY), format!("{bar} x"));
            assert_eq!(render(None, &rows, PLAIN), "x");
        }
    }

    #[test]
    fn sentences_are_wrapped_between_words() {
        let rows =
            vec![vec![Cell::new("rights: maint"), Cell::new("you may not list leases in kube-system")]];
        let text = render(None, &rows, Look { width: Some(36), ..PLAIN });
        let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
        assert_eq!(
            lines,
            ["rights: maint   you may not list", "                leases in", "                kube-system"]
        );
    }

    fn rows() -> Vec<Vec<Cell>> {
        vec![
            vec![Cell::new("cp-1"), Cell::new("alive").tone(Tone::Good)],
            vec![Cell::new("control-plane-2"), Cell::new("late").tone(Tone::Doubtful)],
        ]
    }

    #[test]
    fn looks_like_kubectl() {
        assert_eq!(
            render(Some(&["HOST", "STATE"]), &rows(), PLAIN),
            "HOST              STATE\ncp-1              alive\ncontrol-plane-2   late"
        );
        assert_eq!(render(None, &rows(), PLAIN), "cp-1              alive\ncontrol-plane-2   late");
    }

    #[test]
    fn colour_does_not_disturb_the_columns() {
        let coloured = render(Some(&["HOST", "STATE"]), &rows(), FANCY);
        assert!(coloured.contains("\x1b[38;5;2malive"));
        let plain = console::strip_ansi_codes(&coloured);
        let lines: Vec<_> = plain.lines().map(str::trim_end).collect();
        assert_eq!(lines.join("\n"), render(Some(&["HOST", "STATE"]), &rows(), PLAIN));
    }

    #[test]
    fn a_cell_cannot_break_out_of_its_line() {
        let rows = vec![vec![Cell::new("a\nb\x1b[2J"), Cell::new("x")], vec![Cell::new(""), Cell::new("y")]];
        let text = render(None, &rows, FANCY);
        assert_eq!(text.lines().count(), 2);
        assert!(!text.contains('\x1b'));
        assert!(text.ends_with("<none>             y"), "{text}");
    }
}
