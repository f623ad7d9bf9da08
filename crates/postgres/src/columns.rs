//! The columns of a statement, as they will be read, and the types of `schema=`, made safe to decode into before anything
//! is run.

use std::sync::Arc;

use arrow_schema::{DataType, Field, FieldRef, Fields};
use longshore_core::{DEFERRED, Error, Protocol, ReadOptions, Result, has_deferred, native_field};
use longshore_values::ReadColumn;

use crate::catalogue::Catalogue;
use crate::connection::Described;
use crate::decode::{decoder, unreadable};
use crate::dialect::is_plain;
use crate::range;
use crate::types::{Class, Format, Kind, Type, no_interval};

/// A column of a result, as it will be read.
pub(crate) struct ResultColumn {
    pub(crate) native: Type,
    pub(crate) field: Field,
    pub(crate) format: Format,
}

impl ResultColumn {
    /// The reader of its cells.
    pub(crate) fn reader(&self, options: &ReadOptions) -> Result<ReadColumn> {
        let (name, data_type) = (self.field.name(), self.field.data_type());
        let decoder = decoder(name, &self.native, self.format, data_type, options)?;
        Ok(ReadColumn { native_type: self.native.label(), nullable: self.field.is_nullable(), decoder })
    }

    /// Whether the session's `extra_float_digits` would round what comes.
    pub(crate) fn prints_floats(&self) -> bool {
        self.format == Format::Text && self.native.prints_floats()
    }
}

/// The columns of `statement`, once the catalogue knows their types.
pub(crate) fn result_columns(
    catalogue: &Catalogue,
    columns: &[Described],
    statement: &str,
    options: &ReadOptions,
) -> Result<Vec<ResultColumn>> {
    options.check_names(columns.iter().map(|column| column.name.as_str()))?;
    let has_not_null = columns.iter().any(|column| catalogue.facts(column).not_null);
    let is_plain = has_not_null && is_plain(statement);
    columns.iter().map(|column| result_column(catalogue, column, is_plain, options)).collect()
}

fn result_column(
    catalogue: &Catalogue,
    column: &Described,
    is_plain: bool,
    options: &ReadOptions,
) -> Result<ResultColumn> {
    let facts = catalogue.facts(column);
    let native = catalogue.type_of(column.oid, column.modifier).with_dimensions(facts.dimensions);
    let requested = options.wanted_type(&column.name);
    let requested = requested.map(|data_type| requested_type(&column.name, &native, data_type, options));
    let requested = requested.transpose()?;
    let nullable = !(is_plain && facts.not_null) || native.turns_null(requested.as_ref(), options);
    let default = native.field(&column.name, nullable, options);
    if let Some(requested) = requested {
        // A deferred field's type is only how its cells are kept: no caller can ask for it.
        let is_default = |field: &Field| *field.data_type() == requested && !has_deferred(field);
        if !default.as_ref().is_ok_and(is_default) {
            let format = requested_format(&native, &requested, options);
            let field = native_field(&column.name, requested, nullable, &native.label(), None);
            return Ok(ResultColumn { native, field, format });
        }
    }
    let format = native.format(options.protocol);
    Ok(ResultColumn { field: default?, native, format })
}

/// Overrides are read from text, but for numerics, whose binary form reads as any decimal and as a double.
fn requested_format(native: &Type, requested: &DataType, options: &ReadOptions) -> Format {
    let numeric = matches!(native.kind, Kind::Plain(Class::Numeric));
    let number = matches!(requested, DataType::Decimal128(..) | DataType::Decimal256(..) | DataType::Float64);
    if numeric && number && options.protocol == Protocol::Binary { Format::Binary } else { Format::Text }
}

/// `requested` of the column `name`, as it can be decoded into: all that it nests is nullable, as every part of
/// PostgreSQL's values is. An error where the frame or the decoders have no such type.
pub(crate) fn requested_type(
    name: &str,
    native: &Type,
    requested: &DataType,
    options: &ReadOptions,
) -> Result<DataType> {
    part(native, requested, options).map_err(|error| error.at(native.place(name)))
}

