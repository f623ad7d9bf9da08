//! Bulk ingestion: rows that a client sends go into a table.

use std::collections::HashMap;

use arrow_flight::sql::CommandStatementIngest;
use longshore_core::{Deadline, Error, IfExists, Result, TableName};
use longshore_flight_protocol::{KEY, MODE, TYPE};
use tonic::Status;

use crate::auth::Role;
use crate::context::Context;
use crate::engine::{Ingestion, Where};
use crate::handle::handle_text;
use crate::reading;
use crate::shared::Shared;
use crate::status::{not_flight_sql, status};
use crate::uploads::Upload;

/// The beginning of the options of Longshore's client beyond the protocol.
const OURS: &str = "longshore.";

impl Shared {
    /// Writes an upload into a table.
    pub(crate) fn ingest(
        &self,
        context: &Context,
        asked: CommandStatementIngest,
        upload: Upload,
        deadline: &Deadline,
    ) -> Result<u64, Status> {
        if context.caller.role == Role::Reader {
            return Err(status(reading::refusal()));
        }
        let transaction = asked.transaction_id.as_deref().map(handle_text).transpose()?;
        if asked.temporary && transaction.is_none() {
            // Any client may have the next statement of the session that it would be left in.
            return Err(Status::failed_precondition(
                "a temporary table is its session's: ingest it in a transaction, which has one of its own",
            ));
        }
        let place = self.place(context, transaction.as_deref(), deadline)?;
        let schema = upload.schema.ok_or_else(|| not_flight_sql("no rows were sent"))?;
        let written = ingestion(&place, asked, deadline)
            .and_then(|ingestion| place.write(ingestion, schema, upload.batches.under(deadline), deadline));
        written.map_err(status)
    }
}

/// Where the rows go, as a command says it.
fn ingestion(place: &Where, asked: CommandStatementIngest, deadline: &Deadline) -> Result<Ingestion> {
    if let Some(catalog) = asked.catalog.as_deref().filter(|catalog| !catalog.is_empty()) {
        let current = place.current(deadline)?.catalog;
        if current.as_deref().unwrap_or_default() != catalog {
            let message = format!("{catalog:?} is not the current catalog");
            return Err(Error::not_supported(message).with_hint("leave the catalog out"));
        }
    }
    let schema = match asked.schema.filter(|schema| !schema.is_empty()) {
        _ if asked.temporary => Some(place.temporary_schema(deadline)?),
        name => name,
    };
    let table = TableName { schema, table: asked.table };
    let (creates, exists) = asked
        .table_definition_options
        .map_or((0, 0), |definition| (definition.if_not_exist, definition.if_exists));
    let (mode, key, types) = ours(asked.options)?;
    // The numbers of TableNotExistOption and TableExistsOption.
    let if_exists = match (mode, creates, exists) {
        (Some(mode), ..) => mode,
        (None, _, 3) => IfExists::Replace,
        (None, 1, 2) if !place.has_table(&table, deadline)? => IfExists::Fail,
        (None, _, 2) => IfExists::Append,
        _ => IfExists::Fail,
    };
    Ok(Ingestion { table, if_exists, key, types })
}

type Ours = (Option<IfExists>, Vec<String>, Vec<(String, String)>);

fn ours(options: HashMap<String, String>) -> Result<Ours> {
    let (mut mode, mut key, mut types) = (None, Vec::new(), Vec::new());
    for (name, value) in options {
        if let Some(at) = name.strip_prefix(KEY).and_then(|at| at.parse::<usize>().ok()) {
            key.push((at, value));
        } else if let Some(column) = name.strip_prefix(TYPE) {
            types.push((column.to_owned(), value));
        } else if name == MODE && value == "truncate" {
            mode = Some(IfExists::Truncate);
        } else if name == MODE && value == "upsert" {
            mode = Some(IfExists::Upsert);
        } else if name.starts_with(OURS) {
            return Err(Error::interface(format!("an ingestion has no option {name:?} of {value:?}"))
                .with_hint("its options are longshore.mode, truncate or upsert, longshore.key.<n> and longshore.type.<column>"));
        }
    }
    key.sort_unstable();
    Ok((mode, key.into_iter().map(|(_, column)| column).collect(), types))
}

#[cfg(test)]
mod tests {
    use longshore_core::Kind;

    use super::*;

    fn options(pairs: &[(&str, &str)]) -> HashMap<String, String> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn options_of_ours_say_mode_key_and_types() {
        let asked = [
            ("longshore.mode", "upsert"),
            ("longshore.key.1", "b"),
            ("longshore.key.0", "a"),
            ("longshore.type.a", "bigint"),
            ("another's", "option"),
        ];
        let (mode, key, types) = ours(options(&asked)).unwrap();
        assert_eq!((mode, key), (Some(IfExists::Upsert), vec!["a".to_owned(), "b".to_owned()]));
        assert_eq!(types, [("a".to_owned(), "bigint".to_owned())]);
        assert_eq!(ours(options(&[("another's", "option")])).unwrap(), (None, Vec::new(), Vec::new()));
        for wrong in [("longshore.mode", "merge"), ("longshore.keys", "a"), ("longshore.key.x", "a")] {
            assert_eq!(ours(options(&[wrong])).unwrap_err().kind(), Kind::Interface, "{wrong:?}");
        }
    }
}
