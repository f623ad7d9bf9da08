//! What SQLite does to a value that goes into a column (sqlite.org/datatype3.html, section 3).

/// A column's affinity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Affinity {
    /// Values stay as they are.
    None,
    /// Numbers become texts.
    Text,
    /// Texts that look like numbers become numbers, whole ones integers.
    Numeric,
    /// Texts that look like numbers, and integers, become reals.
    Real,
}

impl Affinity {
    /// The affinity of a type as CREATE TABLE declares it.
    pub(super) fn of(declared: &str, is_strict: bool) -> Self {
        let name = declared.to_ascii_uppercase();
        let has = |part: &str| name.contains(part);
        match () {
            () if is_strict && name == "ANY" => Self::None,
            () if has("INT") => Self::Numeric,
            () if has("CHAR") || has("CLOB") || has("TEXT") => Self::Text,
            () if has("BLOB") || name.trim().is_empty() => Self::None,
            () if has("REAL") || has("FLOA") || has("DOUB") => Self::Real,
            () => Self::Numeric,
        }
    }

    /// Whether `text` would become a number.
    pub(super) fn changes(self, text: &str) -> bool {
        matches!(self, Self::Numeric | Self::Real) && looks_like_number(text)
    }
}

/// Whether a text is a number to SQLite: digits with a point and an exponent, and blanks around them. More may be taken for
/// one here, less never.
fn looks_like_number(text: &str) -> bool {
    let text = text.trim_matches([' ', '\t', '\n', '\x0b', '\x0c', '\r']);
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let starts = digits.starts_with(|first: char| first.is_ascii_digit() || first == '.');
    starts
        && digits
            .bytes()
            .all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'e' | b'E' | b'+' | b'-'))
        && {
            // A date has digits and signs as well; a sign in a number stands at its start or after the exponent's mark.
            let bytes = digits.as_bytes();
            bytes.windows(2).all(|pair| !matches!(pair[1], b'+' | b'-') || matches!(pair[0], b'e' | b'E'))
        }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use longshore_core::{Result, Watch};

    use super::*;
    use crate::cell::Cell;
    use crate::library::{Connection, Open};

    #[test]
    fn declared_types_have_an_affinity() {
        for (declared, affinity) in [
            ("INTEGER", Affinity::Numeric),
            ("CHARINT", Affinity::Numeric),
            ("VARCHAR(3)", Affinity::Text),
            ("DECIMAL_TEXT(3,1)", Affinity::Text),
            ("DECIMAL(3,1)", Affinity::Numeric),
            ("BLOB", Affinity::None),
            ("", Affinity::None),
            ("DOUBLE PRECISION", Affinity::Real),
            ("JSON", Affinity::Numeric),
            ("ANY", Affinity::Numeric),
        ] {
            assert_eq!(Affinity::of(declared, false), affinity, "{declared}");
        }
        assert_eq!(Affinity::of("ANY", true), Affinity::None);
    }

    #[test]
    fn numbers_in_text_are_seen() {
        for text in ["007", " 1.50\n", "-1e3", "+.5", "1.", "1E+05"] {
            assert!(looks_like_number(text), "{text:?}");
        }
        for text in ["", "abc", "2024-01-01", "12:00:00", "0x10", "Inf", "-", "1 2"] {
            assert!(!looks_like_number(text), "{text:?}");
        }
    }

    /// All texts of so many characters of numbers.
    fn texts(length: u32) -> impl Iterator<Item = String> {
        const LETTERS: &[u8] = b"07.e+- \tx";
        (0..LETTERS.len().pow(length)).map(move |number| {
            let letter = |place| char::from(LETTERS[number / LETTERS.len().pow(place) % LETTERS.len()]);
            (0..length).map(letter).collect()
        })
    }

    #[test]
    fn no_text_that_is_kept_becomes_a_number() -> Result<()> {
        let open = Open { name: ":memory:".into(), read_only: false, create: true, patience: Duration::ZERO };
        let connection = Connection::open(&open, &Watch::never())?;
        let prepared = |text| connection.prepare(text).map(|(statement, _)| statement);
        if let Some(mut table) = prepared("CREATE TABLE t (a NUMERIC, b REAL)")? {
            table.step()?;
        }
        for text in (1..=4).flat_map(texts) {
            let insert = prepared("INSERT INTO t VALUES (?1, ?1) RETURNING a, b")?;
            let Some(mut insert) = insert else { continue };
            insert.bind(1, Cell::Text(text.as_bytes()))?;
            assert!(insert.step()?);
            let is_kept = |column| insert.cell(column) == Cell::Text(text.as_bytes());
            for (column, affinity) in [(0, Affinity::Numeric), (1, Affinity::Real)] {
                assert!(is_kept(column) || affinity.changes(&text), "{text:?}");
            }
        }
        Ok(())
    }
}
