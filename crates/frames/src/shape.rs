//! THE TABLE: which form each Arrow type takes in a frame.

use arrow_schema::{DataType, Field};
use longshore_core::EXTENSION;

/// The kind of columns that the caller's frame is made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Backend {
    /// pandas with its defaults: nullable integers and booleans, NumPy for the rest.
    #[default]
    Pandas,
    /// pandas with `dtype_backend="numpy"`: NumPy everywhere.
    Numpy,
    /// pandas with `dtype_backend="numpy_nullable"`: a mask next to every column of numbers.
    Nullable,
    /// pandas with `dtype_backend="pyarrow"`: Arrow memory as it is.
    Arrow,
    /// `return_type="numpy"`: masked arrays.
    Masked,
}

/// The choices that decide every column's [`Shape`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Choices {
    /// The kind of columns that the frame is made of.
    pub backend: Backend,
    /// Whether the frame's own string type keeps Arrow memory (pandas 3 with pyarrow installed).
    pub arrow_strings: bool,
    /// Whether JSON becomes Python objects instead of its text.
    pub json_objects: bool,
}

/// The treatment of a NULL in a column of fixed-width values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nulls {
    /// An error: the type has no value to spare.
    Refused,
    /// The type's own marker: NaN or NaT.
    Marked,
    /// A mask next to the values, made when the first NULL comes.
    Masked,
}

/// The unit that a date counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DateUnit {
    /// `datetime64[D]`.
    Days,
    /// `datetime64[s]`, the coarsest that pandas has.
    Seconds,
}

/// The form that one column takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// One NumPy array of the type.
    Numbers {
        /// The treatment of a NULL.
        nulls: Nulls,
        /// The unit that dates count.
        dates: DateUnit,
    },
    /// Python objects.
    Objects {
        /// Whether NULLs are masked too, besides being `None`.
        masked: bool,
        /// Whether JSON is parsed.
        json: bool,
    },
    /// Codes and their labels.
    Dictionary,
    /// The batches' arrays, kept as they are.
    Chunks {
        /// Whether strings take 64-bit offsets, as pandas' string type wants them.
        wide: bool,
    },
}

/// The families of types that the table tells apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Family {
    /// Integers and booleans: every bit pattern is a value.
    Integer,
    Float,
    /// Half precision, which pandas' masked types lack.
    Half,
    /// Dates, timestamps and durations: NumPy has NaT.
    Temporal,
    Text,
    Json,
    /// A dictionary of strings.
    Labels,
    /// Months, days and nanoseconds: pandas cannot even print Arrow's type.
    Interval,
    /// A value that only a Python object holds.
    Other,
}

impl Shape {
    /// The form of a column of `field`.
    #[must_use]
    pub fn of(field: &Field, choices: &Choices) -> Self {
        use Family as F;
        let backend = choices.backend;
        let dates = if backend == Backend::Masked { DateUnit::Days } else { DateUnit::Seconds };
        let numbers = |nulls| Self::Numbers { nulls, dates };
        let objects = Self::Objects { masked: backend == Backend::Masked, json: choices.json_objects };
        match (backend, Family::of(field)) {
            (_, F::Json) if choices.json_objects => objects,
            (Backend::Arrow, F::Interval) => objects,
            (Backend::Arrow, _) => Self::Chunks { wide: false },
            (Backend::Masked, F::Integer | F::Float | F::Half | F::Temporal)
            | (Backend::Nullable, F::Integer | F::Float) => numbers(Nulls::Masked),
            (Backend::Pandas, F::Integer) if field.is_nullable() => numbers(Nulls::Masked),
            (Backend::Pandas | Backend::Numpy, F::Integer) => numbers(Nulls::Refused),
            (Backend::Pandas | Backend::Numpy, F::Float | F::Half) | (_, F::Temporal) => {
                numbers(Nulls::Marked)
            }
            (Backend::Pandas | Backend::Nullable, F::Text | F::Json) if choices.arrow_strings => {
                Self::Chunks { wide: true }
            }
            (Backend::Pandas | Backend::Numpy | Backend::Nullable, F::Labels) => Self::Dictionary,
            (_, F::Half | F::Text | F::Json | F::Labels | F::Interval | F::Other) => objects,
        }
    }
}

impl Family {
    fn of(field: &Field) -> Self {
        use DataType as T;
        match field.data_type() {
            T::Boolean
            | T::Int8
            | T::Int16
            | T::Int32
            | T::Int64
            | T::UInt8
            | T::UInt16
            | T::UInt32
            | T::UInt64 => Self::Integer,
            T::Float32 | T::Float64 => Self::Float,
            T::Float16 => Self::Half,
            T::Date32 | T::Date64 | T::Timestamp(..) | T::Duration(_) => Self::Temporal,
            text if is_text(text) && is_json(field) => Self::Json,
            text if is_text(text) => Self::Text,
            T::Dictionary(_, values) if is_text(values) => Self::Labels,
            T::Interval(_) => Self::Interval,
            _ => Self::Other,
        }
    }
}

/// Whether `data_type` holds strings.
pub(crate) fn is_text(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
}

fn has_extension(field: &Field, name: &str) -> bool {
    field.metadata().get(EXTENSION).is_some_and(|extension| extension == name)
}

/// Whether `field` holds JSON texts.
pub(crate) fn is_json(field: &Field) -> bool {
    has_extension(field, "arrow.json")
}

/// Whether `field` holds UUIDs.
pub(crate) fn is_uuid(field: &Field) -> bool {
    has_extension(field, "arrow.uuid")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(data_type: DataType, nullable: bool, backend: Backend) -> Shape {
        let choices = Choices { backend, arrow_strings: true, json_objects: false };
        Shape::of(&Field::new("a", data_type, nullable), &choices)
    }

    fn numbers(nulls: Nulls) -> Shape {
        Shape::Numbers { nulls, dates: DateUnit::Seconds }
    }

    #[test]
    fn an_integer_is_masked_unless_the_source_promises_a_value() {
        assert_eq!(shape(DataType::Int64, true, Backend::Pandas), numbers(Nulls::Masked));
        assert_eq!(shape(DataType::Int64, false, Backend::Pandas), numbers(Nulls::Refused));
        assert_eq!(shape(DataType::Int64, true, Backend::Numpy), numbers(Nulls::Refused));
        assert_eq!(shape(DataType::Int64, false, Backend::Nullable), numbers(Nulls::Masked));
        assert_eq!(shape(DataType::Int64, false, Backend::Arrow), Shape::Chunks { wide: false });
    }

    #[test]
    fn strings_take_the_memory_of_the_frame() {
        assert_eq!(shape(DataType::Utf8, true, Backend::Pandas), Shape::Chunks { wide: true });
        assert_eq!(
            shape(DataType::Utf8, true, Backend::Numpy),
            Shape::Objects { masked: false, json: false }
        );
        assert_eq!(
            shape(DataType::Utf8, true, Backend::Masked),
            Shape::Objects { masked: true, json: false }
        );
    }
}