/// The same for a part of a column; an error says nothing of its place.
fn part(native: &Type, requested: &DataType, options: &ReadOptions) -> Result<DataType> {
    match (&native.kind, requested) {
        (Kind::Array { element, .. }, DataType::List(item)) => {
            Ok(DataType::List(nullable(element, item, options)?))
        }
        // A further dimension of an array, or text that is read as a list.
        (_, DataType::List(item)) => Ok(DataType::List(nullable(native, item, options)?)),
        (Kind::Composite(attributes), DataType::Struct(fields)) if attributes.len() == fields.len() => {
            let parts = attributes.iter().zip(fields);
            let parts = parts.map(|(attribute, field)| nullable(&attribute.native, field, options));
            Ok(DataType::Struct(parts.collect::<Result<Fields>>()?))
        }
        (Kind::Range(bound), DataType::Struct(fields)) => {
            range::check_fields(fields)?;
            let parts = fields.iter().map(|field| nullable(bound, field, options));
            Ok(DataType::Struct(parts.collect::<Result<Fields>>()?))
        }
        _ => leaf(native, requested, options).map(|()| requested.clone()),
    }
}

/// The field of a part, which may be NULL, and which no caller can mark as deferred.
fn nullable(native: &Type, field: &FieldRef, options: &ReadOptions) -> Result<FieldRef> {
    let mut metadata = field.metadata().clone();
    metadata.remove(DEFERRED);
    let data_type = part(native, field.data_type(), options)?;
    Ok(Arc::new(Field::new(field.name(), data_type, true).with_metadata(metadata)))
}

/// Refuses what `native` cannot be read as without a list or struct around it. What no text reads as, the
/// decoders refuse.
fn leaf(native: &Type, requested: &DataType, options: &ReadOptions) -> Result<()> {
    match requested {
        DataType::Decimal256(..) if options.decimal_digits < 76 => Err(too_wide(options.decimal_digits)),
        DataType::Interval(_) if !options.intervals => Err(no_interval()),
        DataType::Dictionary(keys, values) if !is_labels(native, keys, values) => Err(unreadable(requested)),
        // Deferred numerics wait in a binary column, which the decoders therefore know.
        DataType::Binary | DataType::LargeBinary if !matches!(native.kind, Kind::Plain(Class::Bytes)) => {
            Err(unreadable(requested))
        }
        _ => Ok(()),
    }
}

/// Whether the dictionary is the one that enums are decoded into.
fn is_labels(native: &Type, keys: &DataType, values: &DataType) -> bool {
    matches!(native.kind, Kind::Enum(_)) && *keys == DataType::Int32 && *values == DataType::Utf8
}

