//! The facts that only the server's catalogue tells: user-defined types, and which columns are NOT NULL.
//!
//! Asked between `Parse` and `Bind`, and cached for one read: others may alter what they like between two.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use longshore_core::Result;

use crate::connection::{Connection, Described, TextRow};
use crate::types::{Attribute, Class, Kind, Type, class, element_of};

/// Types inside types deeper than this arrive as text.
const DEPTH: usize = 32;

/// Fields that one type may have in all its parts, beyond which the rest arrives as text.
const FIELDS: usize = 4096;

/// One row per type, per enum label and per field of a composite, each with what it refers to.
const TYPES: &str = "\
SELECT 't', t.oid, format_type(t.oid, NULL), t.typtype, \
       CASE WHEN t.typtype = 'd' THEN t.typbasetype WHEN t.typcategory = 'A' THEN t.typelem \
            WHEN t.typtype = 'r' THEN (SELECT rngsubtype FROM pg_catalog.pg_range WHERE rngtypid = t.oid) \
            ELSE 0 END, \
       t.typtypmod, e.typdelim, 0::float8, t.typname, \
       (SELECT x.extname FROM pg_catalog.pg_depend d \
        JOIN pg_catalog.pg_extension x ON d.refclassid = 'pg_catalog.pg_extension'::regclass AND x.oid = d.refobjid \
        WHERE d.classid = 'pg_catalog.pg_type'::regclass AND d.objid = t.oid AND d.deptype = 'e') \
FROM pg_catalog.pg_type t LEFT JOIN pg_catalog.pg_type e ON e.oid = t.typelem AND t.typcategory = 'A' \
WHERE t.oid = ANY ($1::oid[]) \
UNION ALL \
SELECT 'e', enumtypid, enumlabel, NULL, 0, 0, NULL, enumsortorder, NULL, NULL \
FROM pg_catalog.pg_enum WHERE enumtypid = ANY ($1::oid[]) \
UNION ALL \
SELECT 'f', t.oid, a.attname, NULL, a.atttypid, a.atttypmod, NULL, a.attnum, NULL, NULL \
FROM pg_catalog.pg_type t JOIN pg_catalog.pg_attribute a ON a.attrelid = t.typrelid \
WHERE t.oid = ANY ($1::oid[]) AND t.typtype = 'c' AND a.attnum > 0 AND NOT a.attisdropped \
ORDER BY 8";

/// A NOT NULL counts where every row obeys it: not on foreign tables, not on parents whose children may differ,
/// and not while the constraint is not validated (version 18).
const COLUMNS: &str = "\
SELECT a.attrelid, a.attnum, a.attndims, \
       a.attnotnull AND (c.relkind = 'p' OR c.relkind = 'r' AND NOT c.relhassubclass) AND NOT EXISTS ( \
           SELECT FROM pg_catalog.pg_constraint n WHERE n.conrelid = a.attrelid AND n.contype = 'n' \
           AND NOT n.convalidated AND n.conkey = ARRAY[a.attnum]) \
FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_class c ON c.oid = a.attrelid \
WHERE a.attrelid = ANY ($1::oid[]) AND a.attnum > 0";

/// The facts that the catalogue says of one type.
#[derive(Debug)]
enum Entry {
    Other { name: String },
    Array { element: u32, delimiter: u8 },
    Domain { base: u32, modifier: i32 },
    Enum { name: String, labels: Arc<[String]> },
    Composite { name: String, fields: Vec<(String, u32, i32)> },
    Range { name: String, bound: u32 },
    Extension { name: String, class: Class },
}

/// The facts that the catalogue says of one column of a table.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ColumnFacts {
    pub(crate) not_null: bool,
    pub(crate) dimensions: usize,
}

/// The facts of the catalogue that a statement needs.
#[derive(Debug)]
pub(crate) struct Needs {
    types: Vec<u32>,
    /// How often types were asked for: those inside others come a level at a time.
    rounds: usize,
}

impl Needs {
    pub(crate) fn of(columns: &[Described], parameters: &[u32]) -> Self {
        let mut types: Vec<u32> = columns.iter().map(|column| column.oid).collect();
        // A parameter of type 0 is one that the server leaves open.
        types.extend(parameters.iter().filter(|oid| **oid != 0));
        Self { types, rounds: 0 }
    }
}

/// One statement to the catalogue, by the OIDs that it asks about.
#[derive(Debug)]
pub(crate) enum Question {
    Types(Vec<u32>),
    Tables(Vec<u32>),
}

