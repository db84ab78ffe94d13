//! Paths and their parameters.

use serde::Serialize;
use serde_json::Value;

/// A text as one segment of a path or one value of a query: all but letters, digits and `-._~` is
/// percent-encoded (RFC 3986 2.3).
#[must_use]
pub fn segment(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    encoded
}

/// A path with the fields of `query` as parameters; fields that are absent are left out.
#[must_use]
pub fn with_query<Q: Serialize>(path: &str, query: &Q) -> String {
    let Ok(Value::Object(fields)) = serde_json::to_value(query) else { return path.to_owned() };
    let pair = |(name, value): (String, Value)| match value {
        Value::Null => None,
        Value::String(text) => Some(format!("{}={}", segment(&name), segment(&text))),
        other => Some(format!("{}={}", segment(&name), segment(&other.to_string()))),
    };
    let pairs: Vec<_> = fields.into_iter().filter_map(pair).collect();
    if pairs.is_empty() { path.to_owned() } else { format!("{path}?{}", pairs.join("&")) }
}
