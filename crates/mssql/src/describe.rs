//! The columns of a query that is not run: `sp_describe_first_result_set`.

use longshore_core::{Error, Query, Result};
use mssql_tds::datatypes::sqldatatypes::TdsDataType;
use mssql_tds::token::tokens::SqlCollation;

use crate::connection::Connection;
use crate::dialect::bind;
use crate::encode::{declarations, parameter, text};
use crate::error;
use crate::session::no_result;
use crate::types::Described;

/// The function of the same name gives the columns that are asked for, whatever the server's version adds to them.
const DESCRIBE: &str = "SELECT name, tds_type_id, tds_length, precision, scale, tds_collation_id, \
     tds_collation_sort_id, is_nullable, user_type_name, system_type_id, is_identity_column, is_computed_column, error_message, error_number \
     FROM sys.dm_exec_describe_first_result_set(@tsql, @params, 0) WHERE is_hidden = 0 ORDER BY column_ordinal";

/// The columns of `query`.
pub(crate) fn describe(connection: &mut Connection, query: &Query) -> Result<Vec<Described>> {
    let bound = bind(&query.text, &query.params)?;
    let declared = declarations(&bound)?;
    let asked = vec![parameter("@tsql", text(&bound.text)), parameter("@params", text(&declared))];
    let rows = connection.table(DESCRIBE, asked)?;
    let columns = rows.iter().map(|row| column(row)).collect::<Result<Vec<_>>>()?;
    if columns.is_empty() { Err(no_result("was not run")) } else { Ok(columns) }
}

fn column(row: &[Option<String>]) -> Result<Described> {
    let [
        name,
        tds,
        length,
        precision,
        scale,
        collation,
        sort_id,
        nullable,
        user_type,
        system_type,
        identity,
        computed,
        message,
        number,
    ] = row
    else {
        return Err(Error::internal("the server describes a column by something else"));
    };
    if let Some(message) = message {
        let number = integer(number.as_ref())?.and_then(|number| u32::try_from(number).ok());
        return Err(error::of_number(number.unwrap_or_default(), message));
    }
    let tds = integer(tds.as_ref())?
        .ok_or_else(|| Error::internal("the server describes a column without a type"))?;
    let tds = u8::try_from(tds).ok().and_then(|tds| TdsDataType::try_from(tds).ok()).ok_or_else(|| {
        Error::not_supported("the server describes a column of a type that is not known here")
            .with_hint("cast the column in the query, such as CAST(... AS nvarchar(max))")
    })?;
    let small = |cell: &Option<String>| {
        Ok::<_, Error>(u8::try_from(integer(cell.as_ref())?.unwrap_or_default()).unwrap_or_default())
    };
    let collation = match (integer(collation.as_ref())?, small(sort_id)?) {
        (None, _) => None,
        (Some(info), sort_id) => {
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            // bits, which the server shows as an int
            let [a, b, c, d] = (info as u32).to_le_bytes();
            SqlCollation::try_from([a, b, c, d, sort_id].as_slice()).ok()
        }
    };
    Ok(Described {
        name: name.clone().unwrap_or_default(),
        tds,
        length: usize::try_from(integer(length.as_ref())?.unwrap_or_default()).unwrap_or(usize::MAX),
        precision: small(precision)?,
        scale: small(scale)?,
        collation,
        nullable: nullable.as_deref() != Some("0"),
        is_rowversion: system_type.as_deref() == Some("189"),
        is_identity: identity.as_deref() == Some("1"),
        is_generated: computed.as_deref() == Some("1"),
        udt: user_type.clone().filter(|_| tds == TdsDataType::Udt),
    })
}

fn integer(cell: Option<&String>) -> Result<Option<i64>> {
    let Some(text) = cell else { return Ok(None) };
    text.parse()
        .map(Some)
        .map_err(|_| Error::internal("the server describes a column by what is not a number"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(cells: &[Option<&str>]) -> Vec<Option<String>> {
        cells.iter().map(|cell| cell.map(str::to_owned)).collect()
    }

    #[test]
    fn a_column_is_what_the_result_would_say() {
        let cells = ["price", "108", "9", "19", "4", "", "", "1", "", "108", "", "", "", ""];
        let cells: Vec<Option<&str>> =
            cells.iter().map(|cell| Some(*cell).filter(|cell| !cell.is_empty())).collect();
        let column = column(&row(&cells)).unwrap();
        assert_eq!(
            (column.name.as_str(), column.tds, column.precision, column.scale),
            ("price", TdsDataType::NumericN, 19, 4)
        );
        assert!(column.nullable && column.collation.is_none() && !column.is_rowversion);
    }

    #[test]
    fn what_the_server_has_against_a_query_is_its_error() {
        let mut cells = vec![None; 14];
        (cells[12], cells[13]) = (Some("Invalid object name 't'."), Some("208"));
        let error = column(&row(&cells)).unwrap_err();
        assert_eq!(
            (error.message(), error.vendor_code()),
            ("Invalid object name 't'. (error 208)", Some(208))
        );
    }
}
