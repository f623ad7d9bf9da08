//! Rows that another library's connection stores, as a session of ours would.

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use longshore_core::{Error, Load, Result};

use super::encode::Encoder;
use super::table::Column;
use super::{Batch, Statements, Target, in_row, statement};
use crate::cell::Cell;

/// Rows on their way, and the statement that takes each.
pub struct ForeignRows {
    /// An INSERT with a place for each value.
    pub statement: String,
    /// Whether a row may be there already, and then stays as it is.
    pub may_skip: bool,
    /// The rows that have come.
    pub count: u64,
    encoders: Vec<Encoder>,
    schema: SchemaRef,
    texts: Vec<String>,
}

/// Makes the table of `load`, or finds it.
pub fn begin(connection: &mut impl Statements, load: &Load) -> Result<ForeignRows> {
    let target = Target::prepare(connection, load)?;
    let columns: Vec<&Column> = target.columns.iter().collect();
    Ok(ForeignRows {
        statement: statement(&target.table, &columns, &target.is_keys, None),
        may_skip: target.may_skip(load),
        count: 0,
        texts: vec![String::new(); columns.len()],
        encoders: target.encoders(load),
        schema: load.schema.clone(),
    })
}

impl ForeignRows {
    /// Has `cell` take the values of a batch, row by row.
    pub fn encode(
        &mut self,
        batch: &RecordBatch,
        mut cell: impl FnMut(usize, Cell<'_>) -> Result<()>,
    ) -> Result<()> {
        let mut batch = Batch::new(batch, &self.schema, self.count, &self.encoders, &mut self.texts)?;
        for row in 0..batch.length {
            let number = batch.before + row as u64;
            for column in &mut batch.columns {
                cell(row, column.cell(row, number)?)?;
            }
        }
        Ok(())
    }

    /// The database's refusal of a row, with its number.
    #[must_use]
    pub fn refuse(&self, error: Error, row: usize) -> Error {
        in_row(error, self.count + row as u64)
    }
}
