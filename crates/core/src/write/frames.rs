//! The frames of one write, one after another.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{ArrowError, Schema, SchemaRef};

use crate::{Error, Place, Result, misencoded_row, type_name};

/// One frame of a write.
pub struct Frame {
    /// The schema of every batch.
    pub schema: SchemaRef,
    /// Its rows.
    pub batches: Box<dyn Iterator<Item = Result<RecordBatch>> + Send>,
}

/// The batches of all frames of a write. All have the first one's columns, in whatever order.
pub struct Frames<I> {
    others: I,
    schema: SchemaRef,
    /// The frame whose batches come now, and its number.
    current: Option<Frame>,
    number: usize,
    /// Where the first frame's columns are in the current one; `None` where they are in their places.
    order: Option<Vec<usize>>,
    /// Rows that went before.
    rows: u64,
}

impl<I: Iterator<Item = Result<Frame>>> Frames<I> {
    /// The batches of the frames in `others`, the first of which is taken at once; without any there is no schema, and an error.
    pub fn new(mut others: I) -> Result<Self> {
        let first = others.next().ok_or_else(|| {
            Error::interface("the iterator gave no frame, so there are no columns to write")
                .with_hint("give at least one frame, which may have no rows")
        })??;
        let schema = first.schema.clone();
        Ok(Self { others, schema, current: Some(first), number: 1, order: None, rows: 0 })
    }

    /// The schema of every batch.
    #[must_use]
    pub fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    /// The batch, whose texts have to be texts: Arrow's interfaces hand on what they are given.
    fn check(&mut self, mut batch: RecordBatch) -> Result<RecordBatch> {
        if let Some(order) = &self.order {
            batch = batch.project(order).map_err(|error| arrow_error(&error))?;
        }
        for (column, field) in batch.columns().iter().zip(self.schema.fields()) {
            if let Some(row) = misencoded_row(column) {
                let (column, row) = (Some(field.name().clone()), Some(self.rows + row as u64));
                return Err(Error::data("a text is not UTF-8")
                    .with_hint("decode the bytes before the write, or give them as binary")
                    .at(Place { column, row, native_type: None }));
            }
        }
        self.rows += batch.num_rows() as u64;
        Ok(batch)
    }

    /// The next frame, if there is one.
    fn advance(&mut self) -> Result<bool> {
        self.current = self.others.next().transpose()?;
        self.number += 1;
        let Some(frame) = &self.current else { return Ok(false) };
        let mut schema = frame.schema.clone();
        self.order = order(&self.schema, &schema);
        if let Some(order) = &self.order {
            schema = Arc::new(schema.project(order).map_err(|error| arrow_error(&error))?);
        }
        match difference(&self.schema, &schema) {
            None => Ok(true),
            Some(difference) => Err(Error::interface(format!(
                "frame {} has other columns than the first: {difference}",
                self.number
            ))
            .with_hint("give all frames of one write the same columns, of the same types")),
        }
    }
}

