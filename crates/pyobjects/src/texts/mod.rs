//! Columns of texts alone: Arrow's views of them, in one pass and by several threads.

mod layout;
mod views;

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use arrow_array::ArrayRef;
use longshore_core::{Result, run_jobs};
use longshore_values::Fault;
use pyo3::prelude::*;

use self::layout::{Head, Layout, fetch};
use self::views::{INLINE, Views};
use crate::fault::{is_raised, located, python_fault};
use crate::objects::{Choices, class};
use crate::read::Reader;
use crate::slots::{Slots, SlotsView};

/// Chunks between two looks at Python's signals.
const ROUND: usize = 32;

/// Objects that are known to say that there is nothing: `None`, and NaN or the like.
const KNOWN: usize = 8;

/// The arrays of views of a column that has texts and what is missing, and nothing else; `chunk` rows in each,
/// made by so many threads or by as many as there are processors.
///
/// `None` for every other column, such as one with texts of other classes than `str`, and where the interpreter keeps texts in a
/// way that is not known: [`crate::Objects`] has their type, or their error.
pub fn texts(
    values: &Bound<'_, PyAny>,
    name: &str,
    choices: Choices,
    chunk: usize,
    threads: Option<usize>,
) -> Result<Option<Vec<ArrayRef>>> {
    let slots = Slots::of(values)?;
    let Some(layout) = Layout::of(values.py()) else { return Ok(None) };
    let column = Column { slots, layout, choices, missing: vec![values.py().None().into_bound(values.py())] };
    column.arrays(chunk.max(1), threads).map_err(|fault| located(fault, name))
}

struct Column<'py> {
    slots: Slots<'py>,
    layout: Layout,
    choices: Choices,
    /// They are kept, so that no other object takes their addresses.
    missing: Vec<Bound<'py, PyAny>>,
}

impl<'py> Column<'py> {
    fn arrays(mut self, chunk: usize, threads: Option<usize>) -> Result<Option<Vec<ArrayRef>>, Fault> {
        let py = self.slots.py();
        let mut reader = Reader::new(py);
        let length = self.slots.len();
        let chunks: Vec<_> =
            (0..length).step_by(chunk).map(|start| start..length.min(start.saturating_add(chunk))).collect();
        let mut arrays = Vec::with_capacity(chunks.len());
        let mut has_text = false;
        while let Some(chunk) = chunks.get(arrays.len()) {
            py.check_signals().map_err(|error| python_fault(py, chunk.start, error))?;
            // Others may have the interpreter's lock between two rounds.
            py.detach(|| ());
            // The first by itself: it tells soon whether there is more to be done.
            let most = if arrays.is_empty() { 1 } else { ROUND };
            let round = &chunks[arrays.len()..chunks.len().min(arrays.len() + most)];
            let converted = convert(self.rows(&self.missing()), round, threads);
            for views in converted {
                match views {
                    Ok(views) => {
                        has_text |= views.has_text();
                        arrays.push(views.finish());
                    }
                    Err(NotText(row)) if self.learn(&mut reader, row)? => break,
                    Err(NotText(_)) => return Ok(None),
                }
            }
        }
        Ok(has_text.then_some(arrays))
    }

    fn missing(&self) -> Vec<usize> {
        self.missing.iter().map(|object| object.as_ptr().addr()).collect()
    }

    fn rows<'a>(&'a self, missing: &'a [usize]) -> Rows<'a> {
        Rows { slots: self.slots.view(), layout: self.layout, missing }
    }

    /// Whether the object of `row`, which is not a plain text, is missing, and its like is known by its address from now on.
    fn learn(&mut self, reader: &mut Reader<'py>, row: usize) -> Result<bool, Fault> {
        reader.row = row;
        let Some(object) = self.slots.get(row) else { return Ok(false) };
        match class(reader, &object, self.choices) {
            Ok(None) if self.missing.len() < KNOWN => {
                self.missing.push(object);
                Ok(true)
            }
            Err(fault) if is_raised(&fault) => Err(fault),
            _ => Ok(false),
        }
    }
}

