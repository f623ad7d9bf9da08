//! Dates, times, timestamps and intervals that Arrow has no value for.

use arrow_array::types::IntervalMonthDayNano;
use arrow_array::{Array, ArrayRef, make_array};
use arrow_buffer::{ArrowNativeType, ScalarBuffer};
use arrow_schema::DataType;
use longshore_core::Unrepresentable;
use longshore_values::CellFault;

use crate::error::{Reason, internal, unrepresentable};

const INFINITE: Reason = (
    "infinity, for which the engine takes the last date and timestamp that Arrow counts, too, has no Arrow value",
    "read it as NULL with options={\"infinity\": \"null\"}, or as text with CAST(\"<column>\" AS VARCHAR)",
);

const WRAPPED_DATE: Reason = (
    "an infinite date or timestamp, or one beyond Arrow's years, has no Arrow value",
    "read it as NULL with options={\"infinity\": \"null\"}, or as text with CAST(\"<column>\" AS text)",
);

const TIME_24: Reason = (
    "24:00 has no Arrow value; consumers would read it as 00:00",
    "read it as NULL with options={\"time_24\": \"null\"}, or as text with CAST(\"<column>\" AS VARCHAR)",
);

const WRAPPED: Reason = (
    "the interval's hours are beyond what nanoseconds count in 64 bits",
    "read it as NULL with options={\"infinity\": \"null\"}, or as text with CAST(\"<column>\" AS VARCHAR)",
);

/// The engine multiplies its microseconds by this, and lets the product wrap.
const NANOS_PER_MICRO: i64 = 1_000;

/// The values that stand for infinity, by driver.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Infinity {
    /// The last and the first count: the engine.
    Last,
    /// A count that has wrapped to below PostgreSQL's first day, as have those of years beyond Arrow's: its ADBC driver.
    Wrapped,
}

/// PostgreSQL's first day, in 4713 BC.
const FIRST_DAY: i32 = -2_440_588;
const MICROS_PER_DAY: i64 = 86_400_000_000;

/// Dates, the infinite ones as `policy` says.
pub(crate) fn dates(
    array: &ArrayRef,
    infinity: Infinity,
    policy: Unrepresentable,
) -> Result<ArrayRef, CellFault> {
    let kind = array.data_type();
    match infinity {
        Infinity::Last => {
            let is_infinite = |day: i32| day == i32::MAX || day == -i32::MAX;
            without(array, kind, is_infinite, policy, INFINITE)
        }
        Infinity::Wrapped => without(array, kind, |day: i32| day < FIRST_DAY, policy, WRAPPED_DATE),
    }
}

/// Times, 24:00 as `policy` says; `day` is its count.
pub(crate) fn times(array: &ArrayRef, day: i64, policy: Unrepresentable) -> Result<ArrayRef, CellFault> {
    without(array, array.data_type(), |time: i64| time >= day, policy, TIME_24)
}

/// Timestamps under `data_type`, which may name another zone; the infinite ones as `policy` says.
pub(crate) fn timestamps(
    array: &ArrayRef,
    data_type: &DataType,
    infinity: Infinity,
    policy: Unrepresentable,
) -> Result<ArrayRef, CellFault> {
    if infinity == Infinity::Wrapped {
        let has_wrapped = |count: i64| count < i64::from(FIRST_DAY) * MICROS_PER_DAY;
        return without(array, data_type, has_wrapped, policy, WRAPPED_DATE);
    }
    let is_infinite = |count: i64| count == i64::MAX || count == -i64::MAX;
    without(array, data_type, is_infinite, policy, INFINITE)
}

/// Intervals; those whose hours the engine has let wrap are as `policy` says.
pub(crate) fn intervals(array: &ArrayRef, policy: Unrepresentable) -> Result<ArrayRef, CellFault> {
    // The engine has whole microseconds only, and a product that has wrapped is none of theirs: 2 to the 64th is not a
    // multiple of a thousand.
    let has_wrapped = |interval: IntervalMonthDayNano| interval.nanoseconds % NANOS_PER_MICRO != 0;
    without(array, array.data_type(), has_wrapped, policy, WRAPPED)
}

