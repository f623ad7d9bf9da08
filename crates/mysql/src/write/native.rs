//! A table's type as the catalogue writes it, such as `decimal(15,2) unsigned`, and what fits into it.

/// What a column takes.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Native {
    /// The least and the greatest.
    Integer(i128, i128),
    /// All digits, those behind the point, and whether a sign may be there.
    Decimal {
        precision: u8,
        scale: u8,
        signed: bool,
    },
    /// The digits behind the point, where the server rounds to so many.
    Float {
        scale: Option<u8>,
        signed: bool,
    },
    Double {
        scale: Option<u8>,
        signed: bool,
    },
    /// So many bits.
    Bit(u8),
    Year,
    Date,
    /// Each with the digits of the second's fraction.
    DateTime(u8),
    Timestamp(u8),
    Time(u8),
    /// Text.
    Text(Length),
    /// CHAR, which loses the spaces at its end.
    Char(u64),
    Bytes(u64),
    /// BINARY, which is filled up with zeros.
    Binary(u64),
    Enum(Vec<String>),
    Set(Vec<String>),
    Json,
    Uuid,
    /// What the server parses itself from text.
    Parsed,
    /// The server's own bytes of a shape.
    Geometry,
}

/// The most that a text may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Length {
    Characters(u64),
    Bytes(u64),
}

impl Native {
    /// The type of the words that `SHOW COLUMNS` has for it.
    pub(super) fn of(words: &str) -> Self {
        let (name, arguments, rest) = taken_apart(words);
        let signed = !rest.contains("unsigned") && !rest.contains("zerofill");
        let number = |index: usize| arguments.get(index).and_then(|text| text.trim().parse::<u64>().ok());
        let small = |index: usize| number(index).and_then(|number| u8::try_from(number).ok());
        let fraction = small(0).unwrap_or(0);
        match name.as_str() {
            "tinyint" => integer(8, signed),
            "smallint" => integer(16, signed),
            "mediumint" => integer(24, signed),
            "int" | "integer" => integer(32, signed),
            "bigint" => integer(64, signed),
            "decimal" | "numeric" => {
                Self::Decimal { precision: small(0).unwrap_or(10), scale: small(1).unwrap_or(0), signed }
            }
            "float" => Self::Float { scale: small(1), signed },
            "double" | "real" => Self::Double { scale: small(1), signed },
            "bit" => Self::Bit(small(0).unwrap_or(1)),
            "year" => Self::Year,
            "date" => Self::Date,
            "datetime" => Self::DateTime(fraction),
            "timestamp" => Self::Timestamp(fraction),
            "time" => Self::Time(fraction),
            "char" => Self::Char(number(0).unwrap_or(1)),
            "varchar" => Self::Text(Length::Characters(number(0).unwrap_or(1))),
            "tinytext" => Self::Text(Length::Bytes(0xff)),
            "text" => Self::Text(Length::Bytes(0xffff)),
            "mediumtext" => Self::Text(Length::Bytes(0xff_ffff)),
            "longtext" => Self::Text(Length::Bytes(0xffff_ffff)),
            "binary" => Self::Binary(number(0).unwrap_or(1)),
            "varbinary" => Self::Bytes(number(0).unwrap_or(1)),
            "tinyblob" => Self::Bytes(0xff),
            "blob" => Self::Bytes(0xffff),
            "mediumblob" => Self::Bytes(0xff_ffff),
            "longblob" => Self::Bytes(0xffff_ffff),
            "enum" => Self::Enum(arguments),
            "set" => Self::Set(arguments),
            "json" => Self::Json,
            "uuid" => Self::Uuid,
            "geometry" | "point" | "linestring" | "polygon" | "multipoint" | "multilinestring"
            | "multipolygon" | "geometrycollection" | "geomcollection" | "vector" => Self::Geometry,
            _ => Self::Parsed,
        }
    }
}

fn integer(bits: u32, signed: bool) -> Native {
    let half = 1_i128 << (bits - 1);
    if signed { Native::Integer(-half, half - 1) } else { Native::Integer(0, 2 * half - 1) }
}

/// Name, arguments and what follows them. Labels lose their quotes.
fn taken_apart(words: &str) -> (String, Vec<String>, String) {
    let end = words.find(|next: char| !next.is_ascii_alphanumeric() && next != '_').unwrap_or(words.len());
    let (name, rest) = words.split_at(end);
    let name = name.to_ascii_lowercase();
    let Some(inner) = rest.strip_prefix('(') else { return (name, Vec::new(), rest.to_ascii_lowercase()) };
    let (mut arguments, mut argument, mut quoted) = (Vec::new(), String::new(), false);
    let mut letters = inner.char_indices().peekable();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '\'' if quoted && letters.next_if(|(_, next)| *next == '\'').is_some() => argument.push('\''),
            '\'' => quoted = !quoted,
            '\\' if quoted => argument.push(letters.next().map_or('\\', |(_, next)| escaped(next))),
            ',' if !quoted => arguments.push(std::mem::take(&mut argument)),
            ')' if !quoted => {
                arguments.push(argument);
                return (name, arguments, inner[at + 1..].to_ascii_lowercase());
            }
            other => argument.push(other),
        }
    }
    (name, arguments, String::new())
}

/// What a letter behind a backslash stands for.
fn escaped(letter: char) -> char {
    match letter {
        '0' => '\0',
        'n' => '\n',
        'r' => '\r',
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_types() {
        for (words, native) in [
            ("int(11)", Native::Integer(-(1 << 31), (1 << 31) - 1)),
            ("bigint(20) unsigned", Native::Integer(0, u64::MAX.into())),
            ("mediumint(8) unsigned zerofill", Native::Integer(0, (1 << 24) - 1)),
            ("decimal(15,2)", Native::Decimal { precision: 15, scale: 2, signed: true }),
            ("float(7,4)", Native::Float { scale: Some(4), signed: true }),
            ("double unsigned", Native::Double { scale: None, signed: false }),
            ("datetime", Native::DateTime(0)),
            ("timestamp(6)", Native::Timestamp(6)),
            ("varchar(20)", Native::Text(Length::Characters(20))),
            ("inet6", Native::Parsed),
            ("enum('a','it''s','x,y)','b\\\\c')", {
                Native::Enum(["a", "it's", "x,y)", "b\\c"].map(Into::into).into())
            }),
            ("set('')", Native::Set(vec![String::new()])),
        ] {
            assert_eq!(Native::of(words), native, "{words}");
        }
    }
}
