//! The codes of ODBC and JDBC for a type, by the name that a database gives it.

/// A column's type in the terms of ODBC and JDBC; what is not known is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct XdbcType {
    /// `SQL_INTEGER` and the like.
    pub(super) data_type: Option<i16>,
    /// The same, but for dates and times, which are one there.
    pub(super) sql_data_type: Option<i16>,
    /// Which of dates and times it is.
    pub(super) datetime_sub: Option<i16>,
    /// The digits of a number in its radix, or the longest text in characters, or bytes.
    pub(super) size: Option<i32>,
    /// The digits after a number's point, or of a second.
    pub(super) digits: Option<i16>,
    /// 2 or 10.
    pub(super) radix: Option<i16>,
    /// The longest bytes.
    pub(super) octets: Option<i32>,
}

/// Names of numbers: code, digits, radix.
const NUMBERS: &[(&[&str], i16, Option<i32>, i16)] = &[
    (&["tinyint", "int1"], -6, Some(3), 10),
    (&["smallint", "int2"], 5, Some(5), 10),
    (&["mediumint"], 4, Some(7), 10),
    (&["integer", "int", "int4"], 4, Some(10), 10),
    (&["bigint", "int8", "int64"], -5, Some(19), 10),
    (&["numeric", "number"], 2, None, 10),
    (&["decimal"], 3, None, 10),
    (&["real", "float4", "binary_float"], 7, Some(24), 2),
    (&["float"], 6, Some(24), 2),
    (&["double precision", "double", "float8", "float64", "binary_double"], 8, Some(53), 2),
];

/// Names of texts, bytes and truth values: code, and whether their length is in bytes.
const OTHERS: &[(&[&str], i16, bool)] = &[
    (&["character", "char", "bpchar"], 1, false),
    (&["character varying", "varchar", "varchar2", "string"], 12, false),
    (&["nvarchar2"], -9, false),
    (&["text", "tinytext", "mediumtext", "longtext", "clob", "long"], -1, false),
    (&["binary"], -2, true),
    (&["varbinary", "raw", "bytes"], -3, true),
    (&["bytea", "blob", "tinyblob", "mediumblob", "longblob"], -4, true),
    (&["boolean", "bool"], -7, false),
    (&["uuid"], -11, false),
];

/// The verbose code of dates and times.
const DATETIME: i16 = 9;

impl XdbcType {
    /// The type that a database calls `native`, with its modifiers.
    pub(super) fn of(native: &str) -> Self {
        let native = native.to_ascii_lowercase();
        let (base, arguments) = parts(&native);
        let number = |at: usize| arguments.get(at).copied();
        if let Some((_, code, size, radix)) =
            NUMBERS.iter().find(|(names, ..)| names.contains(&base.as_str()))
        {
            let is_exact = matches!(code, 2 | 3);
            let is_integer = *radix == 10 && !is_exact;
            return Self {
                data_type: Some(*code),
                sql_data_type: Some(*code),
                size: if is_exact { number(0) } else { *size },
                digits: if is_exact { number(0).map(|_| scale(number(1))) } else { is_integer.then_some(0) },
                radix: Some(*radix),
                ..Self::default()
            };
        }
        if let Some((_, code, is_bytes)) = OTHERS.iter().find(|(names, ..)| names.contains(&base.as_str())) {
            return Self {
                data_type: Some(*code),
                sql_data_type: Some(*code),
                size: number(0),
                octets: number(0).filter(|_| *is_bytes),
                ..Self::default()
            };
        }
        let Some(sub) = datetime(&base) else { return Self::default() };
        Self {
            data_type: Some(90 + sub),
            sql_data_type: Some(DATETIME),
            datetime_sub: Some(sub),
            digits: number(0).map(|digits| scale(Some(digits))),
            ..Self::default()
        }
    }
}

fn scale(digits: Option<i32>) -> i16 {
    digits.and_then(|digits| i16::try_from(digits).ok()).unwrap_or(0)
}

fn datetime(base: &str) -> Option<i16> {
    match base.split(' ').next()? {
        "date" => Some(1),
        "time" | "timetz" => Some(2),
        "timestamp" | "timestamptz" | "datetime" => Some(3),
        _ => None,
    }
    // An array of them is none of them.
    .filter(|_| !base.contains('['))
}

/// The name without its parentheses and signs, and the numbers in them.
fn parts(native: &str) -> (String, Vec<i32>) {
    let (before, rest) = native.split_once('(').unwrap_or((native, ""));
    let (inside, after) = rest.split_once(')').unwrap_or((rest, ""));
    let arguments = inside.split(',').map_while(|part| part.trim().parse().ok()).collect();
    let words = before.split_whitespace().chain(after.split_whitespace());
    let words: Vec<&str> = words.filter(|word| !matches!(*word, "unsigned" | "zerofill")).collect();
    (words.join(" "), arguments)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_several_databases_are_known() {
        let known = |native| {
            let XdbcType { data_type, size, digits, radix, .. } = XdbcType::of(native);
            (data_type, size, digits, radix)
        };
        assert_eq!(known("INTEGER"), (Some(4), Some(10), Some(0), Some(10)));
        assert_eq!(known("int(11) unsigned"), (Some(4), Some(10), Some(0), Some(10)));
        assert_eq!(known("numeric(38,10)"), (Some(2), Some(38), Some(10), Some(10)));
        assert_eq!(known("decimal(5)"), (Some(3), Some(5), Some(0), Some(10)));
        assert_eq!(known("numeric"), (Some(2), None, None, Some(10)));
        assert_eq!(known("double precision"), (Some(8), Some(53), None, Some(2)));
        assert_eq!(known("character varying(50)"), (Some(12), Some(50), None, None));
        assert_eq!(known("timestamp(3) with time zone"), (Some(93), None, Some(3), None));
        assert_eq!(known("enum('a','b')"), (None, None, None, None));
        assert_eq!(
            (known("integer[]").0, known("date[]").0, known("time without time zone[]").0),
            (None, None, None)
        );
    }
}
