//! Which rows are NULL, one byte a row as NumPy and pandas want it, made only when the first NULL comes.

use arrow_buffer::NullBuffer;

use longshore_core::memory::NoRoom;

use crate::pages::make_room;

/// True (1) where a row is NULL. Holds nothing until there is one.
#[derive(Debug, Default)]
pub(crate) struct Mask {
    rows: usize,
    bytes: Vec<u8>,
}

impl Mask {
    /// Adds `rows` rows, those of `nulls` NULL.
    pub(crate) fn extend(&mut self, nulls: Option<&NullBuffer>, rows: usize) -> Result<(), NoRoom> {
        let before = self.rows;
        self.rows += rows;
        let nulls = nulls.filter(|nulls| nulls.null_count() > 0);
        let Some(nulls) = nulls else {
            if !self.bytes.is_empty() {
                make_room(&mut self.bytes, rows)?;
                self.bytes.resize(self.rows, 0);
            }
            return Ok(());
        };
        let missing = self.rows - self.bytes.len();
        make_room(&mut self.bytes, missing)?;
        self.bytes.resize(before, 0);
        self.bytes.extend(nulls.iter().map(|valid| u8::from(!valid)));
        Ok(())
    }

    /// The memory held.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// The mask's bytes; `None` where there was no NULL.
    pub(crate) fn finish(self) -> Option<Vec<u8>> {
        (!self.bytes.is_empty()).then_some(self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_until_the_first_null_and_then_every_row() {
        let mut mask = Mask::default();
        mask.extend(None, 2).unwrap();
        mask.extend(Some(&NullBuffer::new_valid(1)), 1).unwrap();
        assert_eq!(mask.bytes(), 0);
        mask.extend(Some(&NullBuffer::from(vec![true, false])), 2).unwrap();
        mask.extend(None, 1).unwrap();
        assert_eq!(mask.finish(), Some(vec![0, 0, 0, 0, 1, 0]));
    }

    #[test]
    fn a_null_in_the_first_row() {
        let mut mask = Mask::default();
        mask.extend(Some(&NullBuffer::new_null(1)), 1).unwrap();
        assert_eq!(mask.finish(), Some(vec![1]));
    }
}
