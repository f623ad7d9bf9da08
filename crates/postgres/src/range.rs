//! Ranges as structs, where `schema=` asks for them: the bounds, whether each belongs to the range, and whether it is empty.

use arrow_array::StructArray;
use arrow_schema::{DataType, Fields};
use longshore_core::{Error, Result};
use longshore_values::{CellBuffer, Item, Items, Misfit};

use crate::decode::nested::{self, text::field};

/// The names of the struct's fields. A bound that is NULL is one that the range has not.
pub(crate) const FIELDS: [&str; 5] = ["lower", "upper", "lower_inc", "upper_inc", "empty"];

/// Refuses a struct that is not one of a range.
pub(crate) fn check_fields(fields: &Fields) -> Result<()> {
    let are_flags = fields.iter().skip(2).all(|field| *field.data_type() == DataType::Boolean);
    if is_named(fields) && are_flags {
        return Ok(());
    }
    Err(Error::not_supported("a range is not such a struct").with_hint(
        "ask for \"struct<lower: T, upper: T, lower_inc: bool, upper_inc: bool, empty: bool>\" with the bounds' type, or \
         for \"string\"",
    ))
}

fn is_named(fields: &Fields) -> bool {
    fields.iter().map(|field| field.name().as_str()).eq(FIELDS)
}

/// `[1,3)`, with quotes around what needs them; `empty`; nothing where there is no bound.
pub(crate) fn split_text(cell: &[u8], into: &mut [CellBuffer]) -> std::result::Result<(), Misfit> {
    let [lower, upper, lower_inc, upper_inc, empty] = into else { return Err(damage()) };
    let flag = |set: bool| Some(if set { &b"t"[..] } else { b"f" });
    if cell == b"empty" {
        lower.push_null();
        upper.push_null();
        lower_inc.push(flag(false))?;
        upper_inc.push(flag(false))?;
        return empty.push(flag(true));
    }
    let [first @ (b'[' | b'('), rest @ .., last @ (b']' | b')')] = cell else { return Err(damage()) };
    let mut scratch = Vec::new();
    let (is_there, rest) = field(rest, &mut scratch).ok_or_else(damage)?;
    lower.push(is_there.then_some(&scratch))?;
    let rest = rest.strip_prefix(b",").ok_or_else(damage)?;
    let (is_there, rest) = field(rest, &mut scratch).ok_or_else(damage)?;
    upper.push(is_there.then_some(&scratch))?;
    lower_inc.push(flag(*first == b'['))?;
    upper_inc.push(flag(*last == b']'))?;
    empty.push(flag(false))?;
    if rest.is_empty() { Ok(()) } else { Err(damage()) }
}

#[cold]
fn damage() -> Misfit {
    nested::damage("range")
}

/// The text of a struct as a range; `bound` gives the text of a bound, `None` where it is NULL.
pub(crate) fn literal(
    row: &StructArray,
    at: usize,
    mut bound: impl FnMut(&Item<'_>, usize) -> std::result::Result<Option<String>, Misfit>,
) -> std::result::Result<String, Misfit> {
    if !is_named(row.fields()) {
        return Err(Misfit::with_hint(
            "the struct is not a range's",
            format!("its fields are {}", FIELDS.join(", ")),
        ));
    }
    let columns = row.columns().iter().zip(row.fields());
    let columns = columns.map(|(column, field)| Items::new(column, field).map_err(Misfit::from));
    let columns = columns.collect::<std::result::Result<Vec<_>, Misfit>>()?;
    let flag = |index: usize| match columns[index].get(at) {
        Item::Bool(flag) => Ok(flag),
        _ => Err(Misfit::with_hint(
            format!("{} is not true or false", FIELDS[index]),
            "give each range its three flags",
        )),
    };
    let lower = bound(&columns[0].get(at), 0)?;
    let upper = bound(&columns[1].get(at), 1)?;
    let (has_lower, has_upper, is_empty) = (flag(2)?, flag(3)?, flag(4)?);
    // The server would drop what contradicts the rest.
    if (is_empty && (lower.is_some() || upper.is_some() || has_lower || has_upper))
        || (has_lower && lower.is_none())
        || (has_upper && upper.is_none())
    {
        return Err(Misfit::with_hint(
            "the parts of the range contradict each other",
            "an empty range has no bounds, and a bound that is NULL does not belong to its range",
        ));
    }
    if is_empty {
        return Ok("empty".to_owned());
    }
    let quoted = |text: Option<String>| {
        text.map(|text| format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\"\"")))
            .unwrap_or_default()
    };
    let (open, close) = (if has_lower { '[' } else { '(' }, if has_upper { ']' } else { ')' });
    Ok(format!("{open}{},{}{close}", quoted(lower), quoted(upper)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> std::result::Result<Vec<Option<String>>, Misfit> {
        let mut parts: [CellBuffer; 5] = Default::default();
        split_text(text.as_bytes(), &mut parts)?;
        let first = |parts: &CellBuffer| {
            parts.cells().iter().next().flatten().map(|cell| String::from_utf8_lossy(cell).into_owned())
        };
        Ok(parts.iter().map(first).collect())
    }

    #[test]
    fn ranges_are_taken_apart() {
        let of = |parts: [Option<&str>; 5]| Ok(parts.map(|part| part.map(str::to_owned)).to_vec());
        assert_eq!(read("[1,3)"), of([Some("1"), Some("3"), Some("t"), Some("f"), Some("f")]));
        assert_eq!(read("(,)"), of([None, None, Some("f"), Some("f"), Some("f")]));
        assert_eq!(read("empty"), of([None, None, Some("f"), Some("f"), Some("t")]));
        assert_eq!(
            read(r#"("a,""b\\",""]"#),
            of([Some("a,\"b\\"), Some(""), Some("f"), Some("t"), Some("f")])
        );
        for bad in ["", "[", "[1,2", "1,2)", "[1)", "[1,2,3)", "[\"1,2)", "emptY"] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }
}
