//! `millrace show functions`

use control::api::Function;

use crate::failure::Failure;
use crate::output::{Table, printable};
use crate::units::age;

pub(super) fn functions(functions: Vec<Function>) -> Result<(), Failure> {
    let mut table = Table::new(&["#function", "file", "core", "port", "argument", "#added"]);
    for function in functions {
        let asked = function.asked;
        table.row([
            function.id.to_string(),
            printable(&asked.file),
            asked.core.map_or_else(|| "all".to_owned(), |core| core.to_string()),
            asked.port.unwrap_or_else(|| "all".to_owned()),
            printable(&asked.argument),
            format!("{} ago", age(function.age * 1_000)),
        ]);
    }
    table.print("no packet functions; add one with millrace function add")
}
