//! What the server says of rows that it has not taken as they are.
//!
//! A file that is loaded has its bad values changed and its duplicates left out, and warnings say so.

use longshore_core::{Error, Result};

use crate::connection::Connection;
use crate::message;

/// The first warning, as the error that it would be elsewhere.
pub(super) fn first(connection: &mut Connection) -> Result<Option<Error>> {
    let rows = connection.rows("SHOW WARNINGS LIMIT 1")?;
    let Some([_, Some(code), Some(text)]) = rows.first().map(Vec::as_slice) else { return Ok(None) };
    Ok(Some(message::warning(code.parse().unwrap_or_default(), text)))
}

/// Whether the counts of a loaded file say that each of `rows` has arrived. Their words are in the server's language; they
/// are of records, deleted ones, skipped ones and warnings.
pub(super) fn counts_are(info: &str, rows: u64) -> bool {
    let mut counts = info.split(|letter: char| !letter.is_ascii_digit()).filter_map(|part| part.parse().ok());
    info.is_empty() || (counts.next() == Some(rows) && counts.all(|count: u64| count == 0))
}

/// Column and row, from 0, of `... for column 'a' at row 3`.
pub(super) fn place(text: &str) -> (Option<&str>, Option<u64>) {
    let row = text.rsplit_once(" at row ").and_then(|(_, rest)| {
        let end = rest.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(rest.len());
        rest[..end].parse::<u64>().ok()?.checked_sub(1)
    });
    (column(text), row)
}

/// MySQL has the column's name, MariaDB for some also the table's before it.
fn column(text: &str) -> Option<&str> {
    if let Some((_, rest)) = text.rsplit_once("column '") {
        let end = rest.rfind("' at row").or_else(|| rest.find('\''))?;
        return Some(&rest[..end]);
    }
    let (_, rest) = text.rsplit_once("column `")?;
    let end = rest.rfind("` at row")?;
    rest[..end].rsplit("`.`").next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_found() {
        for (text, column, row) in [
            ("Out of range value for column 'a' at row 3", Some("a"), Some(2)),
            ("Incorrect integer value: 'x' for column `test`.`t`.`a b` at row 1", Some("a b"), Some(0)),
            ("Data too long for column 'it's' at row 12 (error 1406)", Some("it's"), Some(11)),
            ("Duplicate entry '1' for key 'PRIMARY'", None, None),
            ("Field 'b' doesn't have a default value", None, None),
        ] {
            let found = place(text);
            assert_eq!(found.1, row, "{text}");
            assert_eq!(found.0, column, "{text}");
        }
    }

    #[test]
    fn counts_are_all_or_something_is_wrong() {
        assert!(counts_are("Records: 3  Deleted: 0  Skipped: 0  Warnings: 0", 3));
        assert!(counts_are("", 3));
        assert!(!counts_are("Records: 3  Deleted: 0  Skipped: 1  Warnings: 1", 3));
        assert!(!counts_are("Records: 2  Deleted: 0  Skipped: 0  Warnings: 0", 3));
    }
}
