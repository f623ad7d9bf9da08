//! Results over another client's connection, such as asyncpg's: it sends what is asked for here, and hands over what comes.
//!
//! A statement's description comes first, then the answers to a [`TypeLookup`], and then the rows of an [`Arrival`]; the
//! table of types, the catalogue and the decoders are those of a session.

mod port;
mod splitter;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use longshore_core::memory::try_reserve;
use longshore_core::{Batches, Collected, Column, Error, Finaliser, Protocol, ReadOptions, Result, Value};
use longshore_source::sql::{Kind as TokenKind, POSTGRESQL};

use crate::catalogue::{Catalogue, Needs, Question};
use crate::columns::{ResultColumn, result_columns};
use crate::connection::message::{HEADER, Reader};
use crate::connection::{Described, TextRow, row_description, text_row};
use crate::encode;
use crate::rows::{RowReader, check_count, index_row};
use crate::session::no_result;
use crate::types::Format;

pub use port::{Port, RowSink};
pub use splitter::{Piece, Splitter, Wanted};

/// Whether text has every digit of a float: since version 12 at 1, before it at 3.
const EXACT_FLOATS: &str = "\
SELECT pg_catalog.current_setting('extra_float_digits')::int4 >= \
CASE WHEN pg_catalog.current_setting('server_version_num')::int4 >= 120000 THEN 1 ELSE 3 END";

/// The catalogue as far as a connection has asked for it, for all its statements.
#[derive(Clone, Debug, Default)]
pub struct TypeCache(Arc<Mutex<Catalogue>>);

impl TypeCache {
    fn catalogue(&self) -> MutexGuard<'_, Catalogue> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets it: it may have changed.
    pub fn forget(&self) {
        self.catalogue().forget_all();
    }
}

/// A statement, and what has to be known of the catalogue before its rows can be read.
#[derive(Debug)]
pub struct TypeLookup {
    statement: String,
    options: ReadOptions,
    type_cache: TypeCache,
    columns: Vec<Described>,
    /// The OIDs of the parameters' types, of a client that binds what is encoded here.
    parameters: Vec<u32>,
    needs: Needs,
    /// The question under way.
    lookup: Option<Lookup>,
    /// Whether text has every digit of a float, once that was asked for.
    exact_floats: Option<bool>,
}

#[derive(Debug)]
enum Lookup {
    Catalogue(Question),
    Floats,
}

impl TypeLookup {
    /// About `statement`.
    #[must_use]
    pub fn new(statement: String, options: ReadOptions, type_cache: TypeCache) -> Self {
        let needs = Needs::of(&[], &[]);
        Self {
            statement,
            options,
            type_cache,
            columns: Vec::new(),
            parameters: Vec::new(),
            needs,
            lookup: None,
            exact_floats: None,
        }
    }

    /// The same about a statement whose parameters have types of these OIDs.
    #[must_use]
    pub fn with_parameters(self, parameters: Vec<u32>) -> Self {
        Self { parameters, ..self }
    }

    /// The server has described the statement with a whole `RowDescription`, or with none; the last one counts.
    pub fn describe(&mut self, description: Option<&[u8]>) -> Result<()> {
        let Some(description) = description else { return Err(no_result()) };
        self.columns = row_description(Reader::new(description.get(HEADER..).unwrap_or_default()))?;
        self.needs = Needs::of(&self.columns, &self.parameters);
        Ok(())
    }

    /// The next statement to run, all of whose columns are wanted as text; `None` once all is known.
    pub fn question(&mut self) -> Result<Option<String>> {
        if let Some(question) = self.type_cache.catalogue().question(&mut self.needs, &self.columns) {
            let literal = format!("'{}'::oid[]", question.parameter());
            let text = question.text().replace("$1::oid[]", &literal);
            self.lookup = Some(Lookup::Catalogue(question));
            return Ok(Some(text));
        }
        let is_present = self.type_cache.catalogue().is_present();
        if !is_present || !self.plan()?.iter().any(ResultColumn::prints_floats) {
            return Ok(None);
        }
        match self.exact_floats {
            None => {
                self.lookup = Some(Lookup::Floats);
                Ok(Some(EXACT_FLOATS.to_owned()))
            }
            Some(true) => Ok(None),
            Some(false) => Err(too_few_digits()),
        }
    }

