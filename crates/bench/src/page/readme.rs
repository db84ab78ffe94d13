//! Tables of a README, between comments that say which results belong there.

use std::path::Path;

use super::{by_command, choose, figures, machines};
use crate::archive::Run;
use crate::failure::Failure;
use crate::terminal::say;

/// Stands before a table, with a command behind it, perhaps names of results, and `CLOSE`.
const BEGIN: &str = "<!-- millrace-bench ";
const CLOSE: &str = " -->";
/// Stands after a table.
const END: &str = "<!-- /millrace-bench -->";

/// Why a README is left as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
enum Unmarked {
    #[error(
        "no table is marked; write `{begin}forward{close}` on a line before one and `{end}` after it",
        begin = BEGIN,
        close = CLOSE,
        end = END
    )]
    Nowhere,
    #[error("line {0}: no `{end}` follows; write it on a line after the table", end = END)]
    Open(usize),
}

/// Which results a table has: those of a command, whose name and case contain one of these texts; all of them without any.
#[derive(Debug, PartialEq, Eq)]
struct Wanted<'a> {
    command: &'a str,
    only: Vec<String>,
}

impl<'a> Wanted<'a> {
    /// What a line asks for, if it is a marker: `<!-- millrace-bench forward: forward rate (flows 1; above -->`.
    fn of(line: &'a str) -> Option<Self> {
        let words = line.trim().strip_prefix(BEGIN)?.strip_suffix(CLOSE)?;
        let (command, names) = words.split_once(':').unwrap_or((words, ""));
        let names = names.split(';').map(str::trim).filter(|name| !name.is_empty());
        Some(Self { command: command.trim(), only: names.map(str::to_owned).collect() })
    }
}

/// Replaces the marked tables of a README; those of which nothing was measured stay as they are.
pub(super) fn write(path: &Path, runs: &[Run]) -> Result<(), Failure> {
    let failed = |source| Failure::File { path: path.into(), source };
    let text = std::fs::read_to_string(path).map_err(failed)?;
    let mut news = Vec::new();
    let filled = fill(&text, |wanted| {
        let table = table(wanted, runs);
        let what = if table.is_some() { "replaced" } else { "no results, stays as it is" };
        news.push(format!("table of {}: {what}", wanted.command));
        table
    });
    let filled =
        filled.map_err(|why| Failure::Readme { path: path.into(), why: why.to_string() })?;
    std::fs::write(path, filled).map_err(failed)?;
    news.iter().for_each(|news| say!("{}: {news}", path.display()));
    Ok(())
}

fn table(wanted: &Wanted<'_>, runs: &[Run]) -> Option<String> {
    let mut runs = runs.to_vec();
    choose(&mut runs, &wanted.only);
    let (_, own) = by_command(&runs).into_iter().find(|(name, _)| name == wanted.command)?;
    let sheet = figures::sheet(wanted.command, &own, &machines::machines(&own));
    (!sheet.rows.is_empty()).then(|| sheet.markdown_table())
}

/// A text with other tables. `table`: `None` where the old one is to stay.
fn fill(
    text: &str,
    mut table: impl FnMut(&Wanted<'_>) -> Option<String>,
) -> Result<String, Unmarked> {
    let (mut filled, mut found) = (String::with_capacity(text.len()), false);
    let mut lines = (1..).zip(text.split_inclusive('\n'));
    while let Some((number, line)) = lines.next() {
        filled += line;
        let Some(wanted) = Wanted::of(line) else { continue };
        found = true;
        let mut old = String::new();
        let end = loop {
            match lines.next() {
                Some((_, line)) if line.trim() == END => break line,
                Some((_, line)) if Wanted::of(line).is_none() => old += line,
                _ => return Err(Unmarked::Open(number)),
            }
        };
        match table(&wanted) {
            Some(table) => filled += &format!("\n{table}\n"),
            None => filled += &old,
        }
        filled += end;
    }
    if found { Ok(filled) } else { Err(Unmarked::Nowhere) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::page::tests::run;

    const README: &str = "# Title\n<!-- millrace-bench forward: x; rate -->\n\n| old |\n\n<!-- /millrace-bench -->\nbetween\n\
        <!-- millrace-bench queue -->\n| kept |\n<!-- /millrace-bench -->\nend";

    #[test]
    fn marked_tables_are_replaced_and_the_rest_stays() {
        let results = json!([
            {"name": "forward rate", "unit": "packets/s", "value": 5.0},
            {"name": "above", "unit": "cycles", "value": 1.0},
        ]);
        let [mut xeon, mut epyc] = ["Xeon", "EPYC"].map(|cpu| run(cpu, results.clone()));
        let mut other = run("Atom", json!([{"name": "rate", "value": 1.0}]));
        for (run, command) in [(&mut xeon, "forward"), (&mut epyc, "forward"), (&mut other, "dma")]
        {
            run.environment.insert("command".into(), command.into());
        }
        let runs = [xeon, epyc, other];
        let filled = fill(README, |wanted| table(wanted, &runs)).unwrap();
        let expected = README.replace(
            "\n| old |\n",
            "\n| what | Xeon | EPYC |\n| --- | --- | --- |\n\
             | forward rate | 5.00 packets/s | 5.00 packets/s |\n",
        );
        assert_eq!(filled, expected);
        assert_eq!(fill(&filled, |wanted| table(wanted, &runs)), Ok(expected));
    }

    #[test]
    fn what_is_not_marked_is_refused() {
        let fill = |text: &str| fill(text, |_| None);
        assert_eq!(fill("| table |\n"), Err(Unmarked::Nowhere));
        assert_eq!(fill("\n<!-- millrace-bench dma -->\n|"), Err(Unmarked::Open(2)));
        let twice = README.replacen("<!-- /millrace-bench -->", "", 1);
        assert_eq!(fill(&twice), Err(Unmarked::Open(2)));
        let said = Unmarked::Nowhere.to_string();
        assert!(said.contains("<!-- millrace-bench forward -->"), "{said}");
    }
}
