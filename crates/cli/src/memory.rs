//! How much memory there is, and how much was asked for.

/// Reads `8G`, `512M`, `1.5GiB` or plain bytes.
pub(crate) fn parse(text: &str) -> Result<usize, String> {
    let lower = text.trim().to_ascii_lowercase();
    let digits = lower.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let scale = match &lower[digits.len()..] {
        "" | "b" => 1.0,
        "k" | "kb" | "kib" => 1024.0,
        "m" | "mb" | "mib" => 1024.0 * 1024.0,
        "g" | "gb" | "gib" => 1024.0 * 1024.0 * 1024.0,
        other => return Err(format!("`{other}` is not a unit: write 512M or 8G")),
    };
    match digits.trim().parse::<f64>() {
        Ok(number) if number > 0.0 && number.is_finite() => Ok((number * scale) as usize),
        _ => Err(format!("cannot parse `{text}`: write 512M or 8G")),
    }
}

/// Four fifths of what the system says is free, so that a check ends with a message instead of being
/// killed; none where the system does not say.
pub(crate) fn available() -> Option<usize> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("MemAvailable:"))?;
    let kilobytes: usize = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kilobytes / 5 * 4 * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_with_and_without_units() {
        assert_eq!(parse("8G"), Ok(8 << 30));
        assert_eq!(parse("1.5GiB"), Ok(3 << 29));
        assert_eq!(parse("512m"), Ok(512 << 20));
        assert_eq!(parse("1000"), Ok(1000));
    }

    #[test]
    fn what_cannot_be_read_says_how_to_write_it() {
        for text in ["", "G", "8X", "-1G", "many"] {
            assert!(parse(text).unwrap_err().contains("write 512M or 8G"), "{text}");
        }
    }
}
