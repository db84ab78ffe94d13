//! A line of a script, taken apart.

/// When, and what.
#[derive(Debug, Clone)]
pub(crate) struct Line {
    pub(crate) number: usize,
    /// ns from the start.
    pub(crate) at: u64,
    pub(crate) words: Vec<String>,
    /// What stands between < and > behind the words.
    pub(crate) options: Option<Vec<Vec<String>>>,
}

impl Line {
    pub(crate) fn word(&self, place: usize) -> &str {
        self.words.get(place).map_or("", |word| word)
    }

    /// The number behind a word.
    pub(crate) fn number_after(&self, name: &str) -> Result<Option<i64>, String> {
        let Some(place) = self.words.iter().position(|word| word == name) else { return Ok(None) };
        let text = self.word(place + 1);
        text.parse().map(Some).map_err(|_| format!("'{text}' behind '{name}' is no number"))
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.words.iter().any(|word| word == name)
    }

    /// The words `name=value`.
    pub(crate) fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        self.words.iter().filter_map(|word| word.split_once('='))
    }
}

/// Seconds as ns.
fn time(text: &str) -> Option<u64> {
    let seconds: f64 = text.parse().ok()?;
    (seconds >= 0.0).then_some((seconds * 1e9).round() as u64)
}

/// All lines of a script.
pub(crate) fn lines(text: &str) -> Result<Vec<Line>, String> {
    let (mut lines, mut now) = (Vec::new(), 0);
    for (place, text) in text.lines().enumerate() {
        let number = place + 1;
        let text = text.split('#').next().unwrap_or("").trim();
        if text.is_empty() {
            continue;
        }
        // Options come last; the arrows of 'in' and 'out' come first.
        let (text, options) = match text.strip_suffix('>').and_then(|text| text.rsplit_once(" <")) {
            Some((front, list)) => {
                let list =
                    list.split(',').map(|one| one.split_whitespace().map(Into::into).collect());
                (front, Some(list.filter(|one: &Vec<String>| !one.is_empty()).collect()))
            }
            None => (text, None),
        };
        let mut words: Vec<String> = text.split_whitespace().map(Into::into).collect();
        let first = words.first().cloned().unwrap_or_default();
        let later = first.strip_prefix('+').and_then(time).map(|by| now + by);
        if let Some(at) = later.or_else(|| time(&first)) {
            if at < now {
                return Err(format!("line {number}: before the line ahead"));
            }
            now = at;
            words.remove(0);
        }
        lines.push(Line { number, at: now, words, options });
    }
    Ok(lines)
}
