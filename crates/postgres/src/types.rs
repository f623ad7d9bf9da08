//! THE TABLE: PostgreSQL's types, what each becomes in Arrow, and in which format it is asked for.
//!
//! Adding a type is one line of [`BUILTINS`], and one arm of [`decode`](crate::decode) where its class is new.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_schema::{DataType, Field, Fields, IntervalUnit, TimeUnit};
use longshore_core::{
    DEFERRED, Decimals, EXTENSION, EXTENSION_METADATA, Error, NATIVE_TYPE, Place, Protocol, ReadOptions,
    Result, Unrepresentable, Uuids,
};

use crate::{geometry, hstore};

/// The meaning of a type's cells, by which a decoder is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    Bool,
    Int2,
    Int4,
    Int8,
    /// oid, xid, cid: 32 bits without a sign.
    Unsigned,
    Xid8,
    Float4,
    Float8,
    Numeric,
    /// Text whose binary form is the text itself.
    Text,
    Json,
    Jsonb,
    Bytes,
    Date,
    Time,
    Timestamp,
    Timestamptz,
    Interval,
    Uuid,
    /// pgvector's vectors, of floats of 32 bits.
    Vector,
    /// pgvector's vectors of floats of 16 bits.
    HalfVector,
    /// Texts by their keys.
    Hstore,
    /// PostGIS's geometry and geography.
    Geometry,
    /// A type that is asked for as text: ranges, points, addresses, and every type unknown here.
    TextOnly,
}

impl Class {
    /// The class of an extension's type.
    pub(crate) fn of_extension(extension: &str, name: &str) -> Option<Self> {
        match (extension, name) {
            ("vector", "vector") => Some(Self::Vector),
            ("vector", "halfvec") => Some(Self::HalfVector),
            ("hstore", "hstore") => Some(Self::Hstore),
            ("postgis", "geometry" | "geography") => Some(Self::Geometry),
            _ => None,
        }
    }
}

/// One line of the table.
#[derive(Debug)]
pub(crate) struct Builtin {
    oid: u32,
    array: u32,
    name: &'static str,
    class: Class,
}

const fn row(oid: u32, array: u32, name: &'static str, class: Class) -> Builtin {
    Builtin { oid, array, name, class }
}

