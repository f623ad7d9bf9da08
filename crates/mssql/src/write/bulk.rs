//! Rows on their way by INSERT BULK.

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use async_trait::async_trait;
use longshore_core::{Error, Load, Result};
use longshore_source::staging::Rows;
use longshore_values::Items;
use mssql_tds::connection::bulk_copy::{BulkCopy, BulkLoadRow, ColumnMapping};
use mssql_tds::core::TdsResult;
use mssql_tds::datatypes::column_values::ColumnValues;
use mssql_tds::message::bulk_load::StreamingBulkLoadWriter;

use super::encode::Encoder;
use super::table::Column;
use crate::session::MsSqlSession;

/// The rows of a write, and the table that they go into.
pub(super) struct Loader {
    table: String,
    names: Vec<String>,
    encoders: Vec<Encoder>,
    schema: SchemaRef,
    /// Whether the data has the numbers that the table would give its rows.
    numbered: bool,
    rows: u64,
}

impl Loader {
    pub(super) fn new(
        table: String,
        columns: &[Column],
        encoders: Vec<Encoder>,
        load: &Load,
        numbered: bool,
    ) -> Self {
        let names = columns.iter().map(|column| column.described.name.clone()).collect();
        Self { table, names, encoders, schema: load.schema.clone(), numbered, rows: 0 }
    }
}

impl Rows<MsSqlSession> for Loader {
    fn push(&mut self, session: &mut MsSqlSession, batch: &RecordBatch) -> Result<()> {
        if batch.num_rows() == 0 {
            return Ok(());
        }
        let fields = batch.columns().iter().zip(self.schema.fields());
        let items = fields.map(|(array, field)| Items::new(array, field)).collect::<Result<Vec<_>>>()?;
        let before = self.rows;
        let mut failure = None;
        let encoders = &self.encoders;
        let rows = (0..batch.num_rows()).map_while(|row| {
            let cells = items.iter().zip(encoders).map(|(items, encoder)| {
                let item = items.get(row);
                encoder.cell(&item).map_err(|misfit| encoder.error(&item, misfit, before + row as u64))
            });
            cells.collect::<Result<Vec<_>>>().map(Row).map_err(|error| failure = Some(error)).ok()
        });
        let Self { table, names, numbered, .. } = self;
        let sent = session.connection.with_client(async |client| {
            // As INSERT has it: nothing that a table promises is passed over.
            let mut copy = BulkCopy::new(client, table.as_str())
                .timeout(std::time::Duration::ZERO)
                .check_constraints(true)
                .fire_triggers(true)
                .keep_nulls(true)
                .keep_identity(*numbered);
            for (at, name) in names.iter().enumerate() {
                copy = copy.add_column_mapping(ColumnMapping::by_ordinal(at, name.clone()));
            }
            copy.write_to_server_zerocopy(rows).await.map(|result| result.rows_affected)
        });
        if let Some(error) = failure {
            return Err(error);
        }
        let sent = sent?;
        if sent != batch.num_rows() as u64 {
            return Err(Error::internal(format!(
                "{sent} rows were sent in the place of {}",
                batch.num_rows()
            )));
        }
        self.rows += sent;
        Ok(())
    }

    fn flush(&mut self, _session: &mut MsSqlSession) -> Result<()> {
        Ok(())
    }

    fn count(&self) -> u64 {
        self.rows
    }
}

/// A row's values.
struct Row(Vec<ColumnValues>);

#[async_trait]
impl BulkLoadRow for Row {
    async fn write_to_packet(
        &self,
        writer: &mut StreamingBulkLoadWriter<'_>,
        column_index: &mut usize,
    ) -> TdsResult<()> {
        for value in &self.0 {
            writer.write_column_value(*column_index, value).await?;
            *column_index += 1;
        }
        Ok(())
    }
}
