//! A table, for a page or for a README.

use std::fmt::Write as _;

use super::html::{escape, warning};

/// A table of texts; the first column says what a row is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Sheet {
    pub(super) title: String,
    pub(super) header: Vec<String>,
    pub(super) rows: Vec<Vec<String>>,
    /// What the mark [`DOUBTFUL`] means; nothing where no figure has it.
    pub(super) notes: Vec<String>,
}

/// Stands behind a figure that has to be read with a note.
pub(super) const DOUBTFUL: &str = "*";

impl Sheet {
    /// Without columns in which no row has anything.
    pub(super) fn tidy(mut self) -> Self {
        let is_used = |column: usize| {
            self.rows.iter().any(|row| row.get(column).is_some_and(|text| !text.is_empty()))
        };
        let used: Vec<bool> = (0..self.header.len()).map(|at| at == 0 || is_used(at)).collect();
        let keep = |texts: &mut Vec<String>| {
            let mut used = used.iter();
            texts.retain(|_| used.next().copied().unwrap_or_default());
        };
        keep(&mut self.header);
        self.rows.iter_mut().for_each(keep);
        self
    }

    pub(super) fn html(&self) -> String {
        let mut html =
            format!("<h3>{}</h3>\n<div class=\"wide\"><table>\n<tr>", escape(&self.title));
        for name in &self.header {
            let _ = write!(html, "<th>{}</th>", escape(name));
        }
        html += "</tr>\n";
        for row in &self.rows {
            html += "<tr>";
            for text in row {
                let _ = write!(html, "<td>{}</td>", escape(text));
            }
            html += "</tr>\n";
        }
        html += "</table></div>\n";
        self.notes().for_each(|note| html += &warning(&note));
        html
    }

    fn notes(&self) -> impl Iterator<Item = String> {
        self.notes.iter().map(|note| format!("{DOUBTFUL} {note}"))
    }

    pub(super) fn markdown(&self) -> String {
        format!("{}\n\n{}", quote(&self.title), self.markdown_table())
    }

    /// Without the title.
    pub(super) fn markdown_table(&self) -> String {
        let line = |texts: &[String]| {
            let cells: Vec<String> = texts.iter().map(|text| quote(text)).collect();
            format!("| {} |\n", cells.join(" | "))
        };
        let rule = "| --- ".repeat(self.header.len());
        let mut text = format!("{}{rule}|\n", line(&self.header));
        self.rows.iter().for_each(|row| text += &line(row));
        self.notes().for_each(|note| text += &format!("\n{}\n", quote(&note)));
        text
    }
}

/// A text in which Markdown means nothing.
fn quote(text: &str) -> String {
    let mut quoted = String::new();
    for char in text.chars() {
        if "\\|<>[]*_`&".contains(char) {
            quoted.push('\\');
        }
        quoted.push(if char.is_control() { ' ' } else { char });
    }
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sheet(cell: &str) -> Sheet {
        let row = vec!["it".into(), String::new(), cell.into()];
        Sheet {
            title: "title".into(),
            header: ["what", "empty", "value"].map(str::to_owned).to_vec(),
            rows: vec![row],
            notes: Vec::new(),
        }
    }

    #[test]
    fn columns_without_anything_are_left_out() {
        let sheet = sheet("1").tidy();
        assert_eq!(sheet.header, ["what", "value"]);
        assert_eq!(sheet.rows, [["it", "1"]]);
        assert_eq!(sheet.markdown(), "title\n\n| what | value |\n| --- | --- |\n| it | 1 |\n");
    }

    #[test]
    fn notes_stand_below() {
        let noted = Sheet { notes: vec!["a|b <i>".into()], ..sheet("1 *") }.tidy();
        let markdown = "| what | value |\n| --- | --- |\n| it | 1 \\* |\n\n\\* a\\|b \\<i\\>\n";
        assert_eq!(noted.markdown_table(), markdown);
        assert!(noted.html().ends_with("</table></div>\n<p class=\"worse\">* a|b &lt;i&gt;</p>\n"));
    }

    #[test]
    fn no_cell_breaks_out_of_its_table() {
        let hostile = sheet("</td><script>a|b\n`x`");
        assert!(!hostile.html().contains("<script>"));
        let markdown = hostile.markdown();
        assert_eq!(markdown.lines().count(), 5, "{markdown}");
        assert!(markdown.contains(r"\</td\>\<script\>a\|b \`x\`"), "{markdown}");
    }
}
