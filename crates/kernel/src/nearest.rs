//! The names that a person may have meant.

/// How many names are offered.
const OFFERED: usize = 3;
/// Names longer than any cluster's are not compared: the work grows with the product of lengths.
const LONGEST: usize = 253;

/// The known names nearest to what was asked for, nearest first; then by name. Names that have
/// hardly anything in common with it are left out.
pub fn nearest<'a>(asked: &str, known: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    if asked.len() > LONGEST {
        return Vec::new();
    }
    let mut near: Vec<(usize, &str)> = known
        .map(|name| (steps_between(asked, name), name))
        .filter(|(steps, name)| steps * 2 <= asked.len().max(name.len()))
        .collect();
    near.sort_unstable();
    near.into_iter().take(OFFERED).map(|(_, name)| name).collect()
}

/// How many characters have to be put in, taken out or changed to make one of the other.
fn steps_between(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (line, have) in one.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = line + 1;
        for (column, want) in other.iter().enumerate() {
            let change = diagonal + usize::from(have != *want);
            diagonal = row[column + 1];
            row[column + 1] = change.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_counted_as_a_person_would_type_them() {
        assert_eq!(steps_between("", "abc"), 3);
        assert_eq!(steps_between("kitten", "sitting"), 3);
        assert_eq!(steps_between("same", "same"), 0);
    }

    #[test]
    fn the_nearest_names_come_first_and_far_ones_not_at_all() {
        let known = ["eu-west-1", "eu-west-2", "us-east-1", "moon"];
        assert_eq!(nearest("eu-wst-2", known.into_iter()), ["eu-west-2", "eu-west-1"]);
        assert!(nearest("quite-another", known.into_iter()).is_empty());
        assert!(nearest(&"x".repeat(100_000), known.into_iter()).is_empty());
    }
}
