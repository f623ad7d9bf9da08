//! An existing table: its engine, columns, types and unique indexes; and the server's settings for a write.

use longshore_core::{Error, Result, TableName};
use longshore_source::fit::Decimals;
use longshore_source::sql::{Kind as TokenKind, Token};
use longshore_source::staging::UndoLog;
use longshore_source::table::{Naming, TableColumn};

use crate::connection::Connection;
use crate::dialect::{dialect, literal};
use crate::message;

/// The error of a table that is not there.
const NO_SUCH_TABLE: u16 = 1146;

/// Engines whose rows a transaction can take back.
const TRANSACTIONAL: &[&str] = &["InnoDB", "ROCKSDB", "ndbcluster", "TokuDB"];

pub(super) const NAMING: Naming = Naming {
    dialect: dialect(true),
    // Columns have one name, in whatever case.
    is_same: |a, b| a.to_lowercase() == b.to_lowercase(),
    type_quotes: &[('\'', '\''), ('"', '"'), ('`', '`')],
    missing_table: "42S02",
    existing_table: "42S01",
    missing_column: "42S22",
};

/// The name of a table with its database: the session's own, unless it says another.
pub(crate) fn resolve(connection: &mut Connection, table: &TableName) -> Result<TableName> {
    let schema = match &table.schema {
        Some(schema) => Some(schema.clone()),
        None => connection.value("SELECT DATABASE()")?,
    };
    if schema.is_none() {
        return Err(Error::programming(format!("the table {table} is in no database"))
            .with_hint("name the database in the URL, or before the table: \"database.table\""));
    }
    Ok(TableName { schema, table: table.table.clone() })
}

/// Another table of the same database.
pub(super) fn sibling(name: &TableName, table: String) -> TableName {
    TableName { schema: name.schema.clone(), table }
}

/// A condition on two columns of the catalogue.
pub(crate) fn is(name: &TableName, schema: &str, table: &str) -> String {
    let database = name.schema.as_deref().unwrap_or_default();
    format!("{schema} = {} AND {table} = {}", literal(database), literal(&name.table))
}

/// The object of a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Existing {
    /// A table, with its engine.
    Table(String),
    /// A table that only this session has.
    Temporary(String),
    /// A view, or something else that is not a table.
    Other,
}

/// The object of this name, if there is one.
pub(super) fn existing(connection: &mut Connection, name: &TableName) -> Result<Option<Existing>> {
    Ok(show_create(connection, name)?.map(|(existing, _)| existing))
}

/// The object of this name, if there is one, and the statement that makes it.
fn show_create(connection: &mut Connection, name: &TableName) -> Result<Option<(Existing, String)>> {
    let shown = connection.table(&format!("SHOW CREATE TABLE {}", NAMING.table(name)));
    let (names, rows) = match shown {
        Ok(shown) => shown,
        Err(error) if message::code(&error) == Some(NO_SUCH_TABLE) => return Ok(None),
        Err(error) => return Err(error),
    };
    let text = rows.into_iter().next().and_then(|row| row.into_iter().nth(1)?).unwrap_or_default();
    let is_table = names.first().is_some_and(|name| name == "Table") && !text.starts_with("CREATE SEQUENCE");
    Ok(Some((if is_table { existing_of(&text) } else { Existing::Other }, text)))
}

/// The table that the server's `text` makes.
fn existing_of(text: &str) -> Existing {
    // The options of the table follow its last column or index.
    let options = text.rsplit_once("\n)").map_or(text, |(_, options)| options);
    let engine = options.split_once("ENGINE=").map_or("", |(_, rest)| rest);
    let end = engine.find(|next: char| !next.is_ascii_alphanumeric() && next != '_').unwrap_or(engine.len());
    let engine = engine[..end].to_owned();
    if text.starts_with("CREATE TEMPORARY") { Existing::Temporary(engine) } else { Existing::Table(engine) }
}

