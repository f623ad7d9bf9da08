//! The column by whose values a query is split, its bounds, and the conditions of the parts.
//!
//! The server compares, in the column's own collation. Each part takes what all parts before it have left, so that the
//! parts are disjoint and exhaustive whatever the order of the bounds is.

use longshore_core::{Query, Result, Value};
use longshore_source::NotSplit;
use longshore_source::split::{
    Scalar, days, even_points, key_column, microseconds, ranges_with_null, real, unfit_range, whole,
    without_order,
};

use super::statement::Statement;
use crate::describe::describe;
use crate::dialect::{DIALECT, bind, literal};
use crate::encode::{parameter, parameters, text};
use crate::session::MsSqlSession;
use crate::temporal::{DAY, write_date, write_datetime};
use crate::types::{Class, Type};

/// The first column of a table's clustered index.
const CLUSTERED: &str = "SELECT c.name FROM sys.indexes AS i JOIN sys.index_columns AS k ON k.object_id = i.object_id \
     AND k.index_id = i.index_id JOIN sys.columns AS c ON c.object_id = k.object_id AND c.column_id = k.column_id \
     WHERE i.object_id = OBJECT_ID(@table) AND i.type = 1 AND k.key_ordinal = 1";

/// A column that parts a result.
#[derive(Debug)]
pub(super) struct Key {
    /// Its name in the conditions.
    column: String,
    native: Type,
    /// Whether the conditions stand within the query, which may not return the column.
    is_within: bool,
}

impl Key {
    /// The column `name` of the result.
    pub(super) fn of_result(
        session: &mut MsSqlSession,
        statement: &Statement<'_>,
        name: &str,
    ) -> Result<Self, NotSplit> {
        let columns = describe(&mut session.connection, &statement.query(statement.text.to_owned()))?;
        let at =
            key_column(columns.iter().map(|column| column.name.as_str()), name).map_err(NotSplit::Failed)?;
        let native = Type::of(&columns[at]).map_err(NotSplit::Failed)?;
        if matches!(native.class, Class::Xml | Class::Json | Class::Vector(_) | Class::Variant)
            || has_no_order(&native.label)
        {
            return Err(NotSplit::Failed(without_order(name, &native.label)));
        }
        Ok(Self { column: DIALECT.quoted_name(name), native, is_within: false })
    }

    /// The first column of the clustered index of the one table that `statement` reads.
    pub(super) fn of_table(session: &mut MsSqlSession, statement: &Statement<'_>) -> Result<Self, NotSplit> {
        let table = statement.one_table()?;
        let asked = vec![parameter("@table", text(table.name()))];
        let rows = session.connection.table(CLUSTERED, asked)?;
        let Some(name) = rows.into_iter().flatten().flatten().next() else {
            return Err(NotSplit::because("the table has no clustered index; give partition_on"));
        };
        let column = format!("{}.{}", table.alias, DIALECT.quoted_name(&name));
        let query = statement.query(table.rows(&format!("{column} AS k")));
        let columns = describe(&mut session.connection, &query)?;
        let native = columns.first().map(Type::of).transpose()?;
        let native = native.ok_or_else(|| NotSplit::because("the clustered index is not of a column"))?;
        Ok(Self { column, native, is_within: true })
    }

    /// The part of the rows for which `condition` holds.
    pub(super) fn part(&self, statement: &Statement<'_>, condition: &str) -> Query {
        let text = match statement.one_table() {
            Ok(table) if self.is_within => table.over(table.table(), Some(condition)),
            _ => statement.around("*", condition),
        };
        statement.query(text)
    }

    /// The conditions of the parts between the `bounds`.
    pub(super) fn conditions(&self, bounds: &[String]) -> Vec<String> {
        ranges_with_null(&self.column, bounds, "1 = 1", "IS NULL")
    }

