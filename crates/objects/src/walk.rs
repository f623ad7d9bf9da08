//! The look at every object of a column, before its type is known.

use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::class::Class;
use crate::fault::Fault;
use crate::kind::WIDE;
use crate::read::{
    Misread, Moment, Reader, decimal_text, delta, extent, float, integer, interval, is_exact, moment, text,
    time, uuid, with_bytes,
};
use crate::seen::{Members, Seen, What};

/// Looks at `item`, which is at the reader's row, and notes in `seen` what it is.
pub(crate) fn see<'py>(
    reader: &mut Reader<'py>,
    item: &Bound<'py, PyAny>,
    seen: &mut Seen,
) -> Result<(), Fault> {
    let class = reader.class(item)?;
    match class {
        Class::Null => Ok(()),
        Class::List | Class::Tuple | Class::Array => see_list(reader, item, class, seen),
        Class::Dict => see_dict(reader, item, seen),
        Class::Enum => {
            let value = reader.value(item)?;
            see(reader, &value, seen)
        }
        _ => see_scalar(reader.row, item, class, seen).map_err(|misread| reader.fault(misread)),
    }
}

fn see_scalar(row: usize, item: &Bound<'_, PyAny>, class: Class, seen: &mut Seen) -> Result<(), Misread> {
    let what = match class {
        Class::Bool | Class::NumpyBool => What::Bool,
        Class::Int | Class::NumpyInt => {
            see_integer(row, integer(item, class)?, seen);
            What::Int
        }
        Class::Float | Class::NumpyFloat => {
            if !float(item, class)?.is_finite() {
                seen.infinite.get_or_insert(row);
            }
            What::Float
        }
        Class::Text => {
            seen.size += text(item)?.len() as u64;
            What::Text
        }
        Class::Bytes | Class::ByteArray | Class::MemoryView => {
            seen.size += with_bytes(item, class, <[u8]>::len)? as u64;
            What::Bytes
        }
        Class::Decimal => {
            see_decimal(row, &decimal_text(item, class)?, seen);
            What::Decimal
        }
        _ => match see_temporal(item, class)? {
            Some(what) => what,
            None => return Ok(()),
        },
    };
    seen.mark(what, row);
    Ok(())
}

fn see_integer(row: usize, value: Option<i128>, seen: &mut Seen) {
    let integers = &mut seen.integers;
    let Some(value) = value else {
        integers.beyond.get_or_insert(row);
        integers.inexact.get_or_insert(row);
        return;
    };
    integers.least = integers.least.min(value);
    integers.most = integers.most.max(value);
    if !is_exact(value) {
        integers.inexact.get_or_insert(row);
    }
}

fn see_decimal(row: usize, text: &str, seen: &mut Seen) {
    let Some(extent) = extent(text) else {
        seen.decimals.infinite.get_or_insert(row);
        return;
    };
    let all = &mut seen.decimals.extent;
    all.merge(extent);
    if all.whole.saturating_add(all.scale) > u32::from(WIDE) {
        seen.decimals.beyond.get_or_insert(row);
    }
}

/// What is neither text nor number, read once, so that it can be read again; `None` for NaT.
fn see_temporal(item: &Bound<'_, PyAny>, class: Class) -> Result<Option<What>, Misread> {
    Ok(Some(match class {
        Class::Date | Class::Moment { .. } | Class::NumpyMoment => match moment(item, class)? {
            Moment::Naive(_) => What::Naive,
            Moment::Instant(_) => What::Instant,
            Moment::Day(_) => What::Date,
            Moment::Null => return Ok(None),
        },
        Class::Time => {
            time(item, class)?;
            What::Time
        }
        Class::Delta { .. } | Class::NumpyDelta => {
            if delta(item, class)?.is_none() {
                return Ok(None);
            }
            What::Duration
        }
        Class::Uuid => {
            uuid(item, class)?;
            What::Uuid
        }
        Class::Interval => {
            interval(item, class)?;
            What::Interval
        }
        _ => return Err(unknown()),
    }))
}

#[cold]
fn unknown() -> Misread {
    Misread::Odd(
        "its Python type has no Arrow type",
        "convert the column, or take the text of each with options={\"objects\": \"text\"}",
    )
}

fn see_list<'py>(
    reader: &mut Reader<'py>,
    list: &Bound<'py, PyAny>,
    class: Class,
    seen: &mut Seen,
) -> Result<(), Fault> {
    seen.mark(What::List, reader.row);
    let items = seen.items.get_or_insert_default();
    reader.items(list, class, |reader, item| see(reader, item, items)).map(drop)
}

fn see_dict<'py>(reader: &mut Reader<'py>, dict: &Bound<'py, PyAny>, seen: &mut Seen) -> Result<(), Fault> {
    seen.mark(What::Dict, reader.row);
    let members = seen.fields.get_or_insert_default();
    reader.entries(dict, |reader, likely, key, value| {
        let at = member(reader, likely, key, members)?;
        see(reader, value, members.at(at)).map_err(|fault| fault.under(&key.to_string()))
    })
}

/// The number of the field that `key` names.
fn member(
    reader: &Reader<'_>,
    likely: usize,
    key: &Bound<'_, PyAny>,
    members: &mut Members,
) -> Result<usize, Fault> {
    if members.names.is_object(likely, key) {
        return Ok(likely);
    }
    let Ok(key) = key.cast::<PyString>() else { return Err(odd_key(reader.row, key)) };
    let name = text(key).map_err(|misread| reader.fault(misread))?;
    if let Some(at) = members.names.place(likely, key, name) {
        return Ok(at);
    }
    // Arrow's names end at a zero byte.
    if name.contains('\0') {
        return Err(Fault::new(reader.row, format!("the key {name:?} has a zero byte"))
            .with_hint("rename it, or make JSON text of the dict"));
    }
    Ok(members.add(name))
}

#[cold]
fn odd_key(row: usize, key: &Bound<'_, PyAny>) -> Fault {
    let class = key.get_type().name().map(|name| name.to_string()).unwrap_or_default();
    Fault::new(row, format!("a key of the dict is not a str, but of type {class}"))
        .with_hint("make texts of the keys, or a list of pairs of the dict")
}