/// PostgreSQL's own types, by OID. Generated from `pg_type`: OID, OID of the array over it, name; the class
/// is ours.
#[rustfmt::skip]
static BUILTINS: &[Builtin] = &[
    row(   16,  1000, "bool",           Class::Bool),
    row(   17,  1001, "bytea",          Class::Bytes),
    row(   18,  1002, "char",           Class::TextOnly),
    row(   19,  1003, "name",           Class::Text),
    row(   20,  1016, "int8",           Class::Int8),
    row(   21,  1005, "int2",           Class::Int2),
    row(   23,  1007, "int4",           Class::Int4),
    row(   24,  1008, "regproc",        Class::TextOnly),
    row(   25,  1009, "text",           Class::Text),
    row(   26,  1028, "oid",            Class::Unsigned),
    row(   27,  1010, "tid",            Class::TextOnly),
    row(   28,  1011, "xid",            Class::Unsigned),
    row(   29,  1012, "cid",            Class::Unsigned),
    row(  114,   199, "json",           Class::Json),
    row(  142,   143, "xml",            Class::Text),
    row(  600,  1017, "point",          Class::TextOnly),
    row(  601,  1018, "lseg",           Class::TextOnly),
    row(  602,  1019, "path",           Class::TextOnly),
    row(  603,  1020, "box",            Class::TextOnly),
    row(  604,  1027, "polygon",        Class::TextOnly),
    row(  628,   629, "line",           Class::TextOnly),
    row(  650,   651, "cidr",           Class::TextOnly),
    row(  700,  1021, "float4",         Class::Float4),
    row(  701,  1022, "float8",         Class::Float8),
    row(  705,     0, "unknown",        Class::Text),
    row(  718,   719, "circle",         Class::TextOnly),
    row(  774,   775, "macaddr8",       Class::TextOnly),
    row(  790,   791, "money",          Class::TextOnly),
    row(  829,  1040, "macaddr",        Class::TextOnly),
    row(  869,  1041, "inet",           Class::TextOnly),
    row( 1033,  1034, "aclitem",        Class::TextOnly),
    row( 1042,  1014, "bpchar",         Class::Text),
    row( 1043,  1015, "varchar",        Class::Text),
    row( 1082,  1182, "date",           Class::Date),
    row( 1083,  1183, "time",           Class::Time),
    row( 1114,  1115, "timestamp",      Class::Timestamp),
    row( 1184,  1185, "timestamptz",    Class::Timestamptz),
    row( 1186,  1187, "interval",       Class::Interval),
    row( 1266,  1270, "timetz",         Class::TextOnly),
    row( 1560,  1561, "bit",            Class::TextOnly),
    row( 1562,  1563, "varbit",         Class::TextOnly),
    row( 1700,  1231, "numeric",        Class::Numeric),
    row( 1790,  2201, "refcursor",      Class::Text),
    row( 2202,  2207, "regprocedure",   Class::TextOnly),
    row( 2203,  2208, "regoper",        Class::TextOnly),
    row( 2204,  2209, "regoperator",    Class::TextOnly),
    row( 2205,  2210, "regclass",       Class::TextOnly),
    row( 2206,  2211, "regtype",        Class::TextOnly),
    row( 2249,  2287, "record",         Class::TextOnly),
    row( 2275,  1263, "cstring",        Class::Text),
    row( 2278,     0, "void",           Class::TextOnly),
    row( 2950,  2951, "uuid",           Class::Uuid),
    row( 2970,  2949, "txid_snapshot",  Class::TextOnly),
    row( 3220,  3221, "pg_lsn",         Class::TextOnly),
    row( 3614,  3643, "tsvector",       Class::TextOnly),
    row( 3615,  3645, "tsquery",        Class::TextOnly),
    row( 3642,  3644, "gtsvector",      Class::TextOnly),
    row( 3734,  3735, "regconfig",      Class::TextOnly),
    row( 3769,  3770, "regdictionary",  Class::TextOnly),
    row( 3802,  3807, "jsonb",          Class::Jsonb),
    row( 3904,  3905, "int4range",      Class::TextOnly),
    row( 3906,  3907, "numrange",       Class::TextOnly),
    row( 3908,  3909, "tsrange",        Class::TextOnly),
    row( 3910,  3911, "tstzrange",      Class::TextOnly),
    row( 3912,  3913, "daterange",      Class::TextOnly),
    row( 3926,  3927, "int8range",      Class::TextOnly),
    row( 4072,  4073, "jsonpath",       Class::TextOnly),
    row( 4089,  4090, "regnamespace",   Class::TextOnly),
    row( 4096,  4097, "regrole",        Class::TextOnly),
    row( 4191,  4192, "regcollation",   Class::TextOnly),
    row( 4451,  6150, "int4multirange", Class::TextOnly),
    row( 4532,  6151, "nummultirange",  Class::TextOnly),
    row( 4533,  6152, "tsmultirange",   Class::TextOnly),
    row( 4534,  6153, "tstzmultirange", Class::TextOnly),
    row( 4535,  6155, "datemultirange", Class::TextOnly),
    row( 4536,  6157, "int8multirange", Class::TextOnly),
    row( 5038,  5039, "pg_snapshot",    Class::TextOnly),
    row( 5069,   271, "xid8",           Class::Xid8),
];

/// Types asked for as text that hold floats.
const WITH_FLOATS: &[&str] = &["point", "lseg", "path", "box", "polygon", "line", "circle", "record"];

/// A type as one query needs it: resolved down to builtin types.
#[derive(Clone, Debug)]
pub(crate) struct Type {
    /// PostgreSQL's own name.
    pub(crate) name: String,
    pub(crate) kind: Kind,
    /// `atttypmod`: precision, scale or length; -1 where there is none.
    pub(crate) modifier: i32,
}

