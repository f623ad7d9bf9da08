//! The rows of a column of texts, read where they lie.

use std::ops::Range;

use super::layout::{Head, Layout, fetch};
use super::views::{INLINE, Views};
use crate::slots::Lent;

/// Objects that are looked at before the first of them is copied, so that the processor waits for many at a time.
const NEAR: usize = 256;

/// How many objects ahead the processor is told to fetch.
const AHEAD: usize = 24;

/// The slots of a column, and how to read what is in them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rows<'a> {
    pub(super) slots: Lent<'a>,
    pub(super) layout: Layout,
    /// The addresses of objects that are alive and say that there is nothing.
    pub(super) missing: &'a [usize],
}

/// The row of an object that is no text as they are read here, and not missing either.
#[derive(Clone, Copy, Debug)]
pub(super) struct Odd(pub(super) usize);

impl Rows<'_> {
    /// The texts of `rows`; to be called while some thread has the interpreter's lock and runs no Python code.
    pub(super) fn views(&self, rows: Range<usize>) -> Result<Views, Odd> {
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
                self.push_ascii(heads, &mut views).ok_or(Odd(start))?;
                continue;
            }
            for (at, head) in heads.iter().enumerate() {
                self.push(head, &mut views).ok_or(Odd(start + at))?;
            }
        }
        Ok(views)
    }

    /// Appends the text of one row, or NULL; `None` if it is odd.
    pub(super) fn push_row(&self, row: usize, views: &mut Views) -> Option<()> {
        self.push(&self.head(row), views)
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