    /// The bounds of about `number` parts, in the words of the server.
    pub(super) fn bounds(
        &self,
        session: &mut MsSqlSession,
        statement: &Statement<'_>,
        range: Option<&(Value, Value)>,
        number: usize,
    ) -> Result<Vec<String>, NotSplit> {
        if let Some(range) = range {
            return self.between(range, number).map_err(NotSplit::Failed);
        }
        let values = match statement.one_table() {
            Ok(table) if self.is_within => table.rows(&format!("{} AS k", self.column)),
            _ => statement.around(&format!("{} AS k", self.column), "1 = 1"),
        };
        if is_integer(self.native.class) {
            return self.ends(session, statement, &values, number);
        }
        self.quantiles(session, statement, &values, number)
    }

    /// Bounds of equal width between the lowest and the highest value.
    fn ends(
        &self,
        session: &mut MsSqlSession,
        statement: &Statement<'_>,
        values: &str,
        number: usize,
    ) -> Result<Vec<String>, NotSplit> {
        let text = over(values, "CAST(MIN(k) AS nvarchar(20)), CAST(MAX(k) AS nvarchar(20))", "");
        let rows = ask(session, &statement.query(text))?;
        let end = |at: usize| rows.first()?.get(at)?.as_ref()?.parse::<i128>().ok();
        let (Some(low), Some(high)) = (end(0), end(1)) else { return Err(NotSplit::Small) };
        Ok(self.points(Scalar::Steps(low), Scalar::Steps(high), number)?)
    }

    /// The lowest value of each of as many parts of one size.
    fn quantiles(
        &self,
        session: &mut MsSqlSession,
        statement: &Statement<'_>,
        values: &str,
        number: usize,
    ) -> Result<Vec<String>, NotSplit> {
        let shown = match self.native.class {
            Class::Bytes => "CONVERT(nvarchar(max), MIN(k), 1)",
            // Seventeen digits, which are the same number.
            Class::Float | Class::Double => "CONVERT(nvarchar(max), MIN(k), 3)",
            Class::Date | Class::Time(_) | Class::DateTime(_) | Class::DateTimeOffset(_) => {
                "CONVERT(nvarchar(max), MIN(k), 126)"
            }
            _ => "CAST(MIN(k) AS nvarchar(max))",
        };
        let tiles =
            over(values, &format!("k, NTILE({number}) OVER (ORDER BY k) AS tile"), "WHERE k IS NOT NULL");
        let text = over(&tiles, shown, "GROUP BY tile ORDER BY tile");
        let rows = ask(session, &statement.query(text))?;
        let values = rows.into_iter().skip(1).filter_map(|row| row.into_iter().next().flatten());
        let mut bounds: Vec<String> = values.map(|value| self.bound(&value)).collect();
        bounds.dedup();
        Ok(bounds)
    }

    /// A value's text as one of the key's type.
    fn bound(&self, text: &str) -> String {
        let label = &self.native.label;
        match self.native.class {
            Class::Bytes if label == "rowversion" => format!("CONVERT(binary(8), {}, 1)", literal(text)),
            Class::Bytes => format!("CONVERT({label}, {}, 1)", literal(text)),
            _ => format!("CAST({} AS {label})", literal(text)),
        }
    }

    /// Bounds of equal width between two values that the caller gives.
    fn between(&self, (low, high): &(Value, Value), number: usize) -> Result<Vec<String>> {
        let scalar = |value: &Value| match (self.native.class, value) {
            (Class::Date, value) => days(value).map(Scalar::Steps),
            (Class::DateTime(_), value) => microseconds(value).map(Scalar::Steps),
            (Class::DateTimeOffset(_), Value::TimestampTz(at)) => Some(Scalar::Steps(i128::from(*at))),
            (Class::Float | Class::Double, value) => real(value).map(Scalar::Real),
            (class, value) if is_integer(class) || matches!(class, Class::Decimal(..)) => {
                whole(value).map(Scalar::Steps)
            }
            _ => None,
        };
        let (low, high) = scalar(low).zip(scalar(high)).ok_or_else(|| unfit_range(&self.native.label))?;
        self.points(low, high, number)
    }

    fn points(&self, low: Scalar, high: Scalar, number: usize) -> Result<Vec<String>> {
        let points = even_points(low, high, number, |point| point)?;
        Ok(points.into_iter().filter_map(|point| self.point(point)).collect())
    }

