//! Values in SQLite's storage classes (sqlite.org/datatype3.html, section 2), and their texts.

use std::borrow::Cow;

pub(crate) use longshore_values::text::hex;

/// A value as SQLite stores it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Cell<'a> {
    /// SQL's NULL.
    Null,
    /// INTEGER.
    Integer(i64),
    /// REAL; never NaN, which SQLite stores as NULL.
    Real(f64),
    /// TEXT in UTF-8, not checked.
    Text(&'a [u8]),
    /// BLOB.
    Blob(&'a [u8]),
}

impl<'a> Cell<'a> {
    /// The name of the storage class.
    pub(crate) fn class(self) -> &'static str {
        match self {
            Self::Null => "NULL",
            Self::Integer(_) => "INTEGER",
            Self::Real(_) => "REAL",
            Self::Text(_) => "TEXT",
            Self::Blob(_) => "BLOB",
        }
    }

    /// The value of an INTEGER.
    pub(crate) fn integer(self) -> Option<i64> {
        if let Self::Integer(value) = self { Some(value) } else { None }
    }

    /// The bytes of a TEXT.
    pub(crate) fn text_bytes(self) -> Option<&'a [u8]> {
        if let Self::Text(bytes) = self { Some(bytes) } else { None }
    }

    /// The value as text: numbers in full, so that they read back as the same number.
    pub(crate) fn text(self) -> Cow<'a, [u8]> {
        match self {
            Self::Null => Cow::Borrowed(b""),
            Self::Integer(value) => Cow::Owned(value.to_string().into_bytes()),
            Self::Real(value) => Cow::Owned(real_text(value).into_bytes()),
            Self::Text(bytes) | Self::Blob(bytes) => Cow::Borrowed(bytes),
        }
    }

    /// The value as an error shows it.
    pub(crate) fn show(self) -> String {
        const MOST: usize = 60;
        match self {
            Self::Blob(bytes) => format!("a BLOB of {} bytes", bytes.len()),
            Self::Text(bytes) => {
                let text: String = String::from_utf8_lossy(bytes).chars().take(MOST + 1).collect();
                let cut = text.chars().count() > MOST;
                let text: String = text.chars().take(MOST).collect();
                format!("{text:?}{}", if cut { "..." } else { "" })
            }
            _ => format!("{} {}", self.class(), String::from_utf8_lossy(&self.text())),
        }
    }

    /// Appends the value so that [`Cell::from_tagged`] gives it back. NULL has no such form.
    pub(crate) fn tag(self, bytes: &mut Vec<u8>) {
        match self {
            Self::Null => {}
            Self::Integer(value) => {
                bytes.push(INTEGER);
                bytes.extend_from_slice(&value.to_le_bytes());
            }
            Self::Real(value) => {
                bytes.push(REAL);
                bytes.extend_from_slice(&value.to_le_bytes());
            }
            Self::Text(text) => {
                bytes.push(TEXT);
                bytes.extend_from_slice(text);
            }
            Self::Blob(blob) => {
                bytes.push(BLOB);
                bytes.extend_from_slice(blob);
            }
        }
    }

    /// The bytes that [`Cell::tag`] appends.
    pub(crate) fn tagged_length(&self) -> usize {
        match self {
            Self::Null => 0,
            Self::Integer(_) | Self::Real(_) => 9,
            Self::Text(bytes) | Self::Blob(bytes) => 1 + bytes.len(),
        }
    }

    /// The value that [`Cell::tag`] wrote.
    pub(crate) fn from_tagged(bytes: &'a [u8]) -> Self {
        let word = |rest: &[u8]| rest.try_into().unwrap_or_default();
        match bytes.split_first() {
            Some((&INTEGER, rest)) => Self::Integer(i64::from_le_bytes(word(rest))),
            Some((&REAL, rest)) => Self::Real(f64::from_le_bytes(word(rest))),
            Some((&TEXT, rest)) => Self::Text(rest),
            Some((_, rest)) => Self::Blob(rest),
            None => Self::Null,
        }
    }
}

/// A value of its own, as a parameter is bound.
#[derive(Clone, Debug, PartialEq)]
pub enum OwnedCell {
    /// SQL's NULL.
    Null,
    /// INTEGER.
    Integer(i64),
    /// REAL.
    Real(f64),
    /// TEXT.
    Text(String),
    /// BLOB.
    Blob(Vec<u8>),
}

impl OwnedCell {
    pub(crate) fn cell(&self) -> Cell<'_> {
        match self {
            Self::Null => Cell::Null,
            Self::Integer(value) => Cell::Integer(*value),
            Self::Real(value) => Cell::Real(*value),
            Self::Text(text) => Cell::Text(text.as_bytes()),
            Self::Blob(blob) => Cell::Blob(blob),
        }
    }
}

const INTEGER: u8 = 1;
const REAL: u8 = 2;
const TEXT: u8 = 3;
const BLOB: u8 = 4;

/// The shortest text that reads back as the same double, written as SQLite writes its own.
pub(crate) fn real_text(value: f64) -> String {
    if value.is_infinite() {
        return if value > 0.0 { "Inf" } else { "-Inf" }.to_owned();
    }
    // The shortest digits, as d.ddde-7.
    let scientific = format!("{value:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    if (-4..15).contains(&exponent) {
        let plain = value.to_string();
        return if plain.contains('.') { plain } else { format!("{plain}.0") };
    }
    let digits = if digits.contains('.') { digits.to_owned() } else { format!("{digits}.0") };
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.abs())
}

/// The double that is the very same number.
#[inline]
pub(crate) fn exact_double(value: i64) -> Option<f64> {
    #[allow(clippy::cast_precision_loss)] // the loss is what is looked for
    let double = value as f64;
    // Beyond 2^53 the way back may saturate: 128 bits do not.
    #[allow(clippy::cast_possible_truncation)]
    let is_exact = value.unsigned_abs() <= 1 << 53 || double as i128 == i128::from(value);
    is_exact.then_some(double)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reals_are_written_as_sqlite_writes_them() {
        for (value, text) in [
            (1.0, "1.0"),
            (-0.5, "-0.5"),
            (0.1, "0.1"),
            (1e20, "1.0e+20"),
            (1.5e-7, "1.5e-07"),
            (123_456.75, "123456.75"),
            (f64::INFINITY, "Inf"),
            (5e-324, "5.0e-324"),
        ] {
            assert_eq!(real_text(value), text);
            assert_eq!(text.to_lowercase().parse::<f64>(), Ok(value));
        }
    }

    #[test]
    fn tags_keep_the_storage_class() {
        for cell in [Cell::Integer(-7), Cell::Real(0.1), Cell::Text(b"a\0"), Cell::Blob(b""), Cell::Text(b"")]
        {
            let mut bytes = Vec::new();
            cell.tag(&mut bytes);
            assert_eq!(Cell::from_tagged(&bytes), cell);
        }
    }

    #[test]
    fn integers_are_doubles_only_where_nothing_is_lost() {
        assert_eq!(exact_double(1 << 53), Some(9_007_199_254_740_992.0));
        assert_eq!(exact_double((1 << 53) + 1), None);
        assert_eq!(exact_double(i64::MAX), None);
        assert_eq!(exact_double(i64::MIN), Some(-9_223_372_036_854_775_808.0));
    }
}