    /// Files the rows that the last question was answered with.
    pub fn answer(&mut self, answers: Answers) -> Result<()> {
        let rows: Vec<TextRow> = answers.rows()?;
        match self.lookup.take() {
            Some(Lookup::Catalogue(question)) => {
                self.type_cache.catalogue().answer(&mut self.needs, question, rows);
            }
            Some(Lookup::Floats) => {
                let answer = rows.first().and_then(|row| row.first()?.as_deref());
                self.exact_floats = Some(answer == Some("t"));
            }
            None => return Err(Error::internal("an answer to nothing that was asked")),
        }
        Ok(())
    }

    /// The server does not understand the questions: it only speaks PostgreSQL's wire.
    pub fn give_up(&self) {
        self.type_cache.catalogue().give_up();
    }

    /// Which columns are wanted in binary; the others as text.
    pub fn binary(&self) -> Result<Vec<bool>> {
        Ok(self.plan()?.iter().map(|planned| planned.format == Format::Binary).collect())
    }

    /// Wants all columns in one format, as clients ask for them that have one for a whole result: binary, where each has such
    /// a form that is known here, else text, about which there may be a further question. Returns whether it is binary.
    pub fn in_one_format(&mut self) -> Result<bool> {
        let is_binary = self.binary()?.into_iter().all(|is_binary| is_binary);
        if !is_binary {
            self.options.protocol = Protocol::Text;
        }
        Ok(is_binary)
    }

    /// The columns, once all is known.
    pub fn columns(&self) -> Result<Vec<Column>> {
        let column =
            |planned: ResultColumn| Column { native_type: planned.native.label(), field: planned.field };
        Ok(self.plan()?.into_iter().map(column).collect())
    }

    /// The text of each of `values` for the statement's parameters, once all is known; `None` is NULL.
    pub fn bound(&self, values: &[&Value]) -> Result<Vec<Option<Vec<u8>>>> {
        let catalogue = self.type_cache.catalogue();
        let types: Vec<_> = self.parameters.iter().map(|oid| catalogue.type_of(*oid, -1)).collect();
        encode::parameters(values, &types)
    }

    /// The receiver of the rows, once every column comes as it is wanted.
    pub fn arrival(&self) -> Result<Arrival> {
        Ok(Arrival::new(RowReader::new(self.plan()?, &self.options)?))
    }

    fn plan(&self) -> Result<Vec<ResultColumn>> {
        result_columns(&self.type_cache.catalogue(), &self.columns, &self.statement, &self.options)
    }
}

fn too_few_digits() -> Error {
    Error::not_supported("the session's extra_float_digits rounds the floats in a column's text")
        .with_hint("SET extra_float_digits TO 3")
}

/// `statement`, which is one, with a literal in the place of each parameter, for clients that bind none.
pub fn inline(statement: &str, literals: &[String]) -> Result<String> {
    let mut text = String::with_capacity(statement.len());
    let mut has_ended = false;
    for token in POSTGRESQL.scan(statement) {
        // Without parameters, a client runs all of a text.
        if has_ended && token.kind != TokenKind::Blank && !token.is_mark(";") {
            return Err(Error::programming("more than one statement")
                .with_hint("before a query, statements go into pre_execution_query, each for itself"));
        }
        has_ended |= token.is_mark(";");
        if token.kind != TokenKind::Parameter || literals.is_empty() {
            text.push_str(token.text);
            continue;
        }
        let number = token.text.trim_start_matches('$').parse::<usize>().ok();
        let literal = number.and_then(|number| literals.get(number.checked_sub(1)?));
        text.push_str(
            literal.ok_or_else(|| Error::programming(format!("there is no value for {}", token.text)))?,
        );
    }
    Ok(text)
}

/// Bytes of rows that are decoded at once: they stay in the processor's second cache.
const CHUNK: usize = 128 << 10;

/// Rows of a page before it is known how wide they are.
const FIRST_PAGE: usize = 1024;

/// Bytes of a page, about.
const PAGE: usize = 8 << 20;

/// The rows of one result; the first failure is its end.
#[derive(Debug)]
pub struct Arrival {
    reader: RowReader,
    /// Whole messages of rows that are not decoded.
    held: Vec<u8>,
    batches: Vec<RecordBatch>,
    size: usize,
    received: usize,
    /// Rows of the pages before this one.
    paged: u64,
    failure: Option<Error>,
}