    /// A point between two values in a condition; `None` where the server has no such value.
    fn point(&self, point: Scalar) -> Option<String> {
        let mut written = Vec::new();
        match (self.native.class, point) {
            (Class::Date, Scalar::Steps(at)) => write_date(i64::try_from(at).ok()?, &mut written),
            (Class::DateTime(scale), Scalar::Steps(at)) => {
                // Whole milliseconds: every one of the types has them.
                let ticks = i64::try_from(at).ok()?.checked_mul(10)?.div_euclid(10_000) * 10_000;
                write_datetime(
                    ticks.div_euclid(DAY) * DAY + ticks.rem_euclid(DAY),
                    scale.min(3),
                    &mut written,
                );
            }
            (Class::DateTimeOffset(_), Scalar::Steps(at)) => {
                write_datetime(i64::try_from(at).ok()?.checked_mul(10)?, 6, &mut written);
                written.extend_from_slice(b" +00:00");
            }
            (_, Scalar::Steps(at)) => return Some(at.to_string()),
            (_, Scalar::Real(at)) => return Some(format!("{at:e}")),
        }
        let text = String::from_utf8(written).ok()?.replacen(
            ' ',
            "T",
            usize::from(self.native.class != Class::Date),
        );
        Some(self.bound(&text.replace("T+", " +")))
    }
}

/// `expressions` over the rows of `query`, which may begin with common table expressions.
fn over(query: &str, expressions: &str, rest: &str) -> String {
    let select =
        DIALECT.outermost(query).and_then(|tokens| tokens.into_iter().find(|token| token.is_word("select")));
    let (before, select) = query.split_at(select.map_or(0, |token| token.start));
    format!("{before}SELECT {expressions} FROM (\n{select}\n) AS longshore_keys {rest}").trim_end().to_owned()
}

fn ask(session: &mut MsSqlSession, query: &Query) -> Result<Vec<Vec<Option<String>>>> {
    let bound = bind(&query.text, &query.params)?;
    let parameters = parameters(&bound)?;
    session.connection.table(&bound.text, parameters)
}

fn is_integer(class: Class) -> bool {
    matches!(class, Class::UInt8 | Class::Int16 | Class::Int32 | Class::Int64)
}

fn has_no_order(label: &str) -> bool {
    matches!(label, "text" | "ntext" | "image" | "bit" | "geometry" | "geography")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(class: Class, label: &str) -> Key {
        Key { column: "k".into(), native: Type { class, label: label.into() }, is_within: false }
    }

    #[test]
    fn each_part_takes_what_is_left() {
        let conditions = key(Class::Int64, "bigint").conditions(&["5".into(), "9".into()]);
        assert_eq!(conditions, ["k < 5", "k >= 5 AND k < 9", "(k >= 5 AND k >= 9 OR k IS NULL)"]);
        assert_eq!(key(Class::Int64, "bigint").conditions(&[]), ["(1 = 1 OR k IS NULL)"]);
    }

    #[test]
    fn points_are_values_of_the_keys_type() {
        let point = |class, label: &str, at| key(class, label).point(Scalar::Steps(at));
        assert_eq!(point(Class::Int64, "bigint", -7), Some("-7".into()));
        assert_eq!(point(Class::Date, "date", 1), Some("CAST(N'1970-01-02' AS date)".into()));
        let expected = "CAST(N'1970-01-01T00:00:01.500' AS datetime)";
        assert_eq!(point(Class::DateTime(3), "datetime", 1_500_000), Some(expected.into()));
        let expected = "CAST(N'1970-01-01T00:00:01.500000 +00:00' AS datetimeoffset(7))";
        assert_eq!(point(Class::DateTimeOffset(7), "datetimeoffset(7)", 1_500_000), Some(expected.into()));
        assert_eq!(key(Class::Bytes, "rowversion").bound("0x01"), "CONVERT(binary(8), N'0x01', 1)");
    }

    #[test]
    fn queries_are_written_around_common_table_expressions() {
        assert_eq!(
            over("WITH c AS (SELECT 1 AS k) SELECT k FROM c", "MIN(k)", ""),
            "WITH c AS (SELECT 1 AS k) SELECT MIN(k) FROM (\nSELECT k FROM c\n) AS longshore_keys"
        );
    }
}
