//! Arrow types as Python gives them in `schema=`.

use arrow_schema::DataType;
use arrow_schema::ffi::FFI_ArrowSchema;
use longshore_core::parse_type;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::error::raise;

/// The type that `value` names, or hands over under the Arrow `PyCapsule` interface.
pub(crate) fn data_type(value: &Bound<'_, PyAny>) -> PyResult<DataType> {
    if let Ok(name) = value.extract::<String>() {
        return parse_type(&name).map_err(raise);
    }
    let capsule = value.call_method0("__arrow_c_schema__")?;
    let capsule = capsule.cast::<PyCapsule>()?;
    let schema = imported(capsule)?;
    DataType::try_from(&schema).map_err(|error| PyTypeError::new_err(error.to_string()))
}

#[allow(unsafe_code)]
fn imported(capsule: &Bound<'_, PyCapsule>) -> PyResult<FFI_ArrowSchema> {
    let pointer = capsule.pointer_checked(Some(c"arrow_schema"))?;
    // SAFETY: a capsule named "arrow_schema" holds a valid ArrowSchema (Arrow PyCapsule interface, "Capsule
    // names"); it is moved out, which `from_raw` marks by clearing the release callback in place.
    Ok(unsafe { FFI_ArrowSchema::from_raw(pointer.as_ptr().cast()) })
}
