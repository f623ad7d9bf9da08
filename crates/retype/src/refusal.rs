//! The types that polars lacks.

use arrow_schema::{DataType, Schema};
use longshore_core::{Error, Place};

/// Why polars takes no column of one of these types; `None` where it takes all.
#[must_use]
pub fn polars_refusal(schema: &Schema) -> Option<Error> {
    schema.fields().iter().find_map(|field| {
        let what = refusal_of(field.data_type())?;
        let place = Place { column: Some(field.name().clone()), ..Place::default() };
        Some(Error::not_supported(format!("polars has no type for {what}")).at(place).with_hint(
            format!(
                "make text of the column: with a CAST in the query, or with schema={{\"{}\": \"string\"}} of read_sql",
                field.name()
            ),
        ))
    })
}

fn refusal_of(data_type: &DataType) -> Option<&'static str> {
    match data_type {
        DataType::Interval(_) => Some("intervals of months, days and nanoseconds"),
        DataType::Decimal256(..) => Some("decimals of more than 38 digits"),
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
            refusal_of(item.data_type())
        }
        DataType::Union(..) => Some("values of several types in one column"),
        DataType::Map(entries, _) => refusal_of(entries.data_type()),
        DataType::Struct(fields) => fields.iter().find_map(|field| refusal_of(field.data_type())),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_schema::Field;

    use longshore_core::Kind;

    use super::*;

    #[test]
    fn types_that_polars_lacks_are_found_at_every_depth() {
        let wide = Arc::new(Field::new("item", DataType::Decimal256(50, 2), true));
        let fields =
            vec![Field::new("a", DataType::Int64, true), Field::new("b", DataType::List(wide), true)];
        let error = polars_refusal(&Schema::new(fields)).unwrap();
        assert_eq!((error.kind(), error.place().column.as_deref()), (Kind::NotSupported, Some("b")));
        assert!(polars_refusal(&Schema::new(vec![Field::new("a", DataType::Int64, true)])).is_none());
    }
}
