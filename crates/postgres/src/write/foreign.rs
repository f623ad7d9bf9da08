//! Rows for a COPY that another client sends, into a table that it has made for them.

use arrow_schema::{FieldRef, SchemaRef};
use longshore_core::{Error, Frame, Place, Result};

use super::table::type_of;
use super::{CopyRows, HEADER};
use crate::geometry;
use crate::types::Type;

/// The name and the type of a new table's column for each of `schema`.
pub fn copy_columns(schema: &SchemaRef) -> Result<Vec<(String, String)>> {
    // Its rows are encoded for the server's own types alone: geometries are bytes, which it casts.
    let own = |native: String| if native.starts_with("geo") { "bytea".to_owned() } else { native };
    let column = |field: &FieldRef| {
        if geometry::srid_of_field(field)?.is_some() {
            return Err(Error::not_supported("the SRID of a geometry would get lost on its way")
                .with_hint("give the URL in place of another library's connection, or take the crs off")
                .at(Place { column: Some(field.name().clone()), ..Place::default() }));
        }
        Ok((field.name().clone(), own(type_of(field)?)))
    };
    schema.fields().iter().map(column).collect()
}

/// The format that a COPY of a frame sends.
#[derive(Debug)]
pub struct CopyData {
    /// The format that the statement names.
    pub format: &'static str,
    /// The rows.
    pub bytes: Vec<u8>,
}

impl CopyData {
    /// The rows of `frame`, whose `natives` are OID and modifier of each column's type.
    pub fn new(frame: Frame, natives: &[(u32, i32)]) -> Result<Self> {
        let unknown = || Error::internal("a column of the new table has a type that is not the server's own");
        let types = natives.iter().map(|(oid, modifier)| Some(Type::builtin(*oid)?.with_modifier(*modifier)));
        let types: Vec<Type> = types.collect::<Option<_>>().ok_or_else(unknown)?;
        let mut rows = CopyRows::new(&frame.schema, types.into_iter(), &[]);
        let mut bytes = Vec::new();
        let mut keep = |message: &[u8]| {
            longshore_core::memory::try_reserve(&mut bytes, message.len())?;
            bytes.extend_from_slice(&message[HEADER..]);
            Ok(())
        };
        for batch in frame.batches {
            rows.append(&batch?, &mut keep)?;
        }
        rows.send_rest(&mut keep)?;
        Ok(Self { format: rows.format(), bytes })
    }
}
