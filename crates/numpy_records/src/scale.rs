//! PostgreSQL's microseconds and days in NumPy's units: exact integers.

use longshore_values::calendar::{DAY, civil_from_days};

use crate::Unit;

const MICROSECOND: i128 = 1_000_000_000_000;

/// The attoseconds of a unit that is not a calendar's.
fn attoseconds(unit: &Unit) -> Option<i128> {
    let one = match unit.name.as_str() {
        "W" => 7 * 86_400_000_000 * MICROSECOND,
        "D" => 86_400_000_000 * MICROSECOND,
        "h" => 3_600_000_000 * MICROSECOND,
        "m" => 60_000_000 * MICROSECOND,
        "s" => 1_000_000 * MICROSECOND,
        "ms" => 1_000 * MICROSECOND,
        "us" => MICROSECOND,
        "ns" => 1_000_000_000,
        "ps" => 1_000_000,
        "fs" => 1_000,
        "as" => 1,
        _ => return None,
    };
    (unit.multiple > 0).then_some(one)?.checked_mul(i128::from(unit.multiple))
}

/// The treatment of a count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scale {
    /// It is multiplied with the first, and divided by the second; they have no common divisor.
    Ratio(i64, i64),
    /// So many months since 1970.
    Months(i64),
}

/// Where a division's rest goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rest {
    /// To the past, for dates and timestamps.
    Floor,
    /// To zero, for durations.
    Truncate,
}

impl Scale {
    /// From microseconds to `unit`; `None` where a duration has no such unit, or 64 bits no such number.
    pub(crate) fn of(unit: &Unit, rest: Rest) -> Option<Self> {
        if rest == Rest::Floor && unit.multiple > 0 {
            match unit.name.as_str() {
                "Y" => return unit.multiple.checked_mul(12).map(Self::Months),
                "M" => return Some(Self::Months(unit.multiple)),
                _ => {}
            }
        }
        let unit = attoseconds(unit)?;
        reduce(MICROSECOND, unit)
    }

    /// `microseconds` in the unit; `None` beyond 64 bits, of which the least is NumPy's NaT.
    #[inline]
    pub(crate) fn apply(self, microseconds: i64, rest: Rest) -> Option<i64> {
        match self {
            Self::Ratio(1, 1) => (microseconds != i64::MIN).then_some(microseconds),
            _ => self.scale(microseconds, rest),
        }
    }

    fn scale(self, microseconds: i64, rest: Rest) -> Option<i64> {
        let scaled = match self {
            Self::Ratio(factor, 1) => microseconds.checked_mul(factor)?,
            Self::Ratio(1, divisor) if rest == Rest::Floor => microseconds.div_euclid(divisor),
            Self::Ratio(1, divisor) => microseconds / divisor,
            Self::Ratio(..) => return self.apply_wide(microseconds.into(), rest),
            Self::Months(count) => months(microseconds.div_euclid(DAY)).div_euclid(count),
        };
        (scaled != i64::MIN).then_some(scaled)
    }

    /// `days`, whose microseconds may be beyond 64 bits, in the unit.
    #[inline]
    pub(crate) fn apply_days(self, days: i64) -> Option<i64> {
        match self {
            Self::Ratio(1, DAY) => Some(days),
            Self::Months(count) => Some(months(days).div_euclid(count)),
            Self::Ratio(..) => match days.checked_mul(DAY) {
                Some(microseconds) => self.apply(microseconds, Rest::Floor),
                None => self.apply_wide(i128::from(days) * i128::from(DAY), Rest::Floor),
            },
        }
    }

    /// The same for microseconds beyond 64 bits.
    #[cold]
    pub(crate) fn apply_wide(self, microseconds: i128, rest: Rest) -> Option<i64> {
        let Self::Ratio(factor, divisor) = self else { return None };
        let (product, divisor) = (microseconds.checked_mul(factor.into())?, i128::from(divisor));
        let quotient = if rest == Rest::Floor { product.div_euclid(divisor) } else { product / divisor };
        i64::try_from(quotient).ok().filter(|scaled| *scaled != i64::MIN)
    }
}

