//! Where the interpreter keeps the parts of a `date`, a `datetime` and a `time`.
//!
//! The stable ABI has attributes for them, each of which makes an integer. Their objects have had one form since Python 3.6
//! (Include/datetime.h, `PyDateTime_Date` and those behind it): the parts are bytes, behind a byte that tells whether there is a
//! zone. What inherits from these types, and all of them where a sample is kept in another way, is read by its attributes.

use longshore_cells::calendar::{DAY, SECOND, days_from_civil};
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDate, PyDateTime, PyTime, PyTzInfo};

/// Where it is told whether there is a zone: behind what every object begins with, and the hash.
const ZONE: usize = size_of::<ffi::PyObject>() + size_of::<isize>();

/// Where the parts begin: the year in two bytes, the month and the day, then hour, minute, second, and the microseconds in
/// three bytes.
const PARTS: usize = ZONE + 1;
const DATE: usize = 4;
const CLOCK: usize = 6;
const DATETIME: usize = DATE + CLOCK;

/// The addresses of the types whose objects are kept so.
struct Packed {
    date: usize,
    datetime: usize,
    time: usize,
}

static PACKED: PyOnceLock<Option<Packed>> = PyOnceLock::new();

/// The days of a date since 1970-01-01; `None` where it has to be asked for them.
#[inline]
pub(super) fn date(item: &Bound<'_, PyAny>) -> Option<i64> {
    let (_, parts) = parts::<DATE>(item, packed(item.py())?.date)?;
    Some(days(parts))
}

/// The microseconds of a datetime since 1970-01-01 by its own clock, and whether it has a zone; `None` where it has to be asked.
#[inline]
pub(super) fn datetime(item: &Bound<'_, PyAny>) -> Option<(i64, bool)> {
    let (has_zone, parts) = parts::<DATETIME>(item, packed(item.py())?.datetime)?;
    let [a, b, c, d, clock @ ..] = parts;
    Some((days([a, b, c, d]) * DAY + microseconds(clock), has_zone))
}

/// The microseconds of a time since midnight, and whether it has a zone; `None` where it has to be asked.
#[inline]
pub(super) fn time(item: &Bound<'_, PyAny>) -> Option<(i64, bool)> {
    let (has_zone, parts) = parts::<CLOCK>(item, packed(item.py())?.time)?;
    Some((microseconds(parts), has_zone))
}

fn days([high, low, month, day]: [u8; DATE]) -> i64 {
    days_from_civil(i64::from(u16::from_be_bytes([high, low])), i64::from(month), i64::from(day))
}

fn microseconds([hour, minute, second, high, middle, low]: [u8; CLOCK]) -> i64 {
    let seconds = (i64::from(hour) * 60 + i64::from(minute)) * 60 + i64::from(second);
    seconds * SECOND + i64::from(u32::from_be_bytes([0, high, middle, low]))
}

#[inline]
fn packed(py: Python<'_>) -> Option<&'static Packed> {
    PACKED.get_or_init(py, || Packed::of(py)).as_ref()
}

/// Whether an object that is of the type at this address has a zone, and its parts.
#[inline]
#[allow(unsafe_code)]
fn parts<const N: usize>(item: &Bound<'_, PyAny>, class: usize) -> Option<(bool, [u8; N])> {
    if item.get_type_ptr().addr() != class {
        return None;
    }
    let object = item.as_ptr().cast::<u8>();
    // SAFETY: the object is alive, and of a type whose objects have so many bytes behind their zone (`Packed::of`). They never change.
    unsafe { Some((object.byte_add(ZONE).read() != 0, object.byte_add(PARTS).cast::<[u8; N]>().read())) }
}

impl Packed {
    /// What is known of the interpreter that runs; `None` if it keeps anything otherwise.
    fn of(py: Python<'_>) -> Option<Self> {
        let date = py.get_type::<PyDate>();
        let datetime = py.get_type::<PyDateTime>();
        let time = py.get_type::<PyTime>();
        for (class, bytes) in [(&date, DATE), (&datetime, DATETIME), (&time, CLOCK)] {
            let size: usize = class.getattr(intern!(py, "__basicsize__")).ok()?.extract().ok()?;
            if size < PARTS + bytes {
                return None;
            }
        }
        let address = |class: &Bound<'_, _>| class.as_ptr().addr();
        let packed = Self { date: address(&date), datetime: address(&datetime), time: address(&time) };
        SAMPLES.iter().all(|sample| packed.keeps(py, *sample).is_ok_and(|keeps| keeps)).then_some(packed)
    }

    /// Whether a sample is kept so, with a zone and without.
    fn keeps(&self, py: Python<'_>, (year, month, day, clock): Sample) -> PyResult<bool> {
        let (hour, minute, second, microsecond) = clock;
        let [.., a, b, c] = microsecond.to_be_bytes();
        let [high, low] = year.to_be_bytes();
        let date = [high, low, month, day];
        let clock = [hour, minute, second, a, b, c];
        let mut both = [0; DATETIME];
        both[..DATE].copy_from_slice(&date);
        both[DATE..].copy_from_slice(&clock);
        let object = PyDate::new(py, year.into(), month, day)?;
        let mut keeps = parts(&object, self.date).is_some_and(|(_, found)| found == date);
        let utc = PyTzInfo::utc(py)?.to_owned();
        for zone in [None, Some(&utc)] {
            let object =
                PyDateTime::new(py, year.into(), month, day, hour, minute, second, microsecond, zone)?;
            keeps &= parts(&object, self.datetime) == Some((zone.is_some(), both));
            let object = PyTime::new(py, hour, minute, second, microsecond, zone)?;
            keeps &= parts(&object, self.time) == Some((zone.is_some(), clock));
        }
        Ok(keeps)
    }
}

type Sample = (u16, u8, u8, (u8, u8, u8, u32));

/// Parts that differ from each other.
const SAMPLES: [Sample; 3] =
    [(1, 2, 3, (4, 5, 6, 0x07_0809)), (9999, 12, 31, (23, 59, 58, 999_999)), (1970, 1, 1, (0, 0, 0, 0))];