/// The kind of a type, and the types that it is made of.
#[derive(Clone, Debug)]
pub(crate) enum Kind {
    Plain(Class),
    /// `dimensions` as the column declares them, 1 where nothing does.
    Array {
        element: Arc<Type>,
        delimiter: u8,
        dimensions: usize,
    },
    Enum(Arc<[String]>),
    Composite(Arc<[Attribute]>),
    /// A range between bounds of this type.
    Range(Arc<Type>),
}

/// One field of a composite type.
#[derive(Clone, Debug)]
pub(crate) struct Attribute {
    pub(crate) name: String,
    pub(crate) oid: u32,
    pub(crate) native: Type,
}

/// The format that a column's cells arrive in (`Bind`, result-column format codes).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Text = 0,
    Binary = 1,
}

pub(crate) fn class(oid: u32) -> Option<Class> {
    lookup(oid).map(|builtin| builtin.class)
}

/// Every builtin type of the table, and those of extensions.
#[cfg(any(fuzzing, test))]
pub(crate) fn builtin_types() -> Vec<Type> {
    let extensions =
        [("vector", "vector"), ("vector", "halfvec"), ("hstore", "hstore"), ("postgis", "geometry")];
    let extensions = extensions.iter().filter_map(|(extension, name)| {
        let class = Class::of_extension(extension, name)?;
        Some(Type { name: (*name).to_owned(), kind: Kind::Plain(class), modifier: -1 })
    });
    BUILTINS.iter().filter_map(|builtin| Type::builtin(builtin.oid)).chain(extensions).collect()
}

fn lookup(oid: u32) -> Option<&'static Builtin> {
    BUILTINS.binary_search_by_key(&oid, |builtin| builtin.oid).ok().map(|at| &BUILTINS[at])
}

/// The name of a type of PostgreSQL's own.
#[must_use]
pub fn native_name(oid: u32) -> Option<&'static str> {
    lookup(oid).map(|builtin| builtin.name)
}

/// Arrays in all but name, and in their text form: blanks part the elements, and nothing braces them.
const INT2VECTOR: u32 = 22;
const OIDVECTOR: u32 = 30;

/// The OID of the bounds of a builtin range type.
fn bound_of(range: u32) -> Option<u32> {
    match range {
        3904 => Some(23),
        3906 => Some(1700),
        3908 => Some(1114),
        3910 => Some(1184),
        3912 => Some(1082),
        3926 => Some(20),
        _ => None,
    }
}

/// The OID of the elements of a builtin array type.
pub(crate) fn element_of(array: u32) -> Option<u32> {
    match array {
        0 => None,
        INT2VECTOR => Some(21),
        OIDVECTOR => Some(26),
        _ => BUILTINS.iter().find(|builtin| builtin.array == array).map(|builtin| builtin.oid),
    }
}

impl Type {
    /// A type that arrives as text under its own name.
    pub(crate) fn text_only(name: impl Into<String>) -> Self {
        Self { name: name.into(), kind: Kind::Plain(Class::TextOnly), modifier: -1 }
    }

    /// The builtin type or builtin array of `oid`.
    pub(crate) fn builtin(oid: u32) -> Option<Self> {
        if let Some(builtin) = lookup(oid) {
            let kind = match bound_of(oid).and_then(Self::builtin) {
                Some(bound) => Kind::Range(Arc::new(bound)),
                None => Kind::Plain(builtin.class),
            };
            return Some(Self { name: builtin.name.to_owned(), kind, modifier: -1 });
        }
        Self::builtin(element_of(oid)?).map(|element| {
            let delimiter = match oid {
                INT2VECTOR | OIDVECTOR => b' ',
                _ if element.name == "box" => b';',
                _ => b',',
            };
            Self::array_of(element, delimiter)
        })
    }

    pub(crate) fn array_of(element: Self, delimiter: u8) -> Self {
        let name = format!("{}[]", element.name);
        Self {
            name,
            kind: Kind::Array { element: Arc::new(element), delimiter, dimensions: 1 },
            modifier: -1,
        }
    }