/// `array`, whose values are `N`, under `data_type`, with an error or NULL for each value that `is_lossy` finds, as `policy`
/// says.
fn without<N: ArrowNativeType>(
    array: &ArrayRef,
    data_type: &DataType,
    is_lossy: impl Fn(N) -> bool,
    policy: Unrepresentable,
    reason: Reason,
) -> Result<ArrayRef, CellFault> {
    if array.data_type().primitive_width() != Some(size_of::<N>()) {
        return Err(internal(&format!("{} that holds something else", array.data_type())));
    }
    let data = array.to_data();
    let values = ScalarBuffer::<N>::new(data.buffers()[0].clone(), data.offset(), data.len());
    // No early end: the loop runs over several values at once.
    let any = values.iter().fold(false, |any, value| any | is_lossy(*value));
    if !any && array.data_type() == data_type {
        return Ok(array.clone());
    }
    // What lies under a NULL may be anything.
    let is_lossy = |row: usize| array.is_valid(row) && is_lossy(values[row]);
    let nulls = match (any, policy) {
        (false, _) => array.nulls().cloned(),
        (true, Unrepresentable::Null) => {
            Some((0..array.len()).map(|row| array.is_valid(row) && !is_lossy(row)).collect())
        }
        (true, Unrepresentable::Error) => match (0..array.len()).find(|row| is_lossy(*row)) {
            Some(row) => return Err(unrepresentable(reason, row)),
            None => array.nulls().cloned(),
        },
    };
    let data = data.into_builder().data_type(data_type.clone()).nulls(nulls).build();
    data.map(make_array).map_err(|error| internal(&error))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::cast::AsArray;
    use arrow_array::types::TimestampMicrosecondType;
    use arrow_array::{
        Date32Array, IntervalMonthDayNanoArray, Time64MicrosecondArray, TimestampMicrosecondArray,
    };
    use arrow_buffer::NullBuffer;
    use arrow_schema::TimeUnit;

    use super::*;

    #[test]
    fn infinity_is_an_error_or_null_and_nothing_under_a_null() {
        let array: ArrayRef =
            Arc::new(Date32Array::from(vec![Some(1), None, Some(i32::MAX), Some(-i32::MAX)]));
        assert_eq!(dates(&array, Infinity::Last, Unrepresentable::Error).unwrap_err().row, 2);
        let nulls = dates(&array, Infinity::Last, Unrepresentable::Null).unwrap();
        assert_eq!((nulls.null_count(), nulls.is_valid(0)), (3, true));

        let nulls = NullBuffer::from(vec![false]);
        let hidden: ArrayRef = Arc::new(TimestampMicrosecondArray::new(vec![i64::MAX].into(), Some(nulls)));
        timestamps(&hidden, hidden.data_type(), Infinity::Last, Unrepresentable::Error).unwrap();
    }

    #[test]
    fn infinity_that_has_wrapped() {
        let first: ArrayRef = Arc::new(Date32Array::from(vec![FIRST_DAY, FIRST_DAY - 1]));
        assert_eq!(dates(&first, Infinity::Wrapped, Unrepresentable::Error).unwrap_err().row, 1);
        let wrapped = [0, i64::MAX.wrapping_add(946_684_800_000_000)];
        let array: ArrayRef = Arc::new(TimestampMicrosecondArray::from(wrapped.to_vec()));
        let nulls = timestamps(&array, array.data_type(), Infinity::Wrapped, Unrepresentable::Null).unwrap();
        assert_eq!((nulls.null_count(), nulls.is_valid(0)), (1, true));
    }

    #[test]
    fn another_zone_copies_nothing() {
        let array = TimestampMicrosecondArray::from(vec![1]).with_timezone("Etc/UTC");
        let from = array.values().as_ptr();
        let array: ArrayRef = Arc::new(array);
        let utc = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
        let relabelled = timestamps(&array, &utc, Infinity::Last, Unrepresentable::Error).unwrap();
        assert_eq!(relabelled.data_type(), &utc);
        assert_eq!(relabelled.as_primitive::<TimestampMicrosecondType>().values().as_ptr(), from);
    }

    #[test]
    fn midnight_at_the_end_of_a_day() {
        let day = 86_400_000_000;
        let array: ArrayRef = Arc::new(Time64MicrosecondArray::from(vec![day - 1, day]));
        assert_eq!(times(&array, day, Unrepresentable::Error).unwrap_err().row, 1);
        assert_eq!(times(&array, day, Unrepresentable::Null).unwrap().null_count(), 1);
    }

    #[test]
    fn hours_that_have_wrapped_are_seen() {
        let interval = |nanoseconds| IntervalMonthDayNano::new(0, 0, nanoseconds);
        let array =
            vec![interval(-3_000), interval(i64::MAX / 1_000 * 1_000), interval(-7_646_744_073_709_551_616)];
        let array: ArrayRef = Arc::new(IntervalMonthDayNanoArray::from(array));
        assert_eq!(intervals(&array, Unrepresentable::Error).unwrap_err().row, 2);
        assert_eq!(intervals(&array, Unrepresentable::Null).unwrap().null_count(), 1);
    }
}