impl Question {
    pub(crate) fn text(&self) -> &'static str {
        match self {
            Self::Types(_) => TYPES,
            Self::Tables(_) => COLUMNS,
        }
    }

    /// The OIDs as a literal.
    pub(crate) fn parameter(&self) -> String {
        let (Self::Types(oids) | Self::Tables(oids)) = self;
        let oids: Vec<String> = oids.iter().map(u32::to_string).collect();
        format!("{{{}}}", oids.join(","))
    }
}

/// The catalogue as far as this connection has asked for it.
#[derive(Debug, Default)]
pub(crate) struct Catalogue {
    types: HashMap<u32, Entry>,
    columns: HashMap<(u32, i16), ColumnFacts>,
    /// The tables whose columns are known.
    tables: HashSet<u32>,
    /// Tables without NOT NULL and arrays in an earlier read. A NOT NULL that one has got since may be missed: its column is
    /// nullable, as for any query that is not plain.
    plain_tables: HashSet<u32>,
    /// A server that only speaks the wire has no catalogue: its types are the builtin ones or text.
    absent: bool,
}

impl Catalogue {
    /// Forgets what other sessions may have changed.
    pub(crate) fn forget(&mut self) {
        self.types.clear();
        for ((table, _), facts) in &self.columns {
            if facts.not_null || facts.dimensions > 0 {
                self.tables.remove(table);
            }
        }
        self.plain_tables.extend(self.tables.drain());
        self.columns.clear();
    }

    /// Forgets what a statement of this session's may have changed: its owner counts on seeing that.
    pub(crate) fn forget_all(&mut self) {
        *self = Self { absent: self.absent, ..Self::default() };
    }

    /// The server could not answer: do not ask again.
    pub(crate) fn give_up(&mut self) {
        self.absent = true;
    }

    /// Whether the server has not yet failed to answer like PostgreSQL.
    pub(crate) fn is_present(&self) -> bool {
        !self.absent
    }

    /// Asks for whatever `columns` and `parameters` need and is not known yet.
    pub(crate) fn load(
        &mut self,
        connection: &mut Connection,
        columns: &[Described],
        parameters: &[u32],
    ) -> Result<()> {
        let mut needs = Needs::of(columns, parameters);
        while let Some(question) = self.question(&mut needs, columns) {
            let rows = connection.lookup(question.text(), &question.parameter())?;
            self.answer(&mut needs, question, rows);
        }
        Ok(())
    }

    /// The next question, until everything is known.
    pub(crate) fn question(&self, needs: &mut Needs, columns: &[Described]) -> Option<Question> {
        if self.absent {
            return None;
        }
        needs.types.retain(|oid| !self.is_known(*oid));
        needs.types.sort_unstable();
        needs.types.dedup();
        if !needs.types.is_empty() && needs.rounds < DEPTH {
            needs.rounds += 1;
            return Some(Question::Types(std::mem::take(&mut needs.types)));
        }
        let unknown = columns.iter().filter(|column| self.must_ask(column)).map(|column| column.table);
        let unknown: Vec<u32> = unknown.collect::<HashSet<_>>().into_iter().collect();
        (!unknown.is_empty()).then_some(Question::Tables(unknown))
    }

    /// Files the rows that the server has answered with.
    pub(crate) fn answer(&mut self, needs: &mut Needs, question: Question, rows: Vec<TextRow>) {
        match question {
            Question::Types(asked) => needs.types = self.take_types(&asked, rows),
            Question::Tables(asked) => self.take_tables(asked, &rows),
        }
    }

    fn is_known(&self, oid: u32) -> bool {
        class(oid).is_some() || element_of(oid).is_some() || self.types.contains_key(&oid)
    }

    fn take_tables(&mut self, asked: Vec<u32>, rows: &[TextRow]) {
        for row in rows {
            let key = (number(row, 0), number(row, 1));
            let facts = ColumnFacts { not_null: text(row, 3) == "t", dimensions: number(row, 2) };
            self.columns.insert(key, facts);
        }
        self.tables.extend(asked);
    }

    fn must_ask(&self, column: &Described) -> bool {
        // An array may have dimensions.
        let is_plain = self.plain_tables.contains(&column.table) && class(column.oid).is_some();
        column.table != 0 && !self.tables.contains(&column.table) && !is_plain
    }

