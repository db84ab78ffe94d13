//! A TOML table, read key by key; what is wrong goes to the report, and reading goes on.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;

use toml::de::{DeTable, DeValue};

use super::nearest::nearest;
use super::report::Report;
use crate::duration;
use crate::net::shortened;

/// A table of the file, or one that is absent: then every key has its default.
pub(super) struct Section<'a> {
    report: &'a Report,
    name: String,
    at: usize,
    table: Option<&'a DeTable<'a>>,
    known: Vec<&'static str>,
}

/// A key's value.
pub(super) struct Value<'a> {
    report: &'a Report,
    name: String,
    at: usize,
    value: &'a DeValue<'a>,
}

impl<'a> Section<'a> {
    pub(super) fn root(report: &'a Report, table: &'a DeTable<'a>) -> Self {
        Self { report, name: String::new(), at: 0, table: Some(table), known: Vec::new() }
    }

    /// The value of `key`, when it is there.
    pub(super) fn value(&mut self, key: &'static str) -> Option<Value<'a>> {
        self.known.push(key);
        let (key, value) = self.table?.get_key_value(key)?;
        Some(Value {
            report: self.report,
            name: self.name_of(key.get_ref()),
            at: value.span().start,
            value: value.get_ref(),
        })
    }

    /// The value of `key`; its absence is an error.
    pub(super) fn required(&mut self, key: &'static str, example: &str) -> Option<Value<'a>> {
        let value = self.value(key);
        if value.is_none() {
            self.wrong(key, "is missing".to_owned(), format!("add {key} = {example}"));
        }
        value
    }

    /// The table under `key`, or an absent one.
    pub(super) fn section(&mut self, key: &'static str) -> Section<'a> {
        let name = self.name_of(key);
        self.value(key).and_then(|value| value.section()).unwrap_or(Section {
            report: self.report,
            name,
            at: self.at,
            table: None,
            known: Vec::new(),
        })
    }

    /// The tables of the array under `key`.
    pub(super) fn sections(&mut self, key: &'static str) -> Vec<Section<'a>> {
        let Some(value) = self.value(key) else { return Vec::new() };
        if value.value.as_array().is_none() {
            value.wrong(
                format!("is {}, not a list of tables", value.kind()),
                format!("start each one with [[{key}]]"),
            );
            return Vec::new();
        }
        value.list().into_iter().filter_map(|item| item.section()).collect()
    }

    pub(super) fn number<T: TryFrom<u64>>(
        &mut self,
        key: &'static str,
        default: T,
        bounds: RangeInclusive<u64>,
        unit: &str,
    ) -> T {
        self.optional_number(key, bounds, unit).unwrap_or(default)
    }

    pub(super) fn optional_number<T: TryFrom<u64>>(
        &mut self,
        key: &'static str,
        bounds: RangeInclusive<u64>,
        unit: &str,
    ) -> Option<T> {
        self.value(key)
            .and_then(|value| value.integer(bounds, unit))
            .and_then(|number| T::try_from(number).ok())
    }

    pub(super) fn flag(&mut self, key: &'static str, default: bool) -> bool {
        self.value(key).and_then(|value| value.flag()).unwrap_or(default)
    }

    pub(super) fn word<T: Copy>(
        &mut self,
        key: &'static str,
        default: T,
        words: &[(&str, T)],
    ) -> T {
        self.value(key).and_then(|value| value.word(words)).unwrap_or(default)
    }

    pub(super) fn duration(
        &mut self,
        key: &'static str,
        default: Duration,
        bounds: RangeInclusive<Duration>,
    ) -> Duration {
        self.value(key).and_then(|value| value.duration(&bounds)).unwrap_or(default)
    }

    /// Names the section after what it describes, as in `port.left`.
    pub(super) fn rename(&mut self, list: &str, name: &str) {
        self.name = format!("{list}.{name}");
    }

    pub(super) fn at(&self) -> usize {
        self.at
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.table.is_some_and(|table| table.contains_key(key))
    }

    pub(super) fn name_of(&self, key: &str) -> String {
        if self.name.is_empty() {
            shortened(key)
        } else {
            format!("{}.{}", self.name, shortened(key))
        }
    }

    /// Adds an error about a key of this section, at its value's place or the section's.
    pub(super) fn wrong(&self, key: &str, problem: String, remedy: String) {
        self.report.add(self.place(key), &self.name_of(key), problem, remedy);
    }

    /// As `wrong`, for an error whose text is `what is wrong; what would be right`.
    pub(super) fn wrong_text(&self, key: &str, error: &dyn Display) {
        self.report.add_text(self.place(key), &self.name_of(key), error);
    }

    fn place(&self, key: &str) -> usize {
        let value = self.table.and_then(|table| table.get(key));
        value.map_or(self.at, |value| value.span().start)
    }

    /// Complains about every key that nothing has asked for.
    pub(super) fn finish(self) {
        self.finish_reading();
    }

    /// As `finish`, for a section whose place is needed still.
    pub(super) fn finish_reading(&self) {
        let keys = || self.table.into_iter().flatten().map(|(key, _)| key);
        let is_known = |name: &str| self.known.contains(&name);
        // It may be any file, of which nothing is to be quoted.
        let strange = self.name.is_empty() && !keys().any(|key| is_known(key.get_ref()));
        for key in keys() {
            let name = key.get_ref().as_ref();
            if is_known(name) {
                continue;
            }
            if strange && nearest(name, self.known.iter().copied()).is_none() {
                let problem = "is no configuration: it has none of the sections of one".to_owned();
                let remedy = "see the configuration reference".to_owned();
                return self.report.add(key.span().start, "", problem, remedy);
            }
            let remedy = match nearest(name, self.known.iter().copied()) {
                Some(known) => format!("did you mean '{known}'?"),
                None => {
                    let mut known = self.known.clone();
                    known.sort_unstable();
                    format!("known here: {}", known.join(", "))
                }
            };
            let unknown = "is not a known key".to_owned();
            self.report.add(key.span().start, &self.name_of(name), unknown, remedy);
        }
    }
}

impl<'a> Value<'a> {
    pub(super) fn wrong(&self, problem: String, remedy: String) {
        self.report.add(self.at, &self.name, problem, remedy);
    }

    pub(super) fn at(&self) -> usize {
        self.at
    }

    /// What it is, in words.
    fn kind(&self) -> &'static str {
        match self.value {
            DeValue::String(_) => "a string",
            DeValue::Integer(_) => "a number",
            DeValue::Float(_) => "a number with a fraction",
            DeValue::Boolean(_) => "true or false",
            DeValue::Datetime(_) => "a date",
            DeValue::Array(_) => "a list",
            DeValue::Table(_) => "a table",
        }
    }

    pub(super) fn is_text(&self) -> bool {
        self.value.is_str()
    }

    pub(super) fn is_list(&self) -> bool {
        self.value.is_array()
    }

    pub(super) fn integer(&self, bounds: RangeInclusive<u64>, unit: &str) -> Option<u64> {
        let remedy = || {
            let space = if unit.is_empty() { "" } else { " " };
            format!("use {} to {}{space}{unit}", bounds.start(), bounds.end())
        };
        let Some(integer) = self.value.as_integer() else {
            self.wrong(format!("is {}, not a whole number", self.kind()), remedy());
            return None;
        };
        match u64::from_str_radix(integer.as_str(), integer.radix()) {
            Ok(number) if bounds.contains(&number) => Some(number),
            _ => {
                let number = shortened(integer.as_str());
                self.wrong(format!("{number} is out of bounds"), remedy());
                None
            }
        }
    }

    pub(super) fn text(&self) -> Option<&'a str> {
        let text = self.value.as_str();
        if text.is_none() {
            self.wrong(format!("is {}, not a string", self.kind()), "put it in quotes".to_owned());
        }
        text
    }

    pub(super) fn flag(&self) -> Option<bool> {
        let flag = self.value.as_bool();
        if flag.is_none() {
            let remedy = "use true or false, without quotes".to_owned();
            self.wrong(format!("is {}, not true or false", self.kind()), remedy);
        }
        flag
    }

    pub(super) fn word<T: Copy>(&self, words: &[(&str, T)]) -> Option<T> {
        let text = self.value.as_str();
        let found = words.iter().find(|(word, _)| Some(*word) == text);
        if found.is_none() {
            let known: Vec<_> = words.iter().map(|(word, _)| format!("\"{word}\"")).collect();
            let problem = match text {
                Some(text) => format!("'{}' is not a known word", shortened(text)),
                None => format!("is {}, not a string", self.kind()),
            };
            self.wrong(problem, format!("use one of {}", known.join(", ")));
        }
        found.map(|(_, value)| *value)
    }

    /// Text that a type reads; its error is `what is wrong; what would be right`.
    pub(super) fn parse<T: FromStr<Err: Display>>(&self) -> Option<T> {
        self.text()?
            .parse()
            .map_err(|error: T::Err| self.report.add_text(self.at, &self.name, &error))
            .ok()
    }

    fn duration(&self, bounds: &RangeInclusive<Duration>) -> Option<Duration> {
        let (least, most) = (duration::format(*bounds.start()), duration::format(*bounds.end()));
        let text = self.text()?;
        match duration::parse(text) {
            Some(duration) if bounds.contains(&duration) => Some(duration),
            Some(_) => {
                let text = shortened(text);
                self.wrong(format!("{text} is out of bounds"), format!("use {least} to {most}"));
                None
            }
            None => {
                let problem = format!("'{}' is not a duration", shortened(text));
                let units = "with a unit (us, ms, s, m, h), as in \"100us\"";
                self.wrong(problem, format!("use {least} to {most} {units}"));
                None
            }
        }
    }

    /// The items of a list.
    pub(super) fn list(&self) -> Vec<Value<'a>> {
        let Some(array) = self.value.as_array() else {
            let problem = format!("is {}, not a list", self.kind());
            self.wrong(problem, "put it in brackets: [...]".to_owned());
            return Vec::new();
        };
        let item = |(index, value): (usize, &'a toml::Spanned<DeValue<'a>>)| Value {
            report: self.report,
            name: format!("{}[{index}]", self.name),
            at: value.span().start,
            value: value.get_ref(),
        };
        array.iter().enumerate().map(item).collect()
    }

    pub(super) fn section(&self) -> Option<Section<'a>> {
        let table = self.value.as_table();
        if table.is_none() {
            let remedy = format!("write it as [{}] with keys below", self.name);
            self.wrong(format!("is {}, not a table", self.kind()), remedy);
        }
        Some(Section {
            report: self.report,
            name: self.name.clone(),
            at: self.at,
            table: Some(table?),
            known: Vec::new(),
        })
    }
}
