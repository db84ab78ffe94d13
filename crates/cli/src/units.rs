//! Numbers for people.

/// A count with its digits in groups of three.
pub(crate) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Bytes with three digits and their unit, in powers of 1000.
pub(crate) fn bytes(number: u64) -> String {
    scaled(float(number), "B")
}

/// Packets per second.
pub(crate) fn packet_rate(packets: u64, seconds: f64) -> String {
    scaled(float(packets) / seconds.max(f64::MIN_POSITIVE), "pps")
}

/// Bits per second of a number of bytes.
pub(crate) fn bit_rate(bytes: u64, seconds: f64) -> String {
    scaled(float(bytes) * 8.0 / seconds.max(f64::MIN_POSITIVE), "bit/s")
}

/// A share as per cent.
pub(crate) fn percent(share: Option<f64>) -> String {
    share.map_or_else(|| "-".to_owned(), |share| format!("{:.1} %", share * 100.0))
}

/// A number with one digit behind the point.
pub(crate) fn decimal(number: Option<f64>) -> String {
    number.map_or_else(|| "-".to_owned(), |number| format!("{number:.1}"))
}

/// Seconds as days, hours, minutes and seconds.
pub(crate) fn uptime(seconds: u64) -> String {
    let (days, hours) = (seconds / 86_400, seconds / 3_600 % 24);
    let (minutes, rest) = (seconds / 60 % 60, seconds % 60);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{rest} s"),
        (0, 0, _) => format!("{minutes} min {rest} s"),
        (0, _, _) => format!("{hours} h {minutes} min"),
        _ => format!("{days} d {hours} h"),
    }
}

/// Milliseconds with the unit that fits.
pub(crate) fn age(milliseconds: u64) -> String {
    if milliseconds < 10_000 {
        format!("{}.{} s", milliseconds / 1_000, milliseconds / 100 % 10)
    } else {
        uptime(milliseconds / 1_000)
    }
}

fn scaled(mut number: f64, unit: &str) -> String {
    const STEPS: [&str; 5] = ["", "k", "M", "G", "T"];
    let mut step = 0;
    while number >= 999.5 && step + 1 < STEPS.len() {
        number /= 1_000.0;
        step += 1;
    }
    let digits = match number {
        _ if step == 0 => 0,
        n if n < 9.995 => 2,
        n if n < 99.95 => 1,
        _ => 0,
    };
    format!("{number:.digits$} {}{unit}", STEPS.get(step).copied().unwrap_or_default())
}

#[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
const fn float(number: u64) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_grouped() {
        assert_eq!(count(0), "0");
        assert_eq!(count(999), "999");
        assert_eq!(count(1_000), "1,000");
        assert_eq!(count(u64::MAX), "18,446,744,073,709,551,615");
    }

    #[test]
    fn three_digits_and_a_unit() {
        assert_eq!(bytes(0), "0 B");
        assert_eq!(bytes(999), "999 B");
        assert_eq!(bytes(1_500), "1.50 kB");
        assert_eq!(bytes(999_600), "1.00 MB");
        assert_eq!(packet_rate(1_488_000, 0.1), "14.9 Mpps");
        assert_eq!(bit_rate(1_250_000_000, 1.0), "10.0 Gbit/s");
        assert_eq!(percent(Some(0.123)), "12.3 %");
    }

    #[test]
    fn times() {
        assert_eq!(uptime(59), "59 s");
        assert_eq!(uptime(3_600), "1 h 0 min");
        assert_eq!(uptime(90_000), "1 d 1 h");
        assert_eq!(age(1_250), "1.2 s");
    }
}
