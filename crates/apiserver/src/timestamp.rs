//! Timestamps as the API writes them: RFC 3339 in UTC.

/// `2026-11-15T07:57:28Z`, from seconds since 1970. Years outside 0 to 9999 are cut to that range.
pub(crate) fn seconds(unix_seconds: i64) -> String {
    let (date, time) = parts(unix_seconds);
    format!("{date}T{time}Z")
}

/// `2026-11-15T07:57:28.123456Z`, from microseconds since 1970.
pub(crate) fn micros(unix_micros: i64) -> String {
    let (date, time) = parts(unix_micros.div_euclid(1_000_000));
    format!("{date}T{time}.{:06}Z", unix_micros.rem_euclid(1_000_000))
}

const DAY: i64 = 86_400;
/// 0000-01-01T00:00:00Z and 9999-12-31T23:59:59Z: four digits is all that RFC 3339 has.
const EARLIEST: i64 = -62_167_219_200;
const LATEST: i64 = 253_402_300_799;

fn parts(unix_seconds: i64) -> (String, String) {
    let seconds = unix_seconds.clamp(EARLIEST, LATEST);
    let (year, month, day) = date(seconds.div_euclid(DAY));
    let of_day = seconds.rem_euclid(DAY);
    (
        format!("{year:04}-{month:02}-{day:02}"),
        format!("{:02}:{:02}:{:02}", of_day / 3600, of_day / 60 % 60, of_day % 60),
    )
}

/// The civil date of a day counted from 1970. Years are counted from March, so that the leap day is
/// the last one of a year; then a 400-year era always has the same number of days.
pub(crate) fn date(days_since_1970: i64) -> (i64, i64, i64) {
    let days = days_since_1970 + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_moments_are_written_as_everyone_writes_them() {
        for (unix, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_709_251_199, "2024-02-29T23:59:59Z"),
            (1_794_729_448, "2026-11-15T07:57:28Z"),
            (-1, "1969-12-31T23:59:59Z"),
            (i64::MAX, "9999-12-31T23:59:59Z"),
            (i64::MIN, "0000-01-01T00:00:00Z"),
        ] {
            assert_eq!(seconds(unix), text);
        }
    }

    #[test]
    fn days_become_dates() {
        assert_eq!(date(0), (1970, 1, 1));
        assert_eq!(date(-1), (1969, 12, 31));
        assert_eq!(date(11_016), (2000, 2, 29));
        assert_eq!(date(20_000), (2024, 10, 4));
    }

    #[test]
    fn fractions_have_six_digits() {
        assert_eq!(micros(1_000_007), "1970-01-01T00:00:01.000007Z");
        assert_eq!(micros(-1), "1969-12-31T23:59:59.999999Z");
    }
}