/// Bytes after which no more chunks are begun, so that signals are looked at.
const BYTES: usize = 1 << 28;

/// Makes some of `chunks` from the first on, one at least, by so many threads. This one has the interpreter's lock meanwhile.
fn convert(rows: Rows<'_>, chunks: &[Range<usize>], threads: Option<usize>) -> Vec<Result<Views, NotText>> {
    let bytes = AtomicUsize::new(0);
    let goes_on = || bytes.load(Ordering::Relaxed) < BYTES;
    run_jobs(chunks.len(), threads, goes_on, |number| {
        let views = rows.views(chunks[number].clone());
        bytes.fetch_add(views.as_ref().map_or(0, Views::size), Ordering::Relaxed);
        views
    })
}

/// Objects that are looked at before the first of them is copied, so that the processor waits for many at a time.
const NEAR: usize = 256;

/// How many objects ahead the processor is told to fetch.
const AHEAD: usize = 24;

/// The slots of a column, and how to read what is in them.
#[derive(Clone, Copy, Debug)]
struct Rows<'a> {
    slots: SlotsView<'a>,
    layout: Layout,
    /// The addresses of objects that are alive and say that there is nothing.
    missing: &'a [usize],
}

/// The row of an object that is neither a plain text nor known to be missing.
#[derive(Clone, Copy, Debug)]
struct NotText(usize);

impl Rows<'_> {
    /// The texts of `rows`; to be called while some thread has the interpreter's lock and runs no Python code.
    fn views(&self, rows: Range<usize>) -> Result<Views, NotText> {
        let mut views = Views::new(rows.len());
        let mut heads = [Head::NONE; NEAR];
        for start in rows.clone().step_by(NEAR) {
            let heads = &mut heads[..NEAR.min(rows.end - start)];
            let mut is_ascii = true;
            for (at, head) in heads.iter_mut().enumerate() {
                let row = start + at;
                fetch(self.slots.object((row + AHEAD).min(rows.end - 1)));
                *head = self.head(row);
                is_ascii &= head.is_ascii();
            }
            if is_ascii {
                self.push_ascii(heads, &mut views).ok_or(NotText(start))?;
                continue;
            }
            for (at, head) in heads.iter().enumerate() {
                self.push(head, &mut views).ok_or(NotText(start + at))?;
            }
        }
        Ok(views)
    }

    #[inline]
    #[allow(unsafe_code)]
    fn head(&self, row: usize) -> Head {
        let object = self.slots.object(row);
        if object.is_null() {
            return Head::NONE;
        }
        // SAFETY: what is in a slot is alive as long as no Python code runs, and the layout is that of every text.
        unsafe { self.layout.head(object) }
    }

    /// Appends texts that are of ASCII, all of them.
    #[inline]
    #[allow(unsafe_code)]
    fn push_ascii(&self, heads: &[Head], views: &mut Views) -> Option<()> {
        for head in heads {
            // SAFETY: no Python code has run since the objects were looked at, nor does it before all are copied.
            let view = unsafe {
                if head.length() <= INLINE {
                    self.layout.inline(head)
                } else {
                    views.outside(self.layout.ascii(head)).ok()?
                }
            };
            views.push_view(view);
        }
        views.push_valid(heads.len());
        Some(())
    }

    #[inline]
    #[allow(unsafe_code)]
    fn push(&self, head: &Head, views: &mut Views) -> Option<()> {
        // SAFETY: no Python code has run since the object was looked at, nor does it before its characters are copied.
        if let Some(characters) = unsafe { self.layout.characters(head) } {
            return views.push(characters).ok();
        }
        let is_missing = self.missing.contains(&head.address()) || head.address() == 0;
        is_missing.then(|| views.push_null())
    }
}