impl Arrival {
    fn new(reader: RowReader) -> Self {
        Self { reader, held: Vec::new(), batches: Vec::new(), size: 0, received: 0, paged: 0, failure: None }
    }

    fn push(&mut self, message: &[u8]) {
        if self.failure.is_some() {
            return;
        }
        if let Err(failure) = self.add(message) {
            self.failure = Some(failure);
            // They are not asked for.
            (self.held, self.batches) = (Vec::new(), Vec::new());
        }
    }

    fn add(&mut self, message: &[u8]) -> Result<()> {
        let start = self.held.len();
        self.received += message.len();
        self.reader.options.budget.ask(message.len())?;
        try_reserve(&mut self.held, message.len())?;
        self.held.extend_from_slice(message);
        let most = self.reader.assembly.chunk_rows();
        let spans = self.reader.assembly.spans();
        index_row(&self.held, start + HEADER, spans)?;
        if spans.rows() < most && self.held.len() < CHUNK {
            return Ok(());
        }
        self.decode()
    }

    fn decode(&mut self) -> Result<()> {
        if self.held.is_empty() {
            return Ok(());
        }
        self.reader.assembly.decode(&self.held)?;
        self.held.clear();
        // A long row is over.
        self.held.shrink_to(2 * CHUNK);
        if self.reader.assembly.is_full() {
            let batch = self.reader.assembly.batch()?;
            self.keep(batch)?;
        }
        Ok(())
    }

    fn keep(&mut self, batch: RecordBatch) -> Result<()> {
        self.size = self.size.saturating_add(batch.get_array_memory_size());
        self.reader.options.budget.hold(self.size)?;
        self.batches.push(batch);
        Ok(())
    }

    /// The schema of its batches.
    #[must_use]
    pub fn schema(&self) -> SchemaRef {
        self.reader.assembly.schema().clone()
    }

    /// The finaliser of the batches, if their types are not final.
    #[must_use]
    pub fn finaliser(&self) -> Option<Arc<dyn Finaliser>> {
        self.reader.finaliser()
    }

    /// How many rows the next page should have: no more than the next batch takes, nor than memory should hold at once.
    #[must_use]
    pub fn page_rows(&self) -> usize {
        let rows = usize::try_from(self.reader.assembly.decoded_rows()).unwrap_or(usize::MAX);
        let page = self.received.checked_div(rows).map_or(FIRST_PAGE, |width| PAGE / width.max(1));
        page.clamp(1, self.reader.assembly.remaining_rows())
    }

    /// The batches that are full, after a page of `asked` rows; and with the last page's `tag` what is left.
    pub fn page(&mut self, asked: usize, tag: Option<&str>) -> Result<Vec<RecordBatch>> {
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        self.decode()?;
        let rows = self.reader.assembly.decoded_rows() - self.paged;
        self.paged += rows;
        match tag {
            Some(tag) => check_count(tag, rows)?,
            None => check_count(&format!("FETCH {asked}"), rows)?,
        }
        if tag.is_some()
            && let Some(batch) = self.reader.assembly.last()?
        {
            self.batches.push(batch);
        }
        self.size = 0;
        Ok(std::mem::take(&mut self.batches))
    }

    /// The batches, once the server has told the command's `tag`.
    pub fn finish(mut self, tag: &str) -> Result<Box<dyn Batches>> {
        if let Some(failure) = self.failure {
            return Err(failure);
        }
        self.decode()?;
        check_count(tag, self.reader.assembly.decoded_rows())?;
        if let Some(batch) = self.reader.assembly.last()? {
            self.keep(batch)?;
        }
        let (schema, finaliser) = (self.schema(), self.finaliser());
        let batches = self.batches.into_iter();
        Ok(Box::new(Collected { schema, finaliser, batches, session: None }))
    }
}

impl RowSink for Option<Arrival> {
    fn push(&mut self, message: &[u8]) {
        if let Some(arrival) = self {
            arrival.push(message);
        }
    }
}

/// The rows of one lookup, in text.
#[derive(Debug, Default)]
pub struct Answers(Vec<Vec<u8>>);

impl RowSink for Answers {
    fn push(&mut self, message: &[u8]) {
        self.0.push(message.get(HEADER..).unwrap_or_default().to_vec());
    }
}

impl Answers {
    fn rows(self) -> Result<Vec<TextRow>> {
        self.0.iter().map(|body| text_row(Reader::new(body))).collect()
    }
}

