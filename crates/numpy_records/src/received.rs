//! The rows of one result, within the memory that they may take.

use longshore_core::Error;
use longshore_core::memory::{Budget, MemoryLimit, NoRoom};
use longshore_postgres::RowSink;

use crate::{Failure, Fault, Rows, Shape, Step};

/// Rows on their way into NumPy's memory, and what they may hold.
pub struct Received {
    rows: Rows,
    budget: Budget,
    /// Why no more are taken, where memory is why.
    no_room: Option<Error>,
}

impl Received {
    /// No rows yet, but room for as many as may come.
    #[must_use]
    pub fn new(steps: Vec<Step>, shape: &Shape, expected: u64) -> Self {
        let mut rows = Rows::new(steps, shape);
        rows.expect(expected);
        Self { rows, budget: Budget::new(MemoryLimit::Auto), no_room: None }
    }

    /// How many have come.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.rows.count()
    }

    /// What was wrong with the first row at fault; an error where there was no memory.
    pub fn failure(&mut self) -> Result<Option<Failure>, Error> {
        match self.rows.failure() {
            Some(failure) if failure.fault == Fault::NoRoom => {
                Err(self.no_room.take().unwrap_or_else(|| NoRoom.into()))
            }
            failure => Ok(failure),
        }
    }

    /// The memory of the records or of each block, and the indexes of the NULLs; there are no rows afterwards.
    pub fn finish(&mut self) -> (Vec<Vec<u8>>, Vec<u64>) {
        std::mem::replace(&mut self.rows, Rows::new(Vec::new(), &Shape::Records(0))).finish()
    }
}

impl RowSink for Received {
    fn push(&mut self, message: &[u8]) {
        if self.no_room.is_none()
            && let Err(error) = self.budget.grow(message.len())
        {
            self.rows.fail(None, Fault::NoRoom);
            self.no_room = Some(error);
        }
        self.rows.push(message);
    }

    fn take_objects(&mut self) -> Option<Vec<u8>> {
        self.rows.take_objects()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Column, Field, Form, plan};

    #[test]
    fn a_result_is_finished_once() {
        let column = Column { native: "int4", binary: true };
        let field = Field { form: Form::Signed, offset: 0, size: 4 };
        let steps = plan(&[column], &[field]).unwrap();
        let mut received = Received::new(steps, &Shape::Records(4), 2);
        received.push(b"D\0\0\0\x0e\0\x01\0\0\0\x04\0\0\0\x07");
        assert_eq!((received.count(), received.failure().unwrap()), (1, None));
        assert_eq!(received.finish(), (vec![7_i32.to_ne_bytes().to_vec()], vec![]));
        assert_eq!((received.count(), received.finish()), (0, (vec![vec![]], vec![])));
    }
}
