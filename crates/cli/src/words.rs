//! How things are written for people: ages as `kubectl` writes them, tables, colours, nearest
//! names.

use interlock_api::Period;
use interlock_kernel::nearest;
pub(crate) use interlock_quantity::readable as size;
use jiff::Timestamp;
use std::time::Duration;

/// How long ago, as `kubectl` writes it: `45s`, `3m20s`, `5h`, `2d4h`.
pub(crate) fn age(now: Timestamp, then: Timestamp) -> String {
    let seconds = now.as_second().saturating_sub(then.as_second());
    if seconds < -2 {
        return "<invalid>".to_owned();
    }
    span(seconds.max(0).unsigned_abs())
}

/// How long ago, or a dash if nobody knows.
pub(crate) fn age_or_dash(now: Timestamp, then: Option<Timestamp>) -> String {
    then.map_or_else(|| "-".to_owned(), |then| age(now, then))
}

/// A length of time, coarser the longer it is.
pub(crate) fn span(seconds: u64) -> String {
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    let two = |large: u64, unit: &str, small: u64, small_unit: &str| match small {
        0 => format!("{large}{unit}"),
        small => format!("{large}{unit}{small}{small_unit}"),
    };
    match seconds {
        0..120 => format!("{seconds}s"),
        120..600 => two(minutes, "m", seconds % 60, "s"),
        600..10_800 => format!("{minutes}m"),
        10_800..28_800 => two(hours, "h", minutes % 60, "m"),
        28_800..172_800 => format!("{hours}h"),
        172_800..691_200 => two(days, "d", hours % 24, "h"),
        691_200..63_072_000 => format!("{days}d"),
        _ => two(days / 365, "y", days % 365, "d"),
    }
}

/// A table: a head and rows, columns aligned, nothing behind the last one.
pub(crate) fn table(head: &[&str], rows: &[Vec<String>]) -> String {
    let mut widths: Vec<usize> = head.iter().map(|word| word.chars().count()).collect();
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let mut text = line(&widths, head.iter().copied());
    for row in rows {
        text += &line(&widths, row.iter().map(String::as_str));
    }
    text
}

fn line<'a>(widths: &[usize], cells: impl Iterator<Item = &'a str>) -> String {
    let mut text = String::new();
    for (width, cell) in widths.iter().zip(cells) {
        text += &format!("{cell:width$}  ");
    }
    text.truncate(text.trim_end().len());
    text + "\n"
}

/// `1 namespace`, `2 namespaces`.
pub(crate) fn count(number: usize, thing: &str) -> String {
    format!("{number} {thing}{}", if number == 1 { "" } else { "s" })
}

/// Names with commas between them.
pub(crate) fn names<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.collect::<Vec<_>>().join(", ")
}

/// What to say of a name that is not there: the nearest one, or all if they are few.
pub(crate) fn did_you_mean(name: &str, known: &[String]) -> String {
    let all = || known.iter().map(String::as_str);
    let begun = all().find(|known| known.starts_with(name));
    let near = begun.or_else(|| nearest(name, all()).first().copied());
    match (near, known.len()) {
        (Some(near), _) => format!("; did you mean `{near}`?"),
        (None, 0) => "; none exists".to_owned(),
        (None, 1..=8) => format!("; existing: {}", names(all())),
        (None, _) => String::new(),
    }
}

/// A message in the middle of a sentence: without its full stop.
pub(crate) fn clause(message: &str) -> &str {
    message.trim().trim_end_matches('.')
}

/// What a condition says, with what a person does next.
pub(crate) fn advice(message: &str, next: Option<&str>) -> String {
    match next {
        Some(next) => format!("{}. next: {next}", clause(message)),
        None => message.to_owned(),
    }
}

/// A colour for a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Colour {
    /// Nobody has to do anything.
    Green,
    /// Something is under way.
    Yellow,
    /// A person may have to act.
    Red,
}

/// The text in a colour, where colours are wanted.
pub(crate) fn paint(text: &str, colour: Colour, is_wanted: bool) -> String {
    if !is_wanted {
        return text.to_owned();
    }
    let code = match colour {
        Colour::Green => 32,
        Colour::Yellow => 33,
        Colour::Red => 31,
    };
    format!("\x1b[{code}m{text}\x1b[0m")
}

/// A length of time as people write it.
pub(crate) fn time(text: &str) -> Result<Duration, String> {
    let period: Period = text.parse().map_err(|_| "write 90s, 10m or 1h30m".to_owned())?;
    Ok(period.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_those_of_kubectl() {
        for (seconds, text) in [
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (200, "3m20s"),
            (599, "9m59s"),
            (600, "10m"),
            (10_799, "179m"),
            (10_800, "3h"),
            (11_400, "3h10m"),
            (28_800, "8h"),
            (172_799, "47h"),
            (172_800, "2d"),
            (187_200, "2d4h"),
            (691_200, "8d"),
            (63_072_000, "2y"),
            (63_072_000 + 86_400, "2y1d"),
        ] {
            assert_eq!(span(seconds), text, "{seconds}");
        }
    }

    #[test]
    fn a_moment_in_the_future_is_invalid_unless_clocks_just_differ_a_little() {
        let now = Timestamp::from_second(1_000).unwrap();
        assert_eq!(age(now, Timestamp::from_second(1_002).unwrap()), "0s");
        assert_eq!(age(now, Timestamp::from_second(1_030).unwrap()), "<invalid>");
    }

    #[test]
    fn columns_align_and_nothing_trails() {
        let rows = [vec!["a".to_owned(), "x".to_owned()], vec!["longer".to_owned(), String::new()]];
        assert_eq!(table(&["NAME", "WHY"], &rows), "NAME    WHY\na       x\nlonger\n");
    }

    #[test]
    fn advice_ends_with_the_command() {
        let said = advice("there is no cluster.", Some("interlock status"));
        assert_eq!(said, "there is no cluster. next: interlock status");
        assert_eq!(advice("it waits.", None), "it waits.");
    }

    #[test]
    fn the_nearest_name_is_offered_and_a_far_one_is_not() {
        let known = ["east".to_owned(), "west".to_owned()];
        assert_eq!(did_you_mean("esat", &known), "; did you mean `east`?");
        assert_eq!(did_you_mean("w", &known), "; did you mean `west`?");
        assert_eq!(did_you_mean("frankfurt", &known), "; existing: east, west");
        assert_eq!(did_you_mean("x", &[]), "; none exists");
    }
}
