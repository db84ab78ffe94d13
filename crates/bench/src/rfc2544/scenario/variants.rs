//! One file, several scenarios: each `[[variant]]` replaces some of the file's keys.

use toml::{Table, Value};

use super::model::Scenario;
use super::wrong::Wrong;

/// All scenarios of a file.
pub(super) fn parse(text: &str) -> Result<Vec<Scenario>, Wrong> {
    let mut base: Table = text.parse()?;
    match base.remove("variant") {
        // Errors name the line, which merged tables have no more.
        None => Ok(vec![toml::from_str(text)?]),
        Some(Value::Array(variants)) => {
            let numbered = variants.into_iter().zip(1..);
            let all = numbered.map(|(variant, number)| one(&base, variant, number));
            let all = all.collect::<Result<Vec<Scenario>, Wrong>>()?;
            for (number, scenario) in (1..).zip(&all) {
                if all.iter().take(number - 1).any(|other| other.variant == scenario.variant) {
                    let why = "another one has its `name`, by which results are told apart";
                    return Err(Wrong::Variant { number, why });
                }
            }
            Ok(all)
        }
        Some(_) => Err(Wrong::Variant { number: 1, why: "write it as a table: [[variant]]" }),
    }
}

fn one(base: &Table, variant: Value, number: usize) -> Result<Scenario, Wrong> {
    let Value::Table(mut variant) = variant else {
        return Err(Wrong::Variant { number, why: "write it as a table: [[variant]]" });
    };
    let Some(Value::String(name)) = variant.remove("name") else {
        return Err(Wrong::Variant { number, why: "give it a `name`" });
    };
    let mut whole = base.clone();
    merge(&mut whole, variant);
    let mut scenario: Scenario = Value::Table(whole).try_into()?;
    scenario.variant = Some(name);
    Ok(scenario)
}

/// Puts what `from` says in place of what was said; tables are merged key by key.
fn merge(into: &mut Table, from: Table) {
    for (key, value) in from {
        match (value, into.get_mut(&key)) {
            (Value::Table(from), Some(Value::Table(inner))) => merge(inner, from),
            (value, _) => {
                into.insert(key, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "title = \"x\"\n[device]\nkind = \"millraced\"\n[flows]\ncount = 7\norder = \"scattered\"\n";

    #[test]
    fn variants_replace_what_they_name() {
        let text = format!(
            "{FILE}[[variant]]\nname = \"two\"\ndevice = {{ cores = [0, 1] }}\n[[variant]]\nname = \"many\"\nflows.count = 9\n"
        );
        let all = parse(&text).unwrap();
        let [two, many] = &all[..] else { panic!("{all:?}") };
        assert_eq!(two.variant.as_deref(), Some("two"));
        let cores = |one: &Scenario| one.device.millraced().map(|daemon| daemon.cores.clone());
        assert_eq!((cores(two), cores(many)), (Some(vec![0, 1]), Some(vec![])));
        assert_eq!((two.flows.count, many.flows.count), (7, 9));
        assert_eq!(two.flows.order(), many.flows.order());
        assert_eq!(parse(FILE).unwrap()[0].variant, None);
    }

    #[test]
    fn what_is_no_variant_is_refused() {
        for (text, words) in [
            ("variant = 3\n", "[[variant]]"),
            ("variant = [3]\n", "[[variant]]"),
            ("[[variant]]\nflows.count = 3\n", "name"),
            ("[[variant]]\nname = \"x\"\nflows.cuont = 3\n", "cuont"),
            ("[[variant]]\nname = \"x\"\n[[variant]]\nname = \"x\"\n", "variant 2: another"),
        ] {
            let text = if text.starts_with("[[") {
                format!("{FILE}{text}")
            } else {
                format!("{text}{FILE}")
            };
            let said = parse(&text).unwrap_err().to_string();
            assert!(said.contains(words), "{text}: {said}");
        }
    }
}
