//! The metadata keys of Arrow fields that sources write and frames read.

use std::collections::HashMap;

use arrow_schema::{DataType, Field};

/// The database's own name of a column's type.
pub const NATIVE_TYPE: &str = "native_type";

/// The name of a canonical extension type (Arrow columnar format, "Extension Types").
pub const EXTENSION: &str = "ARROW:extension:name";

/// The key under which an extension type describes itself, such as a geometry's reference system.
pub const EXTENSION_METADATA: &str = "ARROW:extension:metadata";

/// Marks a field whose final type depends on the whole result: see [`crate::Batches::finalise`].
pub const DEFERRED: &str = "longshore.deferred";

/// The field of a column, with the database's own name of its type, and of the extension type where it has one.
#[must_use]
pub fn native_field(
    name: &str,
    data_type: DataType,
    nullable: bool,
    native_type: &str,
    extension: Option<&str>,
) -> Field {
    let extension = extension.map(|extension| (EXTENSION.to_owned(), extension.to_owned()));
    let native_type = [(NATIVE_TYPE.to_owned(), native_type.to_owned())];
    let metadata: HashMap<_, _> = native_type.into_iter().chain(extension).collect();
    Field::new(name, data_type, nullable).with_metadata(metadata)
}

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