impl<I: Iterator<Item = Result<Frame>>> Iterator for Frames<I> {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match self.current.as_mut()?.batches.next() {
                Some(Ok(batch)) => return Some(self.check(batch)),
                Some(Err(error)) => return Some(Err(error)),
                None => {}
            }
            match self.advance() {
                Ok(true) => {}
                Ok(false) => return None,
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

#[cold]
fn arrow_error(error: &ArrowError) -> Error {
    Error::internal(error.to_string())
}

/// Where the columns of `schema` are in `other`, which has the same in another order; `None` for every other schema.
fn order(schema: &Schema, other: &Schema) -> Option<Vec<usize>> {
    let names =
        |schema: &Schema| schema.fields().iter().map(|field| field.name().clone()).collect::<Vec<_>>();
    let (own, others) = (names(schema), names(other));
    if own == others || own.len() != others.len() {
        return None;
    }
    let places: Vec<usize> =
        own.iter().map(|name| others.iter().position(|other| other == name)).collect::<Option<_>>()?;
    // Of two columns of one name, one would come twice.
    let is_all = (0..places.len()).all(|place| places.contains(&place));
    is_all.then_some(places)
}

/// The difference of `other` from `schema`; nullability is not one.
fn difference(schema: &Schema, other: &Schema) -> Option<String> {
    let only = |of: &Schema, not: &Schema| {
        let names = of.fields().iter().map(|field| field.name().as_str());
        names.filter(|name| not.field_with_name(name).is_err()).collect::<Vec<_>>().join(", ")
    };
    let named = [(only(other, schema), "new"), (only(schema, other), "missing")];
    let named: Vec<String> = named
        .iter()
        .filter(|(names, _)| !names.is_empty())
        .map(|(names, what)| format!("{names} is {what}"))
        .collect();
    if !named.is_empty() {
        return Some(named.join(", "));
    }
    if schema.fields().len() != other.fields().len() {
        return Some(format!("{} columns, not {}", other.fields().len(), schema.fields().len()));
    }
    let pairs = schema.fields().iter().zip(other.fields());
    pairs.into_iter().find_map(|(field, other)| {
        if field.name() != other.name() {
            return Some(format!("{:?} in the place of {:?}", other.name(), field.name()));
        }
        let same = field.data_type() == other.data_type();
        (!same).then(|| {
            format!(
                "{:?} is {}, not {}",
                field.name(),
                type_name(other.data_type()),
                type_name(field.data_type())
            )
        })
    })
}

#[cfg(test)]
mod tests {
    use arrow_array::{ArrayRef, Int64Array, StringArray};

    use super::*;

    fn batch(columns: &[(&str, ArrayRef)]) -> RecordBatch {
        RecordBatch::try_from_iter(columns.iter().cloned()).unwrap()
    }

    fn numbers(values: &[i64]) -> ArrayRef {
        Arc::new(Int64Array::from(values.to_vec()))
    }

    fn texts(values: &[&str]) -> ArrayRef {
        Arc::new(StringArray::from(values.to_vec()))
    }

    fn frame(batches: Vec<RecordBatch>) -> Frame {
        Frame { schema: batches[0].schema(), batches: Box::new(batches.into_iter().map(Ok)) }
    }

    fn refusal(second: &[(&str, ArrayRef)]) -> String {
        let first = batch(&[("a", numbers(&[1])), ("b", texts(&["x"]))]);
        let mut frames =
            Frames::new([frame(vec![first]), frame(vec![batch(second)])].map(Ok).into_iter()).unwrap();
        frames.next().unwrap().unwrap();
        let text = frames.next().unwrap().unwrap_err().to_string();
        let (told, _) = text.split_once('\n').unwrap();
        told.strip_prefix("frame 2 has other columns than the first: ").unwrap().to_owned()
    }

    #[test]
    fn columns_come_in_the_order_of_the_first_frame() {
        let first = batch(&[("a", numbers(&[1])), ("b", texts(&["x"]))]);
        let second = batch(&[("b", texts(&["y", "z"])), ("a", numbers(&[2, 3]))]);
        let frames = [frame(vec![first.clone()]), frame(vec![second]), frame(vec![first.clone()])];
        let all: Vec<_> = Frames::new(frames.map(Ok).into_iter()).unwrap().map(Result::unwrap).collect();
        assert_eq!(all[1], batch(&[("a", numbers(&[2, 3])), ("b", texts(&["y", "z"]))]));
        assert_eq!((&all[0], &all[2]), (&first, &first));
    }

    #[test]
    fn other_columns_are_told() {
        let one = || numbers(&[1]);
        assert_eq!(refusal(&[("a", one()), ("c", texts(&["x"]))]), "c is new, b is missing");
        assert_eq!(refusal(&[("a", one()), ("b", one())]), "\"b\" is int64, not string");
        assert_eq!(refusal(&[("a", one()), ("b", one()), ("b", one())]), "3 columns, not 2");
        assert_eq!(refusal(&[("a", one())]), "b is missing");
    }

    #[test]
    fn a_text_that_is_not_utf8_is_told_with_its_row() {
        #[allow(unsafe_code)]
        // SAFETY: an array that another library made may hold any bytes; nothing here takes them for a `str`.
        let bad = unsafe {
            let (offsets, _, nulls) = StringArray::from(vec!["a", "b"]).into_parts();
            StringArray::new_unchecked(offsets, b"a\xff".as_slice().into(), nulls)
        };
        let frames = [frame(vec![batch(&[("t", texts(&["x"]))]), batch(&[("t", Arc::new(bad))])])];
        let mut frames = Frames::new(frames.map(Ok).into_iter()).unwrap();
        frames.next().unwrap().unwrap();
        let error = frames.next().unwrap().unwrap_err();
        assert_eq!((error.place().column.as_deref(), error.place().row), (Some("t"), Some(2)));
    }

    #[test]
    fn no_frames_are_an_error() {
        assert!(Frames::new(std::iter::empty()).is_err());
    }
}
