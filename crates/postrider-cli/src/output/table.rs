//! Tables that fit into a terminal.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::plain::plain;
use crate::Failure;

const GAP: &str = "  ";
/// A text is not cropped below this.
const LEAST: usize = 8;
/// A text of this length says enough: sooner than crop it further, a spare column is left out.
const READABLE: usize = 24;

/// A column of a table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Column {
    head: &'static str,
    right: bool,
    cropped: bool,
    spare: bool,
}

impl Column {
    /// A text, which is cropped where the table is too wide.
    pub(crate) const fn text(head: &'static str) -> Self {
        Self { head, right: false, cropped: true, spare: false }
    }

    /// A text that is of no use unless it is whole, such as an id.
    pub(crate) const fn whole(head: &'static str) -> Self {
        Self { head, right: false, cropped: false, spare: false }
    }

    /// A number.
    pub(crate) const fn number(head: &'static str) -> Self {
        Self { head, right: true, cropped: false, spare: false }
    }

    /// The same column, left out where there is no room for it.
    pub(crate) const fn spare(mut self) -> Self {
        self.spare = true;
        self
    }
}

/// A table: a head, and rows under it.
pub(crate) struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these columns and no rows.
    pub(crate) fn new(columns: impl Into<Vec<Column>>) -> Self {
        Self { columns: columns.into(), rows: Vec::new() }
    }

    /// Adds a row.
    pub(crate) fn row<T: Into<String>>(&mut self, cells: impl IntoIterator<Item = T>) {
        self.rows.push(cells.into_iter().map(|cell| plain(&cell.into())).collect());
    }

    /// Whether it has no row.
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Writes it to standard output.
    pub(crate) fn show(&self) -> Result<(), Failure> {
        super::print(&self.text(super::width()))
    }

    /// Whether nothing has to be cropped or left out for this width.
    pub(crate) fn fits(&self, width: usize) -> bool {
        self.text(None).lines().all(|line| line.width() <= width)
    }

    /// The table as text, no wider than this if that is possible.
    pub(crate) fn text(&self, width: Option<usize>) -> String {
        let widths = self.fitted(width.unwrap_or(usize::MAX));
        let mut text = String::new();
        let heads: Vec<String> = self.columns.iter().map(|column| column.head.to_uppercase()).collect();
        for row in std::iter::once(&heads).chain(&self.rows) {
            let mut line = String::new();
            for ((cell, column), width) in row.iter().zip(&self.columns).zip(&widths) {
                let Some(width) = width else { continue };
                let cell = crop(cell, *width);
                let pad = " ".repeat(width - cell.width());
                let (before, after) = if column.right { (&*pad, "") } else { ("", &*pad) };
                let gap = if line.is_empty() { "" } else { GAP };
                line.push_str(&format!("{gap}{before}{cell}{after}"));
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }

    /// How wide each column is; nothing for one that is left out.
    fn fitted(&self, most: usize) -> Vec<Option<usize>> {
        let widest = |place: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(place)).map(|cell| cell.width());
            cells.chain([self.columns[place].head.width()]).max()
        };
        let mut widths: Vec<Option<usize>> = (0..self.columns.len()).map(widest).collect();
        let total = |widths: &[Option<usize>]| {
            let shown = widths.iter().flatten();
            shown.clone().sum::<usize>() + shown.count().saturating_sub(1) * GAP.len()
        };
        // What the table needs for texts that are cropped and can still be read.
        let readable = |widths: &[Option<usize>]| {
            let cropped = widths.iter().zip(&self.columns).map(|(width, column)| {
                width.map(|width| if column.cropped { width.min(READABLE) } else { width })
            });
            total(&cropped.collect::<Vec<_>>())
        };
        for place in (0..self.columns.len()).rev() {
            if self.columns[place].spare && readable(&widths) > most {
                widths[place] = None;
            }
        }
        while total(&widths) > most {
            let croppable = widths.iter_mut().zip(&self.columns).filter(|(width, column)| {
                column.cropped && width.is_some_and(|width| width > LEAST.max(column.head.width()))
            });
            match croppable.max_by_key(|(width, _)| **width) {
                Some((Some(width), _)) => *width -= 1,
                _ => break,
            }
        }
        widths
    }
}

/// A text in lines of this width, broken between words, so many at most; what is left out is shown by `…`.
pub(crate) fn wrapped(text: &str, width: usize, most: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in plain(text).split_whitespace() {
        let line = lines.last_mut().map_or(0, |line| line.width());
        if line > 0 && line + 1 + word.width() > width {
            lines.push(String::new());
        }
        let Some(line) = lines.last_mut() else { break };
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    let more = lines.len() > most;
    lines.truncate(most);
    if let (true, Some(last)) = (more, lines.last_mut()) {
        last.push_str(" …");
    }
    lines.iter().map(|line| crop(line, width)).collect()
}

/// A text of this width at most; what is left out is shown by `…`.
pub(crate) fn crop(cell: &str, width: usize) -> String {
    if cell.width() <= width {
        return cell.to_owned();
    }
    let (mut cropped, mut used) = (String::new(), 1);
    for letter in cell.chars() {
        used += letter.width().unwrap_or(0);
        if used > width {
            break;
        }
        cropped.push(letter);
    }
    cropped.push('…');
    cropped
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::new([
            Column::whole("id"),
            Column::text("error"),
            Column::number("tries"),
            Column::text("note").spare(),
        ]);
        table.row(["0198", "the destination does not answer", "12", "first"]);
        table.row(["0199", "no\nsuch \u{1b}[31maddress", "3", ""]);
        table
    }

    #[test]
    fn a_table_into_a_pipe_is_as_wide_as_its_cells() {
        let text = table().text(None);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "ID    ERROR                            TRIES  NOTE");
        assert_eq!(lines[1], "0198  the destination does not answer     12  first");
        assert_eq!(lines[2], "0199  no such  [31maddress                 3", "one line, no commands");
    }

    #[test]
    fn a_table_fits_where_it_can_and_keeps_ids_whole() {
        for width in [24, 30, 40, 80] {
            let text = table().text(Some(width));
            assert!(text.lines().all(|line| line.width() <= width), "{width}:\n{text}");
            assert!(text.contains("0198") && text.contains(" 12"), "{text}");
        }
        let narrow = table().text(Some(24));
        assert!(narrow.contains("the destin…") && !narrow.contains("NOTE"), "{narrow}");
    }

    #[test]
    fn a_text_is_broken_between_words_and_ends_with_what_shows_that_there_is_more() {
        let text = "the destination does not answer, and has not for a very long time indeed";
        let lines = wrapped(text, 20, 9);
        assert_eq!(lines.join(" "), text);
        assert!(lines.iter().all(|line| line.width() <= 20), "{lines:?}");
        let lines = wrapped(text, 20, 2);
        assert!(lines.len() == 2 && lines[1].ends_with('…'), "{lines:?}");
        assert!(lines.iter().all(|line| line.width() <= 20), "{lines:?}");
        assert_eq!(wrapped("a\u{1b}[31mb", 20, 2), ["a [31mb"]);
        assert!(wrapped(&"x".repeat(50), 20, 2).iter().all(|line| line.width() <= 20));
    }

    #[test]
    fn wide_letters_count_twice() {
        let mut table = Table::new([Column::text("name"), Column::number("n")]);
        table.row(["주문주문주문주문", "1"]);
        table.row(["orders", "22"]);
        let text = table.text(Some(14));
        assert!(text.lines().all(|line| line.width() <= 14), "{text}");
    }
}
