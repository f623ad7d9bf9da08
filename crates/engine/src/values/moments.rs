//! Dates, times, timestamps and intervals that Arrow has no value for.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, IntervalMonthDayNanoType, Time64MicrosecondType, Time64NanosecondType,
    TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType,
};
use arrow_array::{Array, ArrayRef, PrimitiveArray};
use arrow_buffer::NullBuffer;
use arrow_schema::{DataType, TimeUnit};
use longshore_core::OnOdd;

use crate::fault::{Fate, Fault, What, infinite, time_24};

/// The engine multiplies its microseconds by this, and lets the product wrap.
const NANOS_PER_MICRO: i64 = 1_000;

const WRAPPED: What = What::Data {
    message: "the interval's hours are beyond what nanoseconds count in 64 bits",
    hint: "read it as NULL with options={\"infinity\": \"null\"}, or as text with CAST(\"<column>\" AS VARCHAR)",
};

/// Dates, the infinite ones as `policy` says.
pub(crate) fn dates(array: &ArrayRef, policy: OnOdd) -> Result<ArrayRef, Fault> {
    let is_infinite = |day: i32| day == i32::MAX || day == -i32::MAX;
    without::<Date32Type>(array, array.data_type(), is_infinite, || infinite(policy))
}

/// Times, 24:00 as `policy` says; `day` is its count.
pub(crate) fn times(array: &ArrayRef, day: i64, policy: OnOdd) -> Result<ArrayRef, Fault> {
    let is_24 = |time: i64| time >= day;
    let fate = || time_24(policy);
    match array.data_type() {
        DataType::Time64(TimeUnit::Nanosecond) => {
            without::<Time64NanosecondType>(array, array.data_type(), is_24, fate)
        }
        _ => without::<Time64MicrosecondType>(array, array.data_type(), is_24, fate),
    }
}

/// Timestamps under `data_type`, which may name another zone; the infinite ones as `policy` says.
pub(crate) fn timestamps(array: &ArrayRef, data_type: &DataType, policy: OnOdd) -> Result<ArrayRef, Fault> {
    let is_infinite = |count: i64| count == i64::MAX || count == -i64::MAX;
    let fate = || infinite(policy);
    match data_type {
        DataType::Timestamp(TimeUnit::Second, _) => {
            without::<TimestampSecondType>(array, data_type, is_infinite, fate)
        }
        DataType::Timestamp(TimeUnit::Millisecond, _) => {
            without::<TimestampMillisecondType>(array, data_type, is_infinite, fate)
        }
        DataType::Timestamp(TimeUnit::Nanosecond, _) => {
            without::<TimestampNanosecondType>(array, data_type, is_infinite, fate)
        }
        _ => without::<TimestampMicrosecondType>(array, data_type, is_infinite, fate),
    }
}

/// Intervals; those whose hours the engine has let wrap are as `policy` says.
pub(crate) fn intervals(array: &ArrayRef, policy: OnOdd) -> Result<ArrayRef, Fault> {
    // The engine has whole microseconds only, and a product that has wrapped is none of theirs: 2 to the 64th is no
    // multiple of a thousand.
    let has_wrapped = |interval: <IntervalMonthDayNanoType as ArrowPrimitiveType>::Native| {
        interval.nanoseconds % NANOS_PER_MICRO != 0
    };
    let fate = || (policy == OnOdd::Error).then_some(WRAPPED);
    without::<IntervalMonthDayNanoType>(array, array.data_type(), has_wrapped, fate)
}

