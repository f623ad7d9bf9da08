//! The metadata keys of Arrow fields that sources write and frames read.

use arrow_schema::{DataType, Field};

/// The database's own name of a column's type.
pub const NATIVE_TYPE: &str = "native_type";

/// The name of a canonical extension type (Arrow columnar format, "Extension Types").
pub const EXTENSION: &str = "ARROW:extension:name";

/// The key under which an extension type describes itself, such as a geometry's reference system.
pub const EXTENSION_METADATA: &str = "ARROW:extension:metadata";

/// Marks a field whose final type depends on the whole result: see [`crate::Batches::finalise`].
pub const DEFERRED: &str = "longshore.deferred";

/// Whether the field's type is not yet final somewhere in it.
#[must_use]
pub fn has_deferred(field: &Field) -> bool {
    field.metadata().contains_key(DEFERRED)
        || match field.data_type() {
            DataType::List(item) => has_deferred(item),
            DataType::Struct(fields) => fields.iter().any(|field| has_deferred(field)),
            _ => false,
        }
}
