//! Objects as JSON.

use std::fmt::Write;
use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_array::builder::LargeStringBuilder;
use longshore_values::Fault;
use pyo3::prelude::*;

use super::Builder;
use crate::class::Class;
use crate::read::{ReadError, Reader, float, integer_text, text, truth};

/// JSON documents.
pub(super) struct Documents {
    array: LargeStringBuilder,
    text: String,
}

impl Documents {
    pub(super) fn new(rows: usize) -> Self {
        Self { array: LargeStringBuilder::with_capacity(rows, 0), text: String::new() }
    }
}

impl Builder for Documents {
    fn push<'py>(
        &mut self,
        reader: &mut Reader<'py>,
        item: &Bound<'py, PyAny>,
        class: Class,
    ) -> Result<(), Fault> {
        self.text.clear();
        document(reader, item, class, &mut self.text)?;
        self.array.append_value(&self.text);
        Ok(())
    }

    fn push_nulls(&mut self, count: usize) {
        self.array.append_nulls(count);
    }

    fn finish(&mut self) -> ArrayRef {
        Arc::new(self.array.finish())
    }
}

fn document<'py>(
    reader: &mut Reader<'py>,
    item: &Bound<'py, PyAny>,
    class: Class,
    out: &mut String,
) -> Result<(), Fault> {
    match class {
        Class::Dict => {
            out.push('{');
            reader.entries(item, |reader, at, key, value| {
                if at > 0 {
                    out.push(',');
                }
                push_text(out, text(key).map_err(|error| reader.fault(error))?);
                out.push(':');
                let class = reader.class(value)?;
                document(reader, value, class, out).map_err(|fault| fault.under(&key.to_string()))
            })?;
            out.push('}');
            Ok(())
        }
        Class::List | Class::Tuple | Class::Array => {
            out.push('[');
            let start = out.len();
            reader.items(item, class, |reader, value| {
                if out.len() > start {
                    out.push(',');
                }
                let class = reader.class(value)?;
                document(reader, value, class, out)
            })?;
            out.push(']');
            Ok(())
        }
        Class::Enum => {
            let value = reader.value(item)?;
            let class = reader.class(&value)?;
            document(reader, &value, class, out)
        }
        _ => scalar(item, class, out).map_err(|error| reader.fault(error)),
    }
}

fn scalar(item: &Bound<'_, PyAny>, class: Class, out: &mut String) -> Result<(), ReadError> {
    match class {
        Class::Null => out.push_str("null"),
        Class::Bool | Class::NumpyBool => out.push_str(if truth(item, class)? { "true" } else { "false" }),
        Class::Int | Class::NumpyInt => match integer_text(item, class)? {
            Some(digits) => out.push_str(&digits),
            None => {
                return Err(ReadError::Unrepresentable(
                    "the integer has more digits than Python writes",
                    "make Decimals or texts of such integers",
                ));
            }
        },
        Class::Float | Class::NumpyFloat => {
            let value = float(item, class)?;
            if !value.is_finite() {
                return Err(ReadError::Changed);
            }
            // The shortest that is read as the same; a String takes whatever is written.
            let _ = write!(out, "{value:?}");
        }
        Class::Text => push_text(out, text(item)?),
        _ => return Err(ReadError::Changed),
    }
    Ok(())
}

fn push_text(out: &mut String, text: &str) {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\0'..='\x1f' => {
                // A String takes whatever is written.
                let _ = write!(out, "\\u{:04x}", u32::from(character));
            }
            _ => out.push(character),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_escaped_as_json_wants_it() {
        let mut out = String::new();
        push_text(&mut out, "a\"\\\n\0é\u{7f}😀");
        assert_eq!(out, "\"a\\\"\\\\\\u000a\\u0000é\u{7f}😀\"");
    }
}