/// Whether the rows of one statement do what one statement for each would do, where its rows give values to `columns`, or
/// to all: an error takes all of them back, and no row's own number depends on those before. Triggers are not looked at.
pub(crate) fn takes_rows_at_once(
    connection: &mut Connection,
    name: &TableName,
    columns: &[String],
) -> Result<bool> {
    let Some((Existing::Table(engine) | Existing::Temporary(engine), text)) = show_create(connection, name)?
    else {
        return Ok(false);
    };
    if !is_transactional(&engine) {
        return Ok(false);
    }
    let scanned = dialect(connection.escapes()).tokens(&text);
    let is_counter = |pair: &[Token<'_>]| pair[0].is_word("auto_increment") && !pair[1].is_mark("=");
    let Some(at) = scanned.windows(2).position(is_counter) else { return Ok(true) };
    // Its name is the last before the word: a type has none.
    let counted = scanned[..at].iter().rev().find(|token| token.kind == TokenKind::Quoted);
    let counted = counted.and_then(|token| NAMING.dialect.name(token));
    Ok(counted.is_some_and(|counted| {
        !columns.is_empty() && !columns.iter().any(|column| (NAMING.is_same)(column, &counted))
    }))
}

/// Refuses a table that is missing, or whose rows cannot be taken back after a failure.
pub(super) fn check(name: &TableName, existing: Option<&Existing>) -> Result<()> {
    match existing {
        None => Err(NAMING.no_table(name)),
        Some(Existing::Other) => Err(Error::not_supported(format!("{name} is not a table"))
            .with_hint("name the table that a view shows, or another name")),
        Some(Existing::Table(engine) | Existing::Temporary(engine)) if !is_transactional(engine) => {
            Err(Error::not_supported(format!("{name} has the engine {engine}, which takes no row back"))
                .with_hint(
                    "a failure would leave some of the rows: ALTER TABLE ... ENGINE=InnoDB first, or use \
                            if_exists=\"replace\"",
                ))
        }
        Some(_) => Ok(()),
    }
}

fn is_transactional(engine: &str) -> bool {
    TRANSACTIONAL.iter().any(|known| known.eq_ignore_ascii_case(engine))
}

/// A column of a table.
#[derive(Clone, Debug)]
pub(super) struct Column {
    pub(super) name: String,
    /// Its type in the server's words.
    pub(super) words: String,
    pub(super) native: Native,
    pub(super) collation: Option<String>,
    pub(super) nullable: bool,
    pub(super) otherwise: Otherwise,
}

/// The value that a column has in a row that does not give it a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Otherwise {
    /// NULL, where it may be, or else nothing.
    Nothing,
    Default,
    /// The next number.
    Counted,
    /// A value that the server makes of other columns, whatever a row gives.
    Generated,
}

impl TableColumn for Column {
    fn name(&self) -> &str {
        &self.name
    }

    fn is_generated(&self) -> bool {
        self.otherwise == Otherwise::Generated
    }
}

impl Column {
    /// Whether a row need not give it a value.
    pub(super) fn is_optional(&self) -> bool {
        self.nullable || self.otherwise != Otherwise::Nothing
    }
}

/// The columns of the table, in its own order.
pub(super) fn columns(connection: &mut Connection, name: &TableName) -> Result<Vec<Column>> {
    let shown = format!("SHOW FULL COLUMNS FROM {}", NAMING.table(name));
    let rows =
        connection.cells_by_name(&shown, ["Field", "Type", "Collation", "Null", "Default", "Extra"])?;
    let column = |[name, words, collation, null, default, extra]: [Option<String>; 6]| {
        let (words, extra) = (words.unwrap_or_default(), extra.unwrap_or_default().to_ascii_uppercase());
        let nullable = null.is_none_or(|null| null.eq_ignore_ascii_case("yes"));
        let is_generated = ["VIRTUAL", "STORED", "PERSISTENT"].iter().any(|word| extra.contains(word));
        let otherwise = match default {
            _ if is_generated => Otherwise::Generated,
            _ if extra.contains("AUTO_INCREMENT") => Otherwise::Counted,
            Some(_) => Otherwise::Default,
            None => Otherwise::Nothing,
        };
        Column {
            name: name.unwrap_or_default(),
            native: Native::of(&words),
            words,
            collation,
            nullable,
            otherwise,
        }
    };
    Ok(rows.into_iter().map(column).collect())
}

/// A unique index.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Index {
    pub(super) name: String,
    pub(super) columns: Vec<String>,
    /// Whether it looks at the whole of its columns, and at nothing else.
    pub(super) is_whole: bool,
}

/// The unique indexes of the table.
pub(super) fn unique_indexes(connection: &mut Connection, name: &TableName) -> Result<Vec<Index>> {
    let shown = format!("SHOW INDEX FROM {}", NAMING.table(name));
    let rows = connection.cells_by_name(&shown, ["Non_unique", "Key_name", "Column_name", "Sub_part"])?;
    let mut indexes: Vec<Index> = Vec::new();
    for [other, name, column, part] in rows {
        if other.as_deref() != Some("0") {
            continue;
        }
        let name = name.unwrap_or_default();
        if indexes.last().is_none_or(|last| last.name != name) {
            indexes.push(Index { name, columns: Vec::new(), is_whole: true });
        }
        let Some(index) = indexes.last_mut() else { continue };
        index.is_whole &= part.is_none() && column.is_some();
        index.columns.extend(column);
    }
    Ok(indexes)
}

/// The kind of values that a column takes.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Native {
    /// The least and the greatest.
    Integer(i128, i128),
    Decimal(Decimals),
    /// The digits behind the point, where the server rounds to so many.
    Float {
        single: bool,
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
    Char(usize),
    Bytes(usize),
    /// BINARY, which is filled up with zeros.
    Binary(usize),
    Enum(Vec<String>),
    Set(Vec<String>),
    Json,
    Uuid,
    /// A value that the server parses itself from text.
    Parsed,
}

/// The most that a text may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Length {
    Characters(usize),
    Bytes(usize),
}

