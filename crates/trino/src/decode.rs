//! Pages of rows as record batches.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{Schema, SchemaRef};
use longshore_core::{Error, Kind as ErrorKind, NATIVE_TYPE, Place, Result, batch_of};
use serde::de::{DeserializeSeed, SeqAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::column::{Column, Fault};
use crate::kind::{self, Kind};

/// The columns of a result, and how many of its rows have come.
pub struct Pages {
    schema: SchemaRef,
    kinds: Vec<Kind>,
    rows: u64,
}

impl Pages {
    /// Those of the columns that an answer tells, as JSON.
    pub fn new(columns: &str) -> Result<Self> {
        let columns: Vec<Value> = serde_json::from_str(columns)
            .map_err(|error| Error::internal(format!("the columns are not what Trino tells: {error}")))?;
        let columns = columns.iter().map(|column| {
            let (field, kind) = kind::column(column)?;
            let mut metadata = field.metadata().clone();
            metadata.insert(NATIVE_TYPE.to_owned(), column["type"].as_str().unwrap_or_default().to_owned());
            Ok((field.with_metadata(metadata), kind))
        });
        let (fields, kinds): (Vec<_>, _) = columns.collect::<Result<Vec<_>>>()?.into_iter().unzip();
        Ok(Self { schema: Arc::new(Schema::new(fields)), kinds, rows: 0 })
    }

    /// The schema of all batches.
    #[must_use]
    pub fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    /// A page's rows: a list of lists in JSON.
    pub fn decode(&mut self, data: &[u8]) -> Result<RecordBatch> {
        let mut page = Page { columns: self.kinds.iter().map(Column::new).collect(), rows: 0, fault: None };
        let mut json = serde_json::Deserializer::from_slice(data);
        let read = Rows(&mut page).deserialize(&mut json).and_then(|()| json.end());
        if let Some((at, fault)) = page.fault {
            let field = self.schema.field(at);
            let place = Place::of(field, Some(self.rows + page.rows));
            let error = Error::new(ErrorKind::Data, fault.what).at(place);
            return Err(match fault.hint {
                Some(hint) => error.with_hint(hint.replace("<column>", field.name())),
                None => error,
            });
        }
        read.map_err(|error| {
            Error::new(ErrorKind::Operational, format!("a page of rows is broken: {error}"))
        })?;
        self.rows += page.rows;
        let rows = usize::try_from(page.rows).unwrap_or(usize::MAX);
        let columns = page.columns.into_iter().map(Column::finish).collect::<Result<Vec<_>, _>>();
        let broken = |error| Error::internal(format!("a page does not fit its columns: {error}"));
        batch_of(&self.schema, columns.map_err(broken)?, rows)
    }
}

struct Page {
    columns: Vec<Column>,
    /// Rows that are whole.
    rows: u64,
    /// The fault, and its column.
    fault: Option<(usize, Fault)>,
}

/// Takes the rows.
struct Rows<'a>(&'a mut Page);
/// Takes the values of one.
struct Row<'a>(&'a mut Page);

impl<'de> DeserializeSeed<'de> for Rows<'_> {
    type Value = ();

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Rows<'_> {
    type Value = ();

    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("a list of rows")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut rows: A) -> Result<(), A::Error> {
        while rows.next_element_seed(Row(self.0))?.is_some() {
            self.0.rows += 1;
        }
        Ok(())
    }
}

impl<'de> DeserializeSeed<'de> for Row<'_> {
    type Value = ();

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Row<'_> {
    type Value = ();

    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("a row")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut values: A) -> Result<(), A::Error> {
        for (at, column) in self.0.columns.iter_mut().enumerate() {
            let value: &RawValue =
                values.next_element()?.ok_or_else(|| serde::de::Error::custom("a row is too short"))?;
            if let Err(fault) = column.push(value) {
                self.0.fault = Some((at, fault));
                return Err(serde::de::Error::custom("a value"));
            }
        }
        match values.next_element::<&RawValue>()? {
            Some(_) => Err(serde::de::Error::custom("a row is too long")),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::Array;
    use arrow_array::cast::AsArray;
    use arrow_array::types::Int32Type;

    use super::*;

    const COLUMNS: &str = r#"[
        {"name":"n","type":"integer","typeSignature":{"rawType":"integer","arguments":[]}},
        {"name":"t","type":"varchar","typeSignature":{"rawType":"varchar","arguments":[{"kind":"LONG","value":9}]}}
    ]"#;

    #[test]
    fn rows_become_columns() {
        let mut pages = Pages::new(COLUMNS).unwrap();
        let batch = pages.decode(br#"[[1,"a\u00e9\"b"],[null,null],[-3,""]]"#).unwrap();
        assert_eq!(
            batch.column(0).as_primitive::<Int32Type>().iter().collect::<Vec<_>>(),
            [Some(1), None, Some(-3)]
        );
        assert_eq!(batch.column(1).as_string::<i32>().value(0), "a\u{e9}\"b");
        assert!(batch.column(1).is_null(1));
        assert_eq!(pages.decode(b"[]").unwrap().num_rows(), 0);
    }

    #[test]
    fn a_fault_has_its_column_and_the_row_of_the_result() {
        let mut pages = Pages::new(COLUMNS).unwrap();
        pages.decode(br#"[[1,"a"],[2,"b"]]"#).unwrap();
        let error = pages.decode(br#"[[3,"c"],[99999999999,"d"]]"#).unwrap_err();
        assert_eq!((error.place().column.as_deref(), error.place().row), (Some("n"), Some(3)));
    }

    #[test]
    fn what_is_cut_anywhere_is_an_error() {
        let page = br#"[[1,"a\u00e9"],[null,"b"]]"#;
        for end in 0..page.len() {
            assert!(Pages::new(COLUMNS).unwrap().decode(&page[..end]).is_err(), "{end}");
        }
        for broken in [&b"[[1]]"[..], b"[[1,\"a\",2]]", b"{}", b"[1]", b"[[1,\"a\"]]x", b"[[true,\"a\"]]"] {
            assert!(Pages::new(COLUMNS).unwrap().decode(broken).is_err());
        }
    }
}