/// The two numbers without their common divisors.
fn reduce(factor: i128, divisor: i128) -> Option<Scale> {
    let (mut common, mut rest) = (factor, divisor);
    while rest != 0 {
        (common, rest) = (rest, common % rest);
    }
    Some(Scale::Ratio(i64::try_from(factor / common).ok()?, i64::try_from(divisor / common).ok()?))
}

fn months(days: i64) -> i64 {
    let (year, month, _) = civil_from_days(days);
    (year - 1970) * 12 + month - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scale(name: &str, multiple: i64, rest: Rest) -> Scale {
        Scale::of(&Unit { name: name.to_owned(), multiple }, rest).unwrap()
    }

    /// The count of NumPy's own units, by attoseconds.
    fn expected_count(microseconds: i64, name: &str, multiple: i64, rest: Rest) -> Option<i64> {
        let unit = attoseconds(&Unit { name: name.to_owned(), multiple }).unwrap();
        let product = i128::from(microseconds) * MICROSECOND;
        let quotient = if rest == Rest::Floor { product.div_euclid(unit) } else { product / unit };
        i64::try_from(quotient).ok().filter(|scaled| *scaled != i64::MIN)
    }

    #[test]
    fn every_unit_is_exact_at_every_edge() {
        let edges = [0, 1, 999, 1_000, 86_399_999_999, DAY, 7 * DAY, i64::MAX / 1_000, i64::MAX, 1 << 53];
        for name in ["W", "D", "h", "m", "s", "ms", "us", "ns", "ps", "fs", "as"] {
            for multiple in [1, 2, 25, 300] {
                for rest in [Rest::Floor, Rest::Truncate] {
                    let scale = scale(name, multiple, rest);
                    for edge in edges {
                        for count in [edge, -edge, edge.saturating_add(1), (-edge).saturating_sub(1)] {
                            let want = expected_count(count, name, multiple, rest);
                            assert_eq!(scale.apply(count, rest), want, "{count} us in [{multiple}{name}]");
                            assert_eq!(scale.apply_wide(i128::from(count), rest), want);
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn months_and_years_follow_the_calendar() {
        let (months, years) = (scale("M", 1, Rest::Floor), scale("Y", 1, Rest::Floor));
        assert_eq!(months.apply(-1, Rest::Floor), Some(-1));
        assert_eq!(years.apply(-1, Rest::Floor), Some(-1));
        assert_eq!(months.apply(31 * DAY, Rest::Floor), Some(1));
        assert_eq!(years.apply_days(365), Some(1));
        assert_eq!(scale("M", 3, Rest::Floor).apply_days(89), Some(0));
        assert_eq!(scale("M", 3, Rest::Floor).apply_days(90), Some(1));
        assert!(Scale::of(&Unit { name: "M".to_owned(), multiple: 1 }, Rest::Truncate).is_none());
        assert!(Scale::of(&Unit { name: "W".to_owned(), multiple: i64::MAX }, Rest::Floor).is_none());
        assert!(Scale::of(&Unit { name: "generic".to_owned(), multiple: 1 }, Rest::Floor).is_none());
    }

    #[test]
    fn days_beyond_the_microseconds_of_64_bits_are_exact() {
        let days = 200_000_000;
        assert_eq!(scale("D", 1, Rest::Floor).apply_days(days), Some(days));
        assert_eq!(scale("s", 1, Rest::Floor).apply_days(days), Some(days * 86_400));
        assert_eq!(scale("W", 1, Rest::Floor).apply_days(-days), Some((-days).div_euclid(7)));
        assert_eq!(scale("us", 1, Rest::Floor).apply_days(days), None);
        assert_eq!(scale("ns", 1, Rest::Floor).apply_days(days), None);
    }
}