impl Native {
    /// The type of the words that `SHOW COLUMNS` has for it.
    pub(super) fn of(words: &str) -> Self {
        let (name, arguments, rest) = parts_of_type(words);
        let signed = !rest.contains("unsigned") && !rest.contains("zerofill");
        let number = |index: usize| arguments.get(index).and_then(|text| text.trim().parse::<usize>().ok());
        let small = |index: usize| number(index).and_then(|number| u8::try_from(number).ok());
        let fraction = small(0).unwrap_or(0);
        match name.as_str() {
            "tinyint" => integer(8, signed),
            "smallint" => integer(16, signed),
            "mediumint" => integer(24, signed),
            "int" | "integer" => integer(32, signed),
            "bigint" => integer(64, signed),
            "decimal" | "numeric" => Self::Decimal(Decimals {
                precision: small(0).unwrap_or(10).into(),
                scale: small(1).unwrap_or(0).into(),
                is_signed: signed,
            }),
            "float" => Self::Float { single: true, scale: small(1), signed },
            "double" | "real" => Self::Float { single: false, scale: small(1), signed },
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
            | "multipolygon" | "geometrycollection" | "geomcollection" | "vector" => Self::Bytes(usize::MAX),
            _ => Self::Parsed,
        }
    }
}

fn integer(bits: u32, signed: bool) -> Native {
    let half = 1_i128 << (bits - 1);
    if signed { Native::Integer(-half, half - 1) } else { Native::Integer(0, 2 * half - 1) }
}

/// Name, arguments and what follows them. Labels lose their quotes.
fn parts_of_type(words: &str) -> (String, Vec<String>, String) {
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
            '\\' if quoted => argument.push(letters.next().map_or('\\', |(_, next)| unescape(next))),
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

/// The byte that a letter behind a backslash stands for.
fn unescape(letter: char) -> char {
    match letter {
        '0' => '\0',
        'n' => '\n',
        'r' => '\r',
        other => other,
    }
}

/// Rows are refused, not changed; a 0 does not ask for a number; and quotes and backslashes mean one thing.
const MODES: &str = "STRICT_ALL_TABLES,NO_AUTO_VALUE_ON_ZERO,NO_ENGINE_SUBSTITUTION";

/// The server, and its session's own settings.
#[derive(Clone, Debug)]
pub(super) struct Server {
    pub(super) is_mariadb: bool,
    version: (u32, u32, u32),
    pub(super) takes_files: bool,
    pub(super) max_packet: usize,
}

impl Server {
    /// A server of which no more than the version is known.
    pub(super) fn of(version: &str) -> Self {
        let is_mariadb = version.contains("MariaDB");
        Self { is_mariadb, version: numbers(version), takes_files: false, max_packet: 1 << 20 }
    }

    /// Asks, and then sets what a write needs, until its end.
    pub(super) fn begin(connection: &mut Connection, log: &mut UndoLog) -> Result<Self> {
        let rows = connection.rows("SELECT VERSION(), @@sql_mode, @@local_infile, @@max_allowed_packet")?;
        let Some([Some(version), modes, files, max_packet]) = rows.first().map(Vec::as_slice) else {
            return Err(Error::internal("the server says nothing of itself"));
        };
        let mut server = Self::of(version);
        server.takes_files = connection.offers_files() && files.as_deref() == Some("1");
        if let Some(bytes) = max_packet.as_deref().and_then(|text| text.parse().ok()) {
            server.max_packet = bytes;
        }
        log.at_end(format!("SET sql_mode = {}", literal(modes.as_deref().unwrap_or_default())));
        connection.run(&format!("SET sql_mode = '{MODES}'"))?;
        Ok(server)
    }

    /// The collation of a new table: texts that differ in anything are different.
    pub(super) fn collation(&self) -> &'static str {
        match (self.is_mariadb, self.version) {
            (true, _) => "utf8mb4_nopad_bin",
            (false, (8, 0, 17..) | (8, 1.., _) | (9.., ..)) => "utf8mb4_0900_bin",
            (false, _) => "utf8mb4_bin",
        }
    }

    pub(super) fn uuid(&self) -> &'static str {
        match (self.is_mariadb, self.version) {
            (true, (10, 7.., _) | (11.., ..)) => "UUID",
            _ => "BINARY(16)",
        }
    }

    /// The most digits behind the point of a DECIMAL.
    pub(super) fn most_decimals(&self) -> i16 {
        if self.is_mariadb { 38 } else { 30 }
    }
}

/// The first three numbers of a version.
fn numbers(version: &str) -> (u32, u32, u32) {
    let mut parts =
        version.split(|letter: char| !letter.is_ascii_digit()).map(|part| part.parse().unwrap_or(0));
    let mut next = || parts.next().unwrap_or(0);
    (next(), next(), next())
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
            ("decimal(15,2)", Native::Decimal(Decimals { precision: 15, scale: 2, is_signed: true })),
            ("float(7,4)", Native::Float { single: true, scale: Some(4), signed: true }),
            ("double unsigned", Native::Float { single: false, scale: None, signed: false }),
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

    #[test]
    fn versions_are_numbers() {
        assert_eq!(numbers("10.11.6-MariaDB-0+deb12u1-log"), (10, 11, 6));
        assert_eq!(numbers("8.0.15"), (8, 0, 15));
        assert_eq!(numbers("nothing"), (0, 0, 0));
    }
}