    /// The same type with a column's modifier, which an array hands on to its elements.
    pub(crate) fn with_modifier(mut self, modifier: i32) -> Self {
        if modifier < 0 {
            return self;
        }
        if let Kind::Array { element, .. } = &mut self.kind {
            *element = Arc::new(element.as_ref().clone().with_modifier(modifier));
        } else {
            self.modifier = modifier;
        }
        self
    }

    /// The same type with a column's declared number of dimensions.
    pub(crate) fn with_dimensions(mut self, declared: usize) -> Self {
        if let Kind::Array { dimensions, .. } = &mut self.kind {
            // The catalogue takes any number; a value has six dimensions at most.
            *dimensions = declared.clamp(1, 6);
        }
        self
    }

    /// The name with its modifier, as `\d` in psql shows it.
    pub(crate) fn label(&self) -> String {
        if let Kind::Array { element, .. } = &self.kind {
            return format!("{}[]", element.label());
        }
        if self.modifier < 0 {
            return self.name.clone();
        }
        match (&self.kind, self.name.as_str()) {
            (Kind::Plain(Class::Numeric), name) => {
                let (precision, scale) = precision_and_scale(self.modifier);
                format!("{name}({precision},{scale})")
            }
            (Kind::Plain(_), "varchar" | "bpchar") => format!("{}({})", self.name, self.modifier - 4),
            (Kind::Plain(Class::Vector | Class::HalfVector), name) => format!("{name}({})", self.modifier),
            (Kind::Plain(Class::Geometry), name) => format!("{name}{}", geometry::declaration(self.modifier)),
            _ => self.name.clone(),
        }
    }

    /// The format to ask for: binary where every part of the type has a binary form known here.
    pub(crate) fn format(&self, protocol: Protocol) -> Format {
        if protocol == Protocol::Binary && self.has_binary() { Format::Binary } else { Format::Text }
    }

    fn has_binary(&self) -> bool {
        match &self.kind {
            Kind::Plain(class) => *class != Class::TextOnly,
            Kind::Enum(_) => true,
            Kind::Array { element, .. } => element.has_binary(),
            Kind::Composite(attributes) => attributes.iter().all(|attribute| attribute.native.has_binary()),
            Kind::Range(_) => false,
        }
    }

    /// The Arrow field of a column or field of this type.
    pub(crate) fn field(&self, name: &str, nullable: bool, options: &ReadOptions) -> Result<Field> {
        self.part(name, nullable, options).map_err(|error| error.at(self.place(name)))
    }

    /// The place of the column `name`, which is of this type.
    pub(crate) fn place(&self, name: &str) -> Place {
        Place { column: Some(name.to_owned()), row: None, native_type: Some(self.label()) }
    }

    /// The field of a column or of a part of one; an error says nothing of its place.
    fn part(&self, name: &str, nullable: bool, options: &ReadOptions) -> Result<Field> {
        let mut metadata = HashMap::from([(NATIVE_TYPE.to_owned(), self.label())]);
        let data_type = self.arrow(options)?;
        if let Some(extension) = self.extension(options) {
            metadata.insert(EXTENSION.to_owned(), extension.to_owned());
        }
        if self.is(Class::Geometry) {
            let metadata_of_srid = geometry::extension_metadata(self);
            metadata.extend(metadata_of_srid.map(|text| (EXTENSION_METADATA.to_owned(), text)));
        }
        if self.is_deferred(options) {
            let what = if self.is(Class::Geometry) { "geometry" } else { "numeric" };
            metadata.insert(DEFERRED.to_owned(), what.to_owned());
        }
        Ok(Field::new(name, data_type, nullable).with_metadata(metadata))
    }

