//! Schedules of cron jobs, refused in the words of the parser that upstream uses.

const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const DAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];
const WORDS: [&str; 7] =
    ["@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"];

/// What one of the five fields may be.
struct Bounds {
    least: u32,
    most: u32,
    names: &'static [&'static str],
}

const FIELDS: [Bounds; 5] = [
    Bounds { least: 0, most: 59, names: &[] },
    Bounds { least: 0, most: 23, names: &[] },
    Bounds { least: 1, most: 31, names: &[] },
    Bounds { least: 1, most: 12, names: &MONTHS },
    Bounds { least: 0, most: 6, names: &DAYS },
];

/// What is wrong with a schedule, if anything.
pub(super) fn problem(schedule: &str) -> Option<String> {
    let mut schedule = schedule;
    if schedule.starts_with("TZ=") || schedule.starts_with("CRON_TZ=") {
        schedule = schedule.split_once(' ').map_or("", |(_, rest)| rest.trim());
    }
    if schedule.starts_with('@') {
        let is_known = WORDS.contains(&schedule) || is_every(schedule);
        return (!is_known).then(|| format!("unrecognized descriptor: {schedule}"));
    }
    let fields: Vec<&str> = schedule.split_whitespace().collect();
    if fields.len() != FIELDS.len() {
        let shown = fields.join(" ");
        return Some(format!("expected exactly 5 fields, found {}: [{shown}]", fields.len()));
    }
    fields.iter().zip(&FIELDS).find_map(|(field, bounds)| {
        field
            .split(',')
            .filter(|part| !part.is_empty())
            .find_map(|part| in_range(part, bounds).err())
    })
}

/// `@every 1h30m`, roughly: numbers with units.
fn is_every(schedule: &str) -> bool {
    let Some(span) = schedule.strip_prefix("@every ") else { return false };
    let ends_in_unit = span.ends_with(['h', 'm', 's']);
    let is_allowed = |letter: char| letter.is_ascii_digit() || ".hmsnuµ".contains(letter);
    ends_in_unit
        && span.starts_with(|first: char| first.is_ascii_digit())
        && span.chars().all(is_allowed)
}

fn in_range(part: &str, bounds: &Bounds) -> Result<(), String> {
    let mut by_step = part.split('/');
    let range = by_step.next().unwrap_or_default();
    let step = by_step.next();
    if by_step.next().is_some() {
        return Err(format!("too many slashes: {part}"));
    }
    let mut by_hyphen = range.split('-');
    let low = by_hyphen.next().unwrap_or_default();
    let high = by_hyphen.next();
    if by_hyphen.next().is_some() {
        return Err(format!("too many hyphens: {part}"));
    }
    let (start, end) = match (low, high) {
        ("*" | "?", _) => (bounds.least, bounds.most),
        (low, None) => {
            let start = number(low, bounds)?;
            (start, if step.is_some() { bounds.most } else { start })
        }
        (low, Some(high)) => (number(low, bounds)?, number(high, bounds)?),
    };
    if step.map_or(Ok(1), |step| number(step, &FIELDS[0]))? == 0 {
        return Err(format!("step of range should be a positive number: {part}"));
    }
    let (least, most) = (bounds.least, bounds.most);
    if start < least {
        return Err(format!("beginning of range ({start}) below minimum ({least}): {part}"));
    }
    if end > most {
        return Err(format!("end of range ({end}) above maximum ({most}): {part}"));
    }
    if start > end {
        return Err(format!("beginning of range ({start}) beyond end of range ({end}): {part}"));
    }
    Ok(())
}

fn number(text: &str, bounds: &Bounds) -> Result<u32, String> {
    let lower = text.to_lowercase();
    if let Some(place) = bounds.names.iter().position(|name| *name == lower) {
        return Ok(u32::try_from(place).unwrap_or_default() + bounds.least);
    }
    match text.parse::<i64>() {
        Ok(number) if number < 0 => Err(format!("negative number ({number}) not allowed: {text}")),
        Ok(number) => Ok(u32::try_from(number).unwrap_or(u32::MAX)),
        Err(_) => Err(format!(
            "failed to parse int from {text}: strconv.Atoi: parsing \"{text}\": invalid syntax"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn good_schedules_pass() {
        for schedule in [
            "* * * * *",
            "*/5 0-6 1,15 jan-MAR mon",
            "0 0 31 12 6",
            "@daily",
            "@every 1h30m",
            "TZ=UTC 0 0 * * *",
            "? ? ? ? ?",
            "10/5 * * * *",
        ] {
            assert_eq!(problem(schedule), None, "{schedule}");
        }
    }

    #[test]
    fn bad_schedules_are_refused_in_upstreams_words() {
        for (schedule, said) in [
            ("* * *", "expected exactly 5 fields, found 3: [* * *]"),
            ("60 * * * *", "end of range (60) above maximum (59): 60"),
            ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
            ("5-1 * * * *", "beginning of range (5) beyond end of range (1): 5-1"),
            ("*/0 * * * *", "step of range should be a positive number: */0"),
            ("1-2-3 * * * *", "too many hyphens: 1-2-3"),
            (
                "x * * * *",
                "failed to parse int from x: strconv.Atoi: parsing \"x\": invalid syntax",
            ),
            ("@never", "unrecognized descriptor: @never"),
        ] {
            assert_eq!(problem(schedule).as_deref(), Some(said), "{schedule}");
        }
    }

    #[test]
    fn no_schedule_makes_it_panic() {
        let pieces = [
            "*",
            "/",
            "-",
            ",",
            " ",
            "0",
            "59",
            "99999999999999999999",
            "-1",
            "jan",
            "SUN",
            "@every ",
            "@",
            "1h",
            "TZ=",
            "CRON_TZ=x ",
            "ü",
            "?",
            "\t",
            "9223372036854775807",
        ];
        let mut state = 0x9E37_79B9_7F4A_7C15_u64;
        let mut below = |bound: usize| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            usize::try_from((state >> 11) % bound as u64).expect("below a usize")
        };
        for _ in 0..20_000 {
            let schedule: String = (0..below(14)).map(|_| pieces[below(pieces.len())]).collect();
            let _ = problem(&schedule);
        }
    }
}
