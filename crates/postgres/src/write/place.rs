//! Where in the data an error of the server's happened.

use arrow_schema::FieldRef;
use longshore_core::{Error, Place};

use crate::types::Type;

/// `error` with the row and the column that the context of a COPY names: `COPY boats, line 3, column berth`.
pub(super) fn located<C>(error: Error, columns: &[C], parts: impl Fn(&C) -> (&FieldRef, &Type)) -> Error {
    // It is found when the server stores many rows at once, and counts the last of them.
    if error.message().starts_with("row is too big") {
        return error;
    }
    let Some((row, rest)) = error.detail().and_then(line) else { return error };
    let named = |column: &&C| {
        let name = parts(column).0.name();
        rest.strip_prefix(", column ").is_some_and(|rest| {
            rest.strip_prefix(name.as_str()).is_some_and(|end| end.is_empty() || end.starts_with([':', '\n']))
        })
    };
    let column = columns.iter().find(named).map(parts);
    let place = Place {
        column: column.map(|(field, _)| field.name().clone()),
        row: Some(row),
        native_type: column.map(|(_, native)| native.label()),
    };
    error.at(place)
}

/// The row, from 0, and what follows its number. Translated contexts are left alone.
fn line(detail: &str) -> Option<(u64, &str)> {
    let context =
        detail.lines().position(|line| line.starts_with("COPY ")).and_then(|at| detail.lines().nth(at))?;
    let (_, rest) = context.split_once(", line ")?;
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let line: u64 = rest[..end].parse().ok()?;
    Some((line.checked_sub(1)?, &rest[end..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_context_of_a_copy_has_a_line() {
        assert_eq!(line("Key (a)=(1) exists.\nCOPY t, line 3"), Some((2, "")));
        assert_eq!(line("COPY t, line 12, column b: \"x\""), Some((11, ", column b: \"x\"")));
        assert_eq!(line("COPY t"), None);
    }
}