/// A statement's description, in which another client sees other types: it asks for a column in the format of its type.
#[derive(Debug, Default)]
pub struct Description {
    columns: Vec<u32>,
    otherwise: u32,
    original: Option<Vec<u8>>,
}

impl Description {
    /// The OIDs that the client is to see: those of the first columns, and that of all further ones.
    #[must_use]
    pub fn new(columns: Vec<u32>, otherwise: u32) -> Self {
        Self { columns, otherwise, original: None }
    }

    /// The server's own message; `None` where none has come.
    #[must_use]
    pub fn message(&self) -> Option<&[u8]> {
        self.original.as_deref()
    }

    /// Keeps the server's message, and gives the one for the client.
    fn replace(&mut self, message: &[u8]) -> Result<Vec<u8>> {
        let substituted = substitute(message, &self.columns, self.otherwise)?;
        self.original = Some(message.to_vec());
        Ok(substituted)
    }
}

/// The `RowDescription` in `message` with other types: that of `columns` in their order, and `otherwise` beyond them.
///
/// Who sends `Bind` picks each column's format by its type; with the type, the format is chosen.
fn substitute(message: &[u8], columns: &[u32], otherwise: u32) -> Result<Vec<u8>> {
    let body = message.get(HEADER..).unwrap_or_default();
    let mut reader = Reader::new(body);
    let mut substituted = message.to_vec();
    let count = usize::from(reader.i16()?.cast_unsigned());
    for index in 0..count {
        reader.name()?;
        let (_table, _attribute) = (reader.u32()?, reader.i16()?);
        let at = message.len() - reader.left();
        let oid = columns.get(index).copied().unwrap_or(otherwise);
        let (_oid, _size, _modifier, _format) = (reader.u32()?, reader.i16()?, reader.i32()?, reader.i16()?);
        substituted[at..at + 4].copy_from_slice(&oid.to_be_bytes());
    }
    Ok(substituted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::row_description;

    fn message(names: &[&str]) -> Vec<u8> {
        let mut body = u16::try_from(names.len()).unwrap().to_be_bytes().to_vec();
        for name in names {
            body.extend_from_slice(name.as_bytes());
            body.extend_from_slice(b"\0\0\0\0\x07\0\x01\0\0\0\x17\0\x04\xff\xff\xff\xff\0\0");
        }
        let length = u32::try_from(body.len() + 4).unwrap();
        [b"T".as_slice(), &length.to_be_bytes(), &body].concat()
    }

    #[test]
    fn types_alone_are_others() {
        let original = message(&["a", "", "a longer name"]);
        let substituted = substitute(&original, &[790, 17], 25).unwrap();
        assert_eq!(substituted.len(), original.len());
        let columns = row_description(Reader::new(&substituted[HEADER..])).unwrap();
        let seen: Vec<_> = columns.iter().map(|column| (column.name.as_str(), column.oid)).collect();
        assert_eq!(seen, [("a", 790), ("", 17), ("a longer name", 25)]);
        assert!(columns.iter().all(|column| (column.table, column.attribute, column.modifier) == (7, 1, -1)));
        assert_eq!(substitute(&original, &[23, 23, 23], 0).unwrap(), original);
    }

    #[test]
    fn literals_stand_in_the_places_of_parameters_alone() {
        let literals = ["'x'".to_owned(), "NULL".to_owned()];
        let inlined = |text: &str| inline(text, &literals);
        assert_eq!(
            inlined("SELECT $2, $1 + '$1' -- $1\n, \"$1\", $$ $2 $$").unwrap(),
            "SELECT NULL, 'x' + '$1' -- $1\n, \"$1\", $$ $2 $$"
        );
        assert_eq!(inlined("SELECT $3").unwrap_err().to_string(), "there is no value for $3");
        assert_eq!(inline("SELECT $1", &[]).unwrap(), "SELECT $1");
        assert_eq!(inline("SELECT ';'; -- ;\n ;", &[]).unwrap(), "SELECT ';'; -- ;\n ;");
        assert!(inline("SELECT ';'; SELECT 1", &[]).is_err());
    }

    #[test]
    fn what_is_cut_is_an_error() {
        let original = message(&["a", "b"]);
        for end in 0..original.len() {
            assert!(substitute(&original[..end], &[], 17).is_err());
        }
    }
}
