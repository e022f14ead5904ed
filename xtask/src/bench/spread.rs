//! Several measurements of one thing: the one in the middle, and how far they lie apart.

use serde_json::Value;
use std::collections::BTreeMap;

/// What was measured in several rounds, by name.
#[derive(Debug, Default)]
pub(crate) struct Rounds(BTreeMap<(String, String), Vec<f64>>);

impl Rounds {
    /// Takes in all numbers of one answer.
    pub(crate) fn add(&mut self, what: &str, answer: &Value) {
        for (key, value) in answer.as_object().into_iter().flatten() {
            if let Some(number) = value.as_f64() {
                self.note(what, key, number);
            }
        }
    }

    /// Takes in one number.
    pub(crate) fn note(&mut self, what: &str, key: &str, number: f64) {
        self.0.entry((what.to_owned(), key.to_owned())).or_default().push(number);
    }

    /// What came out for a number.
    pub(crate) fn of(&self, what: &str, key: &str) -> Spread {
        let mut numbers = self.0.get(&(what.to_owned(), key.to_owned())).cloned();
        Spread::of(numbers.as_mut().map_or(&mut [], |numbers| numbers.as_mut_slice()))
    }
}

/// The least, the middle and the greatest.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Spread {
    pub(crate) least: f64,
    pub(crate) median: f64,
    pub(crate) greatest: f64,
}

impl Spread {
    fn of(numbers: &mut [f64]) -> Self {
        numbers.sort_by(f64::total_cmp);
        let at = |place: usize| numbers.get(place).copied().unwrap_or(f64::NAN);
        let last = numbers.len().saturating_sub(1);
        Spread { least: at(0), median: at(last / 2), greatest: at(last) }
    }

    /// `28,200 (27,100 to 29,300)`, or the one number if there was one round only.
    pub(crate) fn whole(&self) -> String {
        let Spread { least, median, greatest } = *self;
        if least == greatest {
            return grouped(median);
        }
        format!("{} ({} to {})", grouped(median), grouped(least), grouped(greatest))
    }
}

/// A number of things, for people.
pub(crate) fn count(things: usize) -> String {
    if things < 100 { things.to_string() } else { grouped(things as f64) }
}

/// A number for people: groups of three digits, and decimals only where they say something.
pub(crate) fn grouped(number: f64) -> String {
    if !number.is_finite() {
        return "-".to_owned();
    }
    if number.abs() < 100.0 {
        return if number.abs() < 10.0 { format!("{number:.2}") } else { format!("{number:.1}") };
    }
    let digits = format!("{:.0}", number.abs());
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    if number < 0.0 { format!("-{text}") } else { text }
}

/// Microseconds, in the unit that fits.
pub(crate) fn time(microseconds: f64) -> String {
    match microseconds {
        it if !it.is_finite() => "-".to_owned(),
        it if it < 1_000.0 => format!("{it:.0} us"),
        it if it < 1_000_000.0 => format!("{} ms", grouped(it / 1e3)),
        it => format!("{} s", grouped(it / 1e6)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_for_people() {
        let shown: Vec<String> =
            [0.5, 12.34, 999.6, 28_200.4, 1_234_567.0, -4_000.0, f64::NAN].map(grouped).to_vec();
        assert_eq!(shown, ["0.50", "12.3", "1,000", "28,200", "1,234,567", "-4,000", "-"]);
    }

    #[test]
    fn the_median_is_the_one_in_the_middle() {
        let spread = Spread::of(&mut [5.0, 1.0, 9.0, 2.0, 7.0]);
        assert_eq!(spread, Spread { least: 1.0, median: 5.0, greatest: 9.0 });
    }
}