    /// Whether its text form has floats in it, or may have: the session's `extra_float_digits` would round them.
    pub(crate) fn prints_floats(&self) -> bool {
        match &self.kind {
            Kind::Plain(Class::Float4 | Class::Float8) => true,
            Kind::Plain(Class::TextOnly) => {
                let known = BUILTINS.iter().any(|builtin| builtin.name == self.name);
                !known || WITH_FLOATS.contains(&self.name.as_str())
            }
            Kind::Plain(_) | Kind::Enum(_) => false,
            Kind::Range(bound) => bound.prints_floats(),
            Kind::Array { element, .. } => element.prints_floats(),
            Kind::Composite(attributes) => {
                attributes.iter().any(|attribute| attribute.native.prints_floats())
            }
        }
    }

    fn extension(&self, options: &ReadOptions) -> Option<&'static str> {
        match self.kind {
            Kind::Plain(Class::Json | Class::Jsonb) => Some("arrow.json"),
            Kind::Plain(Class::Uuid) if options.uuid == Uuids::Arrow => Some("arrow.uuid"),
            Kind::Plain(Class::Geometry) => Some(geometry::EXTENSION_NAME),
            _ => None,
        }
    }

    pub(crate) fn is(&self, class: Class) -> bool {
        matches!(self.kind, Kind::Plain(found) if found == class)
    }

    /// Whether the final type is found only when the whole result is known.
    pub(crate) fn is_deferred(&self, options: &ReadOptions) -> bool {
        match self.kind {
            Kind::Plain(Class::Numeric) => {
                options.decimals == Decimals::Inferred && declared_decimal(self.modifier).is_none()
            }
            Kind::Plain(Class::Geometry) => {
                options.decimals != Decimals::Streamed && geometry::declared_srid(self).is_none()
            }
            _ => false,
        }
    }

    /// Whether the caller's options turn some values of the type, or of the type `wanted` in its place, into NULL.
    pub(crate) fn turns_null(&self, wanted: Option<&DataType>, options: &ReadOptions) -> bool {
        let is_null = |misfit: Unrepresentable| misfit == Unrepresentable::Null;
        if wanted.is_some() {
            return [options.numeric_nan, options.infinity, options.time_24].into_iter().any(is_null);
        }
        match self.kind {
            Kind::Plain(Class::Numeric) => is_null(options.numeric_nan),
            Kind::Plain(Class::Date | Class::Timestamp | Class::Timestamptz | Class::Interval) => {
                is_null(options.infinity)
            }
            Kind::Plain(Class::Time) => is_null(options.time_24),
            _ => false,
        }
    }

    /// The Arrow type, by the type policy and the caller's options.
    fn arrow(&self, options: &ReadOptions) -> Result<DataType> {
        Ok(match &self.kind {
            Kind::Plain(class) => match class {
                Class::Bool => DataType::Boolean,
                Class::Int2 => DataType::Int16,
                Class::Int4 => DataType::Int32,
                Class::Int8 => DataType::Int64,
                Class::Unsigned => DataType::UInt32,
                Class::Xid8 => DataType::UInt64,
                Class::Float4 => DataType::Float32,
                Class::Float8 => DataType::Float64,
                Class::Numeric => return self.decimal(options),
                Class::Uuid if options.uuid == Uuids::Arrow => DataType::FixedSizeBinary(16),
                Class::Text | Class::TextOnly | Class::Json | Class::Jsonb | Class::Uuid => DataType::Utf8,
                Class::Vector => self.vector(DataType::Float32),
                Class::HalfVector => self.vector(DataType::Float16),
                Class::Hstore => hstore::map_type(),
                // How deferred cells are kept.
                Class::Geometry if self.is_deferred(options) => DataType::LargeBinary,
                Class::Bytes | Class::Geometry => DataType::Binary,
                Class::Date => DataType::Date32,
                Class::Time => DataType::Time64(TimeUnit::Microsecond),
                Class::Timestamp => DataType::Timestamp(TimeUnit::Microsecond, None),
                Class::Timestamptz => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
                Class::Interval if options.intervals => DataType::Interval(IntervalUnit::MonthDayNano),
                Class::Interval => return Err(no_interval()),
            },
            Kind::Enum(_) => DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8)),
            Kind::Range(_) => DataType::Utf8,
            Kind::Array { element, dimensions, .. } => {
                let mut list = DataType::List(Arc::new(element.part("item", true, options)?));
                for _ in 1..*dimensions {
                    list = DataType::List(Arc::new(Field::new_list_field(list, true)));
                }
                list
            }
            Kind::Composite(attributes) => {
                let field = |attribute: &Attribute| attribute.native.part(&attribute.name, true, options);
                DataType::Struct(attributes.iter().map(field).collect::<Result<Fields>>()?)
            }
        })
    }

    /// The list of a vector's numbers, of the length that its column declares.
    fn vector(&self, number: DataType) -> DataType {
        let item = Arc::new(Field::new_list_field(number, true));
        if self.modifier < 0 { DataType::List(item) } else { DataType::FixedSizeList(item, self.modifier) }
    }

    fn decimal(&self, options: &ReadOptions) -> Result<DataType> {
        if options.decimals == Decimals::Float64 {
            return Ok(DataType::Float64);
        }
        let Some((precision, scale)) = declared_decimal(self.modifier) else {
            let streamed = options.decimals == Decimals::Streamed;
            return Ok(if streamed { DataType::Decimal128(38, STREAM_SCALE) } else { DataType::Binary });
        };
        match precision {
            ..=38 => Ok(DataType::Decimal128(precision, scale)),
            _ if precision <= options.decimal_digits => Ok(DataType::Decimal256(precision, scale)),
            _ => Err(too_wide(options.decimal_digits)),
        }
    }
}