    /// Files the rows of a lookup; returns the types that they refer to.
    fn take_types(&mut self, asked: &[u32], rows: Vec<TextRow>) -> Vec<u32> {
        let mut references = Vec::new();
        let mut parts: HashMap<u32, Vec<(String, u32, i32)>> = HashMap::new();
        let mut heads = HashMap::new();
        for row in rows {
            let oid: u32 = number(&row, 1);
            references.push(number(&row, 4));
            if text(&row, 0) == "t" {
                heads.insert(oid, row);
            } else {
                parts.entry(oid).or_default().push((
                    text(&row, 2).to_owned(),
                    number(&row, 4),
                    modifier(&row),
                ));
            }
        }
        for oid in asked {
            let parts = parts.remove(oid).unwrap_or_default();
            let entry = heads
                .remove(oid)
                .map_or_else(|| Entry::Other { name: format!("type {oid}") }, |head| entry(&head, parts));
            self.types.insert(*oid, entry);
        }
        references.retain(|oid| *oid != 0);
        references
    }

    /// The type of `oid`, resolved down to builtin ones.
    pub(crate) fn type_of(&self, oid: u32, modifier: i32) -> Type {
        self.resolve(oid, modifier, 0, &mut FIELDS.clone())
    }

    /// `budget` is what is left of [`FIELDS`]: composites of composites grow with a power of their depth.
    fn resolve(&self, oid: u32, modifier: i32, depth: usize, budget: &mut usize) -> Type {
        if let Some(builtin) = Type::builtin(oid) {
            return builtin.with_modifier(modifier);
        }
        let Some(entry) = self.types.get(&oid).filter(|_| depth < DEPTH && *budget > 0) else {
            return Type::text_only(format!("type {oid}"));
        };
        let of = |name: &str, kind: Kind| Type { name: name.to_owned(), kind, modifier: -1 };
        match entry {
            Entry::Other { name } => Type::text_only(name),
            Entry::Array { element, delimiter } => {
                Type::array_of(self.resolve(*element, -1, depth + 1, budget), *delimiter)
                    .with_modifier(modifier)
            }
            // The domain's own modifier wins: a domain has none of its column.
            Entry::Domain { base, modifier } => self.resolve(*base, *modifier, depth + 1, budget),
            Entry::Enum { name, labels } => of(name, Kind::Enum(labels.clone())),
            Entry::Range { name, bound } => {
                of(name, Kind::Range(Arc::new(self.resolve(*bound, -1, depth + 1, budget))))
            }
            Entry::Extension { name, class } => of(name, Kind::Plain(*class)).with_modifier(modifier),
            Entry::Composite { name, fields } => {
                let mut attributes = Vec::with_capacity(fields.len());
                for (name, oid, modifier) in fields {
                    *budget = budget.saturating_sub(1);
                    let native = self.resolve(*oid, *modifier, depth + 1, budget);
                    attributes.push(Attribute { name: name.clone(), oid: *oid, native });
                }
                of(name, Kind::Composite(attributes.into()))
            }
        }
    }

    /// The facts of the table column behind `column`.
    pub(crate) fn facts(&self, column: &Described) -> ColumnFacts {
        self.columns.get(&(column.table, column.attribute)).copied().unwrap_or_default()
    }
}

fn entry(head: &TextRow, parts: Vec<(String, u32, i32)>) -> Entry {
    let name = text(head, 2).to_owned();
    match text(head, 3) {
        "e" => Entry::Enum { name, labels: parts.into_iter().map(|(label, ..)| label).collect() },
        "c" => Entry::Composite { name, fields: parts },
        "d" => Entry::Domain { base: number(head, 4), modifier: modifier(head) },
        "r" => Entry::Range { name, bound: number(head, 4) },
        "b" if number::<u32>(head, 4) != 0 => {
            Entry::Array { element: number(head, 4), delimiter: text(head, 6).bytes().next().unwrap_or(b',') }
        }
        _ => match Class::of_extension(text(head, 9), text(head, 8)) {
            Some(class) => Entry::Extension { name, class },
            None => Entry::Other { name },
        },
    }
}

fn modifier(row: &TextRow) -> i32 {
    text(row, 5).parse().unwrap_or(-1)
}

fn text(row: &TextRow, index: usize) -> &str {
    row.get(index).and_then(Option::as_deref).unwrap_or_default()
}

/// A number of the catalogue; what does not parse is 0, which names nothing.
fn number<T: std::str::FromStr + Default>(row: &TextRow, index: usize) -> T {
    text(row, index).parse().unwrap_or_default()
}
