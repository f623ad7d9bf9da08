//! The column of a result that parts it: its type, and conditions on it.

use longshore_core::Error;
use longshore_source::NotSplit;

use super::cuts::{Part, Piece, Start};
use crate::connection::Described;
use crate::connection::pipeline::{Answer, Step};
use crate::dialect::{literal, quoted_name};
use crate::session::PostgresSession;
use crate::types::Type;

/// What the wrapped query is called.
pub(super) const PART: &str = "longshore_part";

/// The builtin types with an order, by OID: those with a default operator class of btree, and the two that are read as
/// another.
const ORDERED: &[u32] = &[
    16, 17, 18, 19, 20, 21, 23, 25, 26, 650, 700, 701, 774, 790, 829, 869, 1042, 1043, 1082, 1083, 1114,
    1184, 1186, 1266, 1560, 1562, 1700, 2950, 3220, 3802, 5069,
];

/// Any other type, by its own default operator class or that of all enums.
const LOOKUP: &str = "\
SELECT t.oid::regtype, quote_ident(n.nspname) || '.' || quote_ident(t.typname), \
       (SELECT pg_catalog.json_agg(format('OPERATOR(%I.%s)', s.nspname, o.oprname) ORDER BY a.amopstrategy) \
        FROM pg_catalog.pg_opclass c JOIN pg_catalog.pg_am m ON m.oid = c.opcmethod AND m.amname = 'btree' \
        JOIN pg_catalog.pg_amop a ON a.amopfamily = c.opcfamily AND a.amoppurpose = 's' \
             AND a.amoplefttype = c.opcintype AND a.amoprighttype = c.opcintype \
        JOIN pg_catalog.pg_operator o ON o.oid = a.amopopr JOIN pg_catalog.pg_namespace s ON s.oid = o.oprnamespace \
        WHERE c.opcdefault AND c.opcintype = CASE t.typtype WHEN 'e' THEN 'pg_catalog.anyenum'::regtype ELSE t.oid END) \
FROM pg_catalog.pg_type t JOIN pg_catalog.pg_namespace n ON n.oid = t.typnamespace WHERE t.oid = $1::oid";

/// The operators of an order. Named in full: the search path may lead to others.
#[derive(Debug)]
struct Operators {
    less: String,
    equal: String,
    at_least: String,
    greater: String,
}

/// A column that parts a result.
#[derive(Debug)]
pub(super) struct Key {
    /// Its place among the columns.
    pub(super) index: usize,
    /// The table and attribute that it comes from unchanged; 0 for an expression.
    pub(super) table: u32,
    pub(super) attribute: i16,
    /// Its type's OID.
    pub(super) oid: u32,
    /// What it is called in a wrapped query.
    pub(super) column: String,
    /// Its type, by a name without modifiers whatever the search path.
    pub(super) type_name: String,
    /// Its type as it is read.
    pub(super) native: Type,
    operators: Operators,
}

impl Key {
    /// The column `name` of a query.
    pub(super) fn find(
        session: &mut PostgresSession,
        columns: &[Described],
        name: &str,
    ) -> Result<Self, NotSplit> {
        let mut found = columns.iter().enumerate().filter(|(_, column)| column.name == name);
        let Some((index, column)) = found.next() else {
            return Err(NotSplit::Failed(unknown(columns, name)));
        };
        if found.next().is_some() {
            return Err(NotSplit::Failed(
                Error::interface(format!(
                    "partition_on names {name:?}, and the query returns several of that name"
                ))
                .with_hint("give each column a name of its own with AS"),
            ));
        }
        let native = session.types_of(&[column.oid]).remove(0);
        let (type_name, operators) = match Type::builtin(column.oid) {
            Some(builtin) if ORDERED.contains(&column.oid) => {
                (format!("pg_catalog.{}", quoted_name(&builtin.name)), builtin_operators())
            }
            Some(builtin) => return Err(NotSplit::Failed(without_order(name, &builtin.label()))),
            None => looked_up(session, column)?,
        };
        Ok(Self {
            index,
            table: column.table,
            attribute: column.attribute,
            oid: column.oid,
            column: format!("{PART}.{}", quoted_name(name)),
            type_name,
            native,
            operators,
        })
    }

    /// A value of the key.
    fn value(&self, text: &str) -> String {
        format!("{}::{}", literal(text), self.type_name)
    }

    /// The condition of a part on `column`, which is the key under any name.
    pub(super) fn condition(&self, column: &str, part: &Part) -> String {
        match part {
            Part::Value(value, _) => format!("{column} {} {}", self.operators.equal, self.value(value)),
            Part::Pieces(pieces) => {
                let pieces: Vec<String> = pieces.iter().map(|piece| self.piece(column, piece)).collect();
                pieces.join(" OR ")
            }
        }
    }

    fn piece(&self, column: &str, piece: &Piece) -> String {
        let Operators { less, at_least, greater, .. } = &self.operators;
        let Piece::Range(start, end) = piece else { return format!("{column} IS NULL") };
        let start = start.as_ref().map(|start| match start {
            Start::From(value) => format!("{column} {at_least} {}", self.value(value)),
            Start::After(value) => format!("{column} {greater} {}", self.value(value)),
        });
        let end = end.as_ref().map(|end| format!("{column} {less} {}", self.value(end)));
        match (start, end) {
            (None, None) => format!("{column} IS NOT NULL"),
            (Some(start), Some(end)) => format!("({start} AND {end})"),
            (Some(one), None) | (None, Some(one)) => one,
        }
    }
}

fn builtin_operators() -> Operators {
    let operator = |name: &str| format!("OPERATOR(pg_catalog.{name})");
    Operators { less: operator("<"), equal: operator("="), at_least: operator(">="), greater: operator(">") }
}

fn looked_up(session: &mut PostgresSession, column: &Described) -> Result<(String, Operators), NotSplit> {
    let answers = session.connection.flight(&[Step::run(LOOKUP).bind(&column.oid.to_string())])?;
    let answer = answers.first().map(|answer| (answer.cell(0, 1).to_owned(), operators(answer)));
    match answer {
        Some((name, Some(operators))) => Ok((name, operators)),
        _ => Err(NotSplit::Failed(without_order(&column.name, answers[0].cell(0, 0)))),
    }
}

/// The five operators of a btree's strategies: `<`, `<=`, `=`, `>=`, `>`.
fn operators(answer: &Answer) -> Option<Operators> {
    let names: [String; 5] = serde_json::from_str(answer.cell(0, 2)).ok()?;
    let [less, _, equal, at_least, greater] = names;
    Some(Operators { less, equal, at_least, greater })
}

fn unknown(columns: &[Described], name: &str) -> Error {
    let known: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
    Error::interface(format!("partition_on names {name:?}, which the query does not return"))
        .with_hint(format!("it returns {}", known.join(", ")))
}

fn without_order(name: &str, native: &str) -> Error {
    Error::interface(format!("partition_on names {name:?}, whose type {native} has no order")).with_hint(
        "give a column of numbers, dates, times, text, uuid or another type that can be compared with <",
    )
}