/// The scale of an undeclared numeric in a stream.
pub(crate) const STREAM_SCALE: i8 = 20;

pub(crate) fn no_interval() -> Error {
    Error::not_supported("this frame has no type for months, days and microseconds")
        .with_hint("ask for text with schema={\"<column>\": \"string\"}, or use another return_type")
}

fn too_wide(digits: u8) -> Error {
    Error::not_supported(format!("the declared precision is beyond the frame's {digits} digits"))
        .with_hint("choose a type with schema={\"<column>\": \"string\"} or \"decimal128(38, <scale>)\"")
}

/// Precision and scale of a numeric's modifier; the scale has 11 bits and a sign since version 15.
pub(crate) fn precision_and_scale(modifier: i32) -> (i32, i32) {
    let packed = modifier - 4;
    let scale = packed & 0x7ff;
    ((packed >> 16) & 0xffff, (scale ^ 1024) - 1024)
}

/// The Arrow precision and scale of a declared numeric; `None` for one without, or beyond 76 digits.
///
/// `numeric(3, 5)` holds 0.00999 at most, so Arrow needs five digits; `numeric(3, -2)` holds 99900.
fn declared_decimal(modifier: i32) -> Option<(u8, i8)> {
    if modifier < 4 {
        return None;
    }
    let (precision, scale) = precision_and_scale(modifier);
    let digits = if scale < 0 { precision - scale } else { precision.max(scale) };
    let digits = u8::try_from(digits).ok().filter(|digits| *digits <= 76)?;
    Some((digits, i8::try_from(scale.max(0)).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted_for_its_binary_search() {
        assert!(BUILTINS.windows(2).all(|pair| pair[0].oid < pair[1].oid));
    }

    #[test]
    fn declared_numerics_of_every_form() {
        let modifier = |precision: i32, scale: i32| ((precision << 16) | (scale & 0x7ff)) + 4;
        assert_eq!(declared_decimal(modifier(15, 2)), Some((15, 2)));
        assert_eq!(declared_decimal(modifier(3, 5)), Some((5, 5)));
        assert_eq!(declared_decimal(modifier(3, -2)), Some((5, 0)));
        assert_eq!(declared_decimal(modifier(76, 10)), Some((76, 10)));
        assert_eq!(declared_decimal(modifier(1000, 0)), None);
        assert_eq!(declared_decimal(-1), None);
    }

    #[test]
    fn arrays_have_their_elements() {
        let Some(Type { kind: Kind::Array { element, .. }, .. }) = Type::builtin(1007) else {
            panic!("no array")
        };
        assert_eq!(element.name, "int4");
        assert!(Type::builtin(16_384).is_none());
    }
}
