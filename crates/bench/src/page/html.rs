//! A page that needs nothing else: no scripts, no fonts, no pictures from elsewhere.

/// How it looks.
const STYLE: &str = "
body { font: 15px/1.5 sans-serif; color: #222; max-width: 76em; margin: 2em auto; padding: 0 1em; }
h1, h2, h3 { line-height: 1.2; } h2 { border-bottom: 1px solid #ccc; margin-top: 2em; }
table { border-collapse: collapse; font-size: 14px; }
th, td { border-bottom: 1px solid #ddd; padding: 3px 10px; text-align: right; vertical-align: top; }
th:first-child, td:first-child { text-align: left; }
.wide { overflow-x: auto; } .note { color: #555; } svg { max-width: 100%; height: auto; }
li { margin: 2px 0; } .worse { color: #b00; } .better { color: #070; }
";

/// A text in which HTML means nothing.
pub(super) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for char in text.chars() {
        match char {
            '<' => escaped += "&lt;",
            '>' => escaped += "&gt;",
            '&' => escaped += "&amp;",
            '"' => escaped += "&quot;",
            '\'' => escaped += "&#39;",
            char => escaped.push(char),
        }
    }
    escaped
}

/// A paragraph.
pub(super) fn paragraph(text: &str) -> String {
    format!("<p class=\"note\">{}</p>\n", escape(text))
}

/// A paragraph that must not be missed.
pub(super) fn warning(text: &str) -> String {
    format!("<p class=\"worse\">{}</p>\n", escape(text))
}

/// A part of the page with a heading of its own. `body`: HTML.
pub(super) fn section(title: &str, body: &str) -> String {
    format!("<h2>{}</h2>\n{body}", escape(title))
}

/// The whole page. `body`: HTML.
pub(super) fn page(title: &str, body: &str) -> String {
    let title = escape(title);
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>\n{body}</body>\n</html>\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_a_text_is_markup() {
        assert_eq!(escape("<a href=\"x\">'&"), "&lt;a href=&quot;x&quot;&gt;&#39;&amp;");
        assert!(!section("<script>", "").contains("<script>"));
        assert!(!paragraph("<script>").contains("<script>"));
        assert!(!warning("<script>").contains("<script>"));
        assert!(!page("<script>", "").contains("<script>"));
    }
}