/// `array` under `data_type`, its odd values an error or NULL as `fate` says.
fn without<T: ArrowPrimitiveType>(
    array: &ArrayRef,
    data_type: &DataType,
    is_odd: impl Fn(T::Native) -> bool,
    fate: impl Fn() -> Fate,
) -> Result<ArrayRef, Fault> {
    let Some(values) = array.as_primitive_opt::<T>() else {
        return Err(What::internal(&format!("{} that holds something else", array.data_type())).at_row(0));
    };
    // No early end: the loop runs over several values at once.
    let any_odd = values.values().iter().fold(false, |any, value| any | is_odd(*value));
    if !any_odd && array.data_type() == data_type {
        return Ok(array.clone());
    }
    let nulls = if any_odd { remaining(values, is_odd, fate)? } else { values.nulls().cloned() };
    let values = PrimitiveArray::<T>::new(values.values().clone(), nulls);
    Ok(Arc::new(values.with_data_type(data_type.clone())))
}

/// Which rows are no NULL once the odd ones are.
fn remaining<T: ArrowPrimitiveType>(
    values: &PrimitiveArray<T>,
    is_odd: impl Fn(T::Native) -> bool,
    fate: impl Fn() -> Fate,
) -> Result<Option<NullBuffer>, Fault> {
    let odd = |row: usize| values.is_valid(row) && is_odd(values.value(row));
    if let Some(what) = fate() {
        return match (0..values.len()).find(|row| odd(*row)) {
            Some(row) => Err(what.at_row(row)),
            // What lies under a NULL may be anything.
            None => Ok(values.nulls().cloned()),
        };
    }
    Ok(Some((0..values.len()).map(|row| values.is_valid(row) && !odd(row)).collect()))
}

#[cfg(test)]
mod tests {
    use arrow_array::{
        Date32Array, IntervalMonthDayNanoArray, Time64MicrosecondArray, TimestampMicrosecondArray,
    };
    use arrow_buffer::IntervalMonthDayNano;

    use super::*;

    #[test]
    fn infinity_is_an_error_or_null_and_nothing_under_a_null() {
        let array: ArrayRef =
            Arc::new(Date32Array::from(vec![Some(1), None, Some(i32::MAX), Some(-i32::MAX)]));
        assert_eq!(dates(&array, OnOdd::Error).unwrap_err().row, 2);
        let nulls = dates(&array, OnOdd::Null).unwrap();
        assert_eq!((nulls.null_count(), nulls.is_valid(0)), (3, true));

        let nulls = NullBuffer::from(vec![false]);
        let hidden: ArrayRef = Arc::new(TimestampMicrosecondArray::new(vec![i64::MAX].into(), Some(nulls)));
        timestamps(&hidden, hidden.data_type(), OnOdd::Error).unwrap();
    }

    #[test]
    fn another_zone_copies_nothing() {
        let array = TimestampMicrosecondArray::from(vec![1]).with_timezone("Etc/UTC");
        let from = array.values().as_ptr();
        let array: ArrayRef = Arc::new(array);
        let utc = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
        let relabelled = timestamps(&array, &utc, OnOdd::Error).unwrap();
        assert_eq!(relabelled.data_type(), &utc);
        assert_eq!(relabelled.as_primitive::<TimestampMicrosecondType>().values().as_ptr(), from);
    }

    #[test]
    fn midnight_at_the_end_of_a_day() {
        let day = 86_400_000_000;
        let array: ArrayRef = Arc::new(Time64MicrosecondArray::from(vec![day - 1, day]));
        assert_eq!(times(&array, day, OnOdd::Error).unwrap_err().row, 1);
        assert_eq!(times(&array, day, OnOdd::Null).unwrap().null_count(), 1);
    }

    #[test]
    fn hours_that_have_wrapped_are_seen() {
        let interval = |nanoseconds| IntervalMonthDayNano::new(0, 0, nanoseconds);
        let array =
            vec![interval(-3_000), interval(i64::MAX / 1_000 * 1_000), interval(-7_646_744_073_709_551_616)];
        let array: ArrayRef = Arc::new(IntervalMonthDayNanoArray::from(array));
        assert_eq!(intervals(&array, OnOdd::Error).unwrap_err().row, 2);
        assert_eq!(intervals(&array, OnOdd::Null).unwrap().null_count(), 1);
    }
}
