//! TCP options in words: `<mss 1460, sackok, ts 100 0, ws 7, sack 1:1001 2001:3001, fo a1b2, accecn0 1 2 3>`.

use wire::tcp::{self, Option as TcpOption};

use crate::line::Line;
use crate::packet::Segment;
use crate::runner::Numbers;

/// Kinds of the options that `wire` does not name: Fast Open, accurate ECN in both orders.
const FAST_OPEN: u8 = 34;
const ACCURATE: [u8; 2] = [172, 174];

fn number(text: &str) -> Result<u32, String> {
    text.parse::<i64>().map(|n| n as u32).map_err(|_| format!("'{text}' is no number"))
}

fn hex(text: &str) -> Result<Vec<u8>, String> {
    let pairs = text.as_bytes().chunks(2);
    let byte = |pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap_or(""), 16);
    pairs.map(byte).collect::<Result<_, _>>().map_err(|_| format!("'{text}' is no hex"))
}

/// A peer's options as bytes.
pub(crate) fn bytes(line: &Line, numbers: &Numbers) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    for words in line.options.iter().flatten() {
        let word = |place: usize| words.get(place).map_or("", |word| word);
        let stamp = |text: &str| match text {
            "last" => Ok(numbers.last_stamp),
            "first" => Ok(numbers.first_stamp.unwrap_or(0)),
            _ => match text.strip_prefix("last-") {
                Some(earlier) => Ok(numbers.last_stamp.wrapping_sub(number(earlier)?)),
                None => number(text),
            },
        };
        match word(0) {
            "mss" => {
                bytes.extend([2, 4]);
                bytes.extend((number(word(1))? as u16).to_be_bytes());
            }
            "ws" => bytes.extend([3, 3, number(word(1))? as u8]),
            "sackok" => bytes.extend([4, 2]),
            "ts" => {
                bytes.extend([8, 10]);
                bytes.extend(stamp(word(1))?.to_be_bytes());
                bytes.extend(stamp(word(2))?.to_be_bytes());
            }
            "sack" => {
                bytes.extend([5, 2 + 8 * (words.len() - 1) as u8]);
                for block in &words[1..] {
                    let (from, to) = block.split_once(':').ok_or("a block is FROM:TO")?;
                    let iss = numbers.host_iss.unwrap_or(0);
                    bytes.extend(iss.wrapping_add(number(from)?).to_be_bytes());
                    bytes.extend(iss.wrapping_add(number(to)?).to_be_bytes());
                }
            }
            "fo" => {
                let given = || numbers.cookie.clone().ok_or("the host gave no cookie");
                let cookie = if word(1) == "last" { given()? } else { hex(word(1))? };
                bytes.extend([FAST_OPEN, 2 + cookie.len() as u8]);
                bytes.extend(cookie);
            }
            "accecn0" | "accecn1" => {
                let kind = ACCURATE[usize::from(word(0) == "accecn1")];
                bytes.extend([kind, 2 + 3 * (words.len() - 1) as u8]);
                for count in &words[1..] {
                    bytes.extend(&number(count)?.to_be_bytes()[1..]);
                }
            }
            "raw" => bytes.extend(hex(word(1))?),
            other => return Err(format!("no such option: {other}")),
        }
    }
    bytes.resize(bytes.len().next_multiple_of(4), 1);
    Ok(bytes)
}

/// A host's options in words.
pub(crate) fn words(sent: &Segment, peer_iss: u32) -> Vec<String> {
    tcp::Options::new(&sent.options)
        .map_while(Result::ok)
        .map(|option| match option {
            TcpOption::MaximumSegmentSize(size) => format!("mss {size}"),
            TcpOption::WindowScale(shift) => format!("ws {shift}"),
            TcpOption::SackPermitted => "sackok".into(),
            TcpOption::Timestamps { value, echo } => format!("ts {value} {echo}"),
            TcpOption::Sack(blocks) => blocks.iter().fold("sack".into(), |text, (from, to)| {
                let [from, to] = [from, to].map(|at| at.wrapping_sub(peer_iss) as i32);
                format!("{text} {from}:{to}")
            }),
            TcpOption::Other { kind: FAST_OPEN, data } => {
                let text = data
                    .iter()
                    .fold("fo ".into(), |text: String, byte| text + &format!("{byte:02x}"));
                text.trim_end().into()
            }
            TcpOption::Other { kind, data } if ACCURATE.contains(&kind) => {
                let counts = data.chunks(3).map(|count| {
                    count.iter().fold(0, |value, byte| value << 8 | u32::from(*byte)).to_string()
                });
                let name = if kind == ACCURATE[0] { "accecn0" } else { "accecn1" };
                std::iter::once(name.into()).chain(counts).collect::<Vec<String>>().join(" ")
            }
            TcpOption::Other { kind, .. } => format!("kind {kind}"),
        })
        .collect()
}

/// The first difference between a host's options and a line's, in any order; `*` stands for any word,
/// and a line may name fewer with `...`.
pub(crate) fn compare(
    wanted: &[Vec<String>],
    sent: &Segment,
    numbers: &Numbers,
    peer_iss: u32,
) -> Result<Option<String>, String> {
    let mut left = words(sent, peer_iss);
    let open = wanted.iter().any(|words| words.join(" ") == "...");
    for wanted in wanted.iter().filter(|words| words.join(" ") != "...") {
        let fits = |text: &String| {
            let words: Vec<&str> = text.split(' ').collect();
            let same = |(is, wanted): (&&str, &String)| {
                wanted == "*"
                    || wanted == is
                    || wanted == "last" && **is == *numbers.last_stamp.to_string()
            };
            words.len() == wanted.len() && words.iter().zip(wanted).all(same)
        };
        match left.iter().position(fits) {
            Some(place) => drop(left.remove(place)),
            None => return Ok(Some(format!("no option '{}'", wanted.join(" ")))),
        }
    }
    if open || left.is_empty() {
        return Ok(None);
    }
    Ok(Some(format!("options beyond those named: {}", left.join(", "))))
}
