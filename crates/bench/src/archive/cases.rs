//! Results of several runs, put together by what was measured.

use std::collections::BTreeMap;

use super::{Entry, Run};

/// What was measured: results with the same case can be compared.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Case {
    name: String,
    details: String,
    unit: String,
    /// A quantity may stand beside several yardsticks, once for each.
    yardstick: Option<String>,
}

/// The results of one case, each with its run.
pub(crate) type Results<'a> = Vec<(&'a Run, &'a Entry)>;

/// The cases of some runs, in the order of their files.
#[derive(Debug, Default)]
pub(crate) struct Cases<'a> {
    cases: Vec<(Case, Results<'a>)>,
    places: BTreeMap<Case, usize>,
}

impl Case {
    fn of(entry: &Entry) -> Self {
        Self {
            name: entry.name.clone(),
            details: entry.details(),
            unit: entry.unit.clone(),
            yardstick: entry.yardstick.clone(),
        }
    }

    fn without_yardstick(&self) -> Self {
        Self { yardstick: None, ..self.clone() }
    }
}

impl<'a> Cases<'a> {
    pub(crate) fn of(runs: &'a [Run]) -> Self {
        let mut all = Self::default();
        for run in runs {
            for entry in &run.results {
                let place = all.place(Case::of(entry));
                if let Some((_, results)) = all.cases.get_mut(place) {
                    results.push((run, entry));
                }
            }
        }
        all
    }

    fn place(&mut self, case: Case) -> usize {
        *self.places.entry(case).or_insert_with_key(|case| {
            self.cases.push((case.clone(), Vec::new()));
            self.cases.len() - 1
        })
    }

    /// All of them that have results left.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Case, &Results<'a>)> {
        let left = self.cases.iter().filter(|(_, results)| !results.is_empty());
        left.map(|(case, results)| (case, results))
    }

    /// Takes the results of a case, if there are any left.
    pub(crate) fn take(&mut self, case: &Case) -> Option<Results<'a>> {
        let (_, results) = self.cases.get_mut(*self.places.get(case)?)?;
        (!results.is_empty()).then(|| std::mem::take(results))
    }

    /// The cases left, by what they have in common with others that differ in the yardstick alone.
    pub(crate) fn alike(&self) -> BTreeMap<Case, Vec<&Case>> {
        let mut alike: BTreeMap<Case, Vec<&Case>> = BTreeMap::new();
        for (case, _) in self.iter() {
            alike.entry(case.without_yardstick()).or_default().push(case);
        }
        alike
    }
}