fn too_wide(digits: u8) -> Error {
    Error::not_supported(format!("this frame's decimals have {digits} digits at most"))
        .with_hint("ask for schema={\"<column>\": \"decimal128(38, <scale>)\"} or \"string\"")
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use arrow_schema::IntervalUnit;

    use super::*;
    use crate::types::Attribute;

    fn of(kind: Kind) -> Type {
        Type { name: "made".to_owned(), kind, modifier: -1 }
    }

    fn plain(class: Class) -> Type {
        of(Kind::Plain(class))
    }

    fn labels() -> Type {
        of(Kind::Enum(Arc::new(["a".to_owned()])))
    }

    fn record(native: Type) -> Type {
        of(Kind::Composite(Arc::new([Attribute { name: "f".to_owned(), oid: 7, native }])))
    }

    fn list(item: DataType) -> DataType {
        DataType::List(Arc::new(Field::new("item", item, false)))
    }

    fn structure(data_type: DataType) -> DataType {
        DataType::Struct(vec![Field::new("f", data_type, false)].into())
    }

    fn dictionary(keys: DataType, values: DataType) -> DataType {
        DataType::Dictionary(Box::new(keys), Box::new(values))
    }

    fn read(native: &Type, wanted: &DataType) -> Result<DataType> {
        requested_type("c", native, wanted, &ReadOptions::default())
    }

    /// Around `native` and `wanted`, each way that a column nests.
    fn nestings(native: &Type, wanted: &DataType) -> Vec<(Type, DataType)> {
        let array = || Type::array_of(native.clone(), b',');
        vec![
            (native.clone(), wanted.clone()),
            (array(), list(wanted.clone())),
            (array(), list(list(wanted.clone()))),
            (Type::array_of(array(), b','), list(list(wanted.clone()))),
            (record(native.clone()), structure(wanted.clone())),
            (Type::array_of(record(array()), b','), list(structure(list(wanted.clone())))),
        ]
    }

    fn refuse(native: &Type, wanted: &DataType, options: &ReadOptions) {
        for (native, wanted) in nestings(native, wanted) {
            let error = requested_type("c", &native, &wanted, options).expect_err("it is refused");
            assert_eq!(error.kind(), longshore_core::Kind::NotSupported, "{wanted}");
            assert_eq!(error.place().column.as_deref(), Some("c"));
            assert!(error.hint().is_some_and(|hint| hint.contains("\"string\"") && hint.contains("schema=")));
        }
    }

    #[test]
    fn all_that_is_nested_is_nullable() {
        let native = Type::array_of(record(Type::array_of(plain(Class::Int4), b',')), b',');
        let got = read(&native, &list(structure(list(DataType::Int8)))).unwrap();
        let inner = DataType::List(Arc::new(Field::new("item", DataType::Int8, true)));
        let middle = DataType::Struct(vec![Field::new("f", inner, true)].into());
        assert_eq!(got, DataType::List(Arc::new(Field::new("item", middle, true))));
    }

    #[test]
    fn no_caller_marks_a_part_as_deferred() {
        let metadata = HashMap::from([(DEFERRED.to_owned(), String::new()), ("k".to_owned(), String::new())]);
        let item = Field::new("item", DataType::Int32, true).with_metadata(metadata);
        let got = read(&Type::array_of(plain(Class::Int4), b','), &DataType::List(Arc::new(item))).unwrap();
        let DataType::List(item) = got else { panic!("{got}") };
        assert_eq!(item.metadata().keys().collect::<Vec<_>>(), ["k"]);
    }

    #[test]
    fn dictionaries_are_for_enums_alone() {
        let right = dictionary(DataType::Int32, DataType::Utf8);
        for (native, wanted) in nestings(&labels(), &right) {
            assert!(read(&native, &wanted).is_ok(), "{wanted}");
        }
        let options = ReadOptions::default();
        refuse(&plain(Class::Text), &right, &options);
        refuse(&labels(), &dictionary(DataType::Int8, DataType::Utf8), &options);
        refuse(&labels(), &dictionary(DataType::Int32, DataType::LargeUtf8), &options);
    }

    #[test]
    fn binary_is_for_bytea_alone() {
        for wanted in [DataType::Binary, DataType::LargeBinary] {
            for (native, wanted) in nestings(&plain(Class::Bytes), &wanted) {
                assert!(read(&native, &wanted).is_ok(), "{wanted}");
            }
            for class in [Class::Numeric, Class::Text, Class::Uuid, Class::Int4] {
                refuse(&plain(class), &wanted, &ReadOptions::default());
            }
        }
    }

    #[test]
    fn what_the_frame_cannot_hold_is_refused() {
        let (wide, interval) = (DataType::Decimal256(76, 2), DataType::Interval(IntervalUnit::MonthDayNano));
        let narrow = ReadOptions { decimal_digits: 38, intervals: false, ..ReadOptions::default() };
        for (class, wanted) in [(Class::Numeric, wide), (Class::Interval, interval)] {
            refuse(&plain(class), &wanted, &narrow);
            assert!(read(&plain(class), &wanted).is_ok());
        }
    }
}
