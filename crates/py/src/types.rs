//! Arrow types as Python gives them in `schema=`.

use arrow_schema::DataType;
use longshore_core::{Error, Place, parse_type};
use longshore_interpreter::capsule::schema_of;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use longshore_interpreter::raise;

/// The types by column.
pub(crate) fn data_types(given: &Bound<'_, PyDict>) -> PyResult<Vec<(String, DataType)>> {
    let typed = |(column, wanted): (Bound<'_, PyAny>, Bound<'_, PyAny>)| {
        let column: String = column.extract()?;
        let found = data_type(&column, &wanted)?;
        check_zones(wanted.py(), &column, &found)?;
        Ok((column, found))
    };
    given.iter().map(typed).collect()
}

/// The type that `value` names, or hands over under the Arrow `PyCapsule` interface.
fn data_type(column: &str, value: &Bound<'_, PyAny>) -> PyResult<DataType> {
    if let Ok(name) = value.extract::<String>() {
        return parse_type(&name).map_err(|error| raise(error.at(place(column))));
    }
    DataType::try_from(&schema_of(value)?).map_err(|error| PyTypeError::new_err(error.to_string()))
}

fn place(column: &str) -> Place {
    Place { column: Some(column.to_owned()), ..Place::default() }
}

/// Refuses a time zone that is neither in Python's database nor an offset: Arrow takes any text for one, and pandas fails
/// once the rows are there.
fn check_zones(py: Python<'_>, column: &str, data_type: &DataType) -> PyResult<()> {
    match data_type {
        DataType::Timestamp(_, Some(zone)) if !is_offset(zone) && !is_zone(py, zone)? => {
            let error = Error::interface(format!("its time zone in schema= is unknown: {zone:?}")).with_hint(
                "write a name of the IANA database, such as Europe/Berlin, or an offset, such as +02:00",
            );
            Err(raise(error.at(place(column))))
        }
        DataType::List(item) | DataType::LargeList(item) => check_zones(py, column, item.data_type()),
        DataType::Struct(fields) => {
            fields.iter().try_for_each(|field| check_zones(py, column, field.data_type()))
        }
        _ => Ok(()),
    }
}

/// Whether `zone` is an offset as Arrow has it: a sign, hours, a colon and minutes.
fn is_offset(zone: &str) -> bool {
    let digits = |text: &str, most: u8| {
        text.len() == 2 && text.parse::<u8>().is_ok_and(|number| number <= most) && !text.starts_with('+')
    };
    let parts = zone.strip_prefix(['+', '-']).and_then(|rest| rest.split_once(':'));
    parts.is_some_and(|(hours, minutes)| digits(hours, 23) && digits(minutes, 59))
}

/// Whether Python knows the zone; where it has no database, it cannot tell.
fn is_zone(py: Python<'_>, zone: &str) -> PyResult<bool> {
    if zone.eq_ignore_ascii_case("UTC") {
        return Ok(true);
    }
    let zoneinfo = py.import("zoneinfo")?;
    if zoneinfo.call_method1("ZoneInfo", (zone,)).is_ok() {
        return Ok(true);
    }
    zoneinfo.call_method0("available_timezones")?.is_empty()
}
