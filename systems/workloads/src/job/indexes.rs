//! Sets of indexes as a Job's status has them: `0,2-4`.

use serde::{Deserialize, Serialize};

/// A set of indexes, as ranges that neither touch nor overlap, the lowest first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct Indexes(Vec<(u32, u32)>);

impl Indexes {
    /// Reads `0,2-4`. What cannot be read is left out: those indexes are not complete.
    pub fn read(text: &str) -> Indexes {
        let mut ranges: Vec<(u32, u32)> = text.split(',').filter_map(range).collect();
        ranges.sort_unstable();
        let mut indexes = Indexes::default();
        for (from, to) in ranges {
            indexes.append(from, to);
        }
        indexes
    }

    /// Appends a range that does not begin before the last one.
    fn append(&mut self, from: u32, to: u32) {
        match self.0.last_mut() {
            Some((_, end)) if from <= end.saturating_add(1) => *end = (*end).max(to),
            _ => self.0.push((from, to)),
        }
    }

    /// Whether an index is in the set.
    pub fn contains(&self, index: u32) -> bool {
        let place = self.0.partition_point(|(from, _)| *from <= index);
        place.checked_sub(1).is_some_and(|place| self.0[place].1 >= index)
    }

    /// The set with one more index.
    #[must_use]
    pub fn with(&self, index: u32) -> Indexes {
        let mut ranges = self.0.clone();
        ranges.push((index, index));
        ranges.sort_unstable();
        let mut indexes = Indexes::default();
        ranges.into_iter().for_each(|(from, to)| indexes.append(from, to));
        indexes
    }

    /// The lowest index below a limit that is not in the set and fits.
    pub fn lowest_missing(&self, limit: u32, fits: impl Fn(u32) -> bool) -> Option<u32> {
        let mut index = 0;
        for (from, to) in self.0.iter().copied().chain([(limit, limit)]) {
            if let Some(found) = (index..from.min(limit)).find(|index| fits(*index)) {
                return Some(found);
            }
            index = to.saturating_add(1);
        }
        None
    }

    /// How many indexes below a limit are in the set.
    pub fn count_below(&self, limit: u32) -> u32 {
        let counts = self.0.iter().map(|(from, to)| {
            let end = to.saturating_add(1).min(limit);
            end.saturating_sub(*from)
        });
        counts.fold(0, u32::saturating_add)
    }
}

impl std::fmt::Display for Indexes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (place, (from, to)) in self.0.iter().enumerate() {
            let comma = if place == 0 { "" } else { "," };
            // Upstream writes two neighbours apart.
            match to - from {
                0 => write!(f, "{comma}{from}")?,
                1 => write!(f, "{comma}{from},{to}")?,
                _ => write!(f, "{comma}{from}-{to}")?,
            }
        }
        Ok(())
    }
}

fn range(text: &str) -> Option<(u32, u32)> {
    let (from, to) = text.split_once('-').unwrap_or((text, text));
    let (from, to) = (from.trim().parse().ok()?, to.trim().parse().ok()?);
    (from <= to).then_some((from, to))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_read_as_they_are_written() {
        for (text, written) in [
            ("", ""),
            ("0", "0"),
            ("0,2-4", "0,2-4"),
            ("3,1,2", "1-3"),
            ("0,1", "0,1"),
            ("5-3,x,1-,2", "2"),
            ("0-4294967295", "0-4294967295"),
            ("1-5,2-3,9", "1-5,9"),
        ] {
            assert_eq!(Indexes::read(text).to_string(), written, "{text}");
        }
        assert_eq!(Indexes::read("0,2").with(1).with(1).to_string(), "0-2");
    }

    #[test]
    fn what_is_missing_is_found_below_the_limit() {
        let some = Indexes::read("0,2-4,7");
        assert_eq!((some.contains(2), some.contains(5), some.contains(7)), (true, false, true));
        assert_eq!(some.lowest_missing(9, |_| true), Some(1));
        assert_eq!(some.lowest_missing(9, |index| index > 1), Some(5));
        assert_eq!(some.lowest_missing(9, |index| index > 6), Some(8));
        assert_eq!(some.lowest_missing(8, |index| index > 6), None);
        assert_eq!(Indexes::read("0-9").lowest_missing(5, |_| true), None);
        assert_eq!((some.count_below(9), some.count_below(4)), (5, 3));
        assert_eq!(Indexes::read("0-4294967295").count_below(u32::MAX), u32::MAX);
        assert_eq!(Indexes::default().lowest_missing(u32::MAX, |_| true), Some(0));
    }
}
