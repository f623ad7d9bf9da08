//! The session's time zone, in which the server writes every TIMESTAMP.

/// A session's time zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Zone {
    /// Always so many minutes east of UTC.
    Fixed(i16),
    /// The server's own, or one with rules: its hours say no moment.
    Other,
}

impl Zone {
    pub(crate) const UTC: Self = Self::Fixed(0);

    /// The zone of a fixed offset, `+HH:MM` or `UTC`; `None` for any other.
    pub(crate) fn fixed(text: &str) -> Option<Self> {
        if text.eq_ignore_ascii_case("utc") {
            return Some(Self::UTC);
        }
        let (sign, digits) = match text.split_at_checked(1)? {
            ("+", digits) => (1, digits),
            ("-", digits) => (-1, digits),
            _ => return None,
        };
        let (hours, minutes) = digits.split_once(':')?;
        let number = |text: &str, most: i16| {
            let is_number = (1..=2).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
            text.parse::<i16>().ok().filter(|number| is_number && *number <= most)
        };
        Some(Self::Fixed(sign * (number(hours, 14)? * 60 + number(minutes, 59)?)))
    }

    /// What the server says that the zone now is.
    pub(crate) fn of_server(text: &str) -> Self {
        Self::fixed(text).unwrap_or(Self::Other)
    }

    /// The statement's text that sets it.
    pub(crate) fn text(self) -> String {
        let Self::Fixed(minutes) = self else { return "SYSTEM".to_owned() };
        let sign = if minutes < 0 { '-' } else { '+' };
        format!("{sign}{:02}:{:02}", minutes.abs() / 60, minutes.abs() % 60)
    }

    /// Microseconds east of UTC, where that is fixed.
    pub(crate) fn offset(self) -> Option<i64> {
        match self {
            Self::Fixed(minutes) => Some(i64::from(minutes) * 60_000_000),
            Self::Other => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Zone;

    #[test]
    fn fixed_offsets_are_known_and_nothing_else() {
        for (text, minutes) in [("+00:00", 0), ("-00:00", 0), ("UTC", 0), ("+05:30", 330), ("-13:59", -839)] {
            assert_eq!(Zone::fixed(text), Some(Zone::Fixed(minutes)), "{text}");
        }
        for other in ["SYSTEM", "Europe/Berlin", "", "+", "05:30", "+5", "+99:00", "+01:60", "+0x:00", "é"] {
            assert_eq!(Zone::fixed(other), None, "{other}");
        }
        assert_eq!(Zone::Fixed(-90).text(), "-01:30");
    }
}
