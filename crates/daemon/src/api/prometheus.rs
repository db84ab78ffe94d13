//! The text format of Prometheus (exposition format 0.0.4).

use std::fmt::{Display, Write};

/// Content type of the format.
pub(crate) const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// A text in the making.
#[derive(Debug, Default)]
pub(crate) struct Exposition {
    text: String,
}

impl Exposition {
    /// Starts a counter: a number that only grows. Its samples follow.
    pub(crate) fn counter(&mut self, name: &'static str, help: &str) -> Family<'_> {
        self.family(name, "counter", help)
    }

    /// Starts a gauge: a number that goes up and down.
    pub(crate) fn gauge(&mut self, name: &'static str, help: &str) -> Family<'_> {
        self.family(name, "gauge", help)
    }

    fn family(&mut self, name: &'static str, kind: &str, help: &str) -> Family<'_> {
        // Writing to a string does not fail.
        let _ = write!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
        Family { name, text: &mut self.text }
    }

    /// The text.
    pub(crate) fn finish(self) -> String {
        self.text
    }
}

/// The samples of one name.
pub(crate) struct Family<'a> {
    name: &'static str,
    text: &'a mut String,
}

impl Family<'_> {
    /// Adds a sample.
    pub(crate) fn sample(&mut self, labels: &[(&str, &dyn Display)], value: impl Display) {
        self.text.push_str(self.name);
        let mut open = '{';
        for (label, content) in labels {
            let content = escape(&content.to_string());
            let _ = write!(self.text, "{open}{label}=\"{content}\"");
            open = ',';
        }
        if !labels.is_empty() {
            self.text.push('}');
        }
        let _ = writeln!(self.text, " {value}");
    }
}

fn escape(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_have_a_head_and_escaped_labels() {
        let mut text = Exposition::default();
        text.counter("a_total", "What a is.").sample(&[("port", &"x\"y\\"), ("core", &1)], 7);
        text.gauge("b", "What b is.").sample(&[], 0.5);
        assert_eq!(
            text.finish(),
            "# HELP a_total What a is.\n# TYPE a_total counter\n\
             a_total{port=\"x\\\"y\\\\\",core=\"1\"} 7\n\
             # HELP b What b is.\n# TYPE b gauge\nb 0.5\n"
        );
    }
}
