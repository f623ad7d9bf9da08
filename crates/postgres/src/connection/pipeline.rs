//! Several statements in one flight: all are sent before the first is answered.

use longshore_core::{Error, Result};
use longshore_source::rows::VIOLATION;
use postgres_protocol::message::frontend;

use super::{Connection, Exchange, Prepared, TextRow, bind, zero_byte};

/// The bytes that may be under way before the answers are read. While the server waits for us to read, it does not read:
/// more than the sockets' buffers hold would be for ever on its way.
const UNDER_WAY: usize = 16 << 10;

/// One statement of a flight.
#[derive(Debug, Default)]
pub(crate) struct Step {
    text: String,
    /// The types of its parameters, where they are known.
    types: Vec<u32>,
    parameters: Vec<Option<Vec<u8>>>,
    /// Only described, not run.
    described: bool,
}

impl Step {
    pub(crate) fn run(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    pub(crate) fn describe(text: impl Into<String>) -> Self {
        Self { text: text.into(), described: true, ..Self::default() }
    }

    /// The same with `parameters`, in text, of `types`.
    pub(crate) fn with(mut self, types: &[u32], parameters: &[Option<Vec<u8>>]) -> Self {
        self.types = types.to_vec();
        self.parameters = parameters.to_vec();
        self
    }

    /// The same with one more parameter, whose type the server infers.
    pub(crate) fn bind(mut self, parameter: &str) -> Self {
        self.parameters.push(Some(parameter.as_bytes().to_vec()));
        self
    }

    /// The same with NULL as one more parameter.
    pub(crate) fn bind_null(mut self) -> Self {
        self.parameters.push(None);
        self
    }
}

/// The answer to a step.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    pub(crate) rows: Vec<TextRow>,
    /// The statement that a step described.
    pub(crate) prepared: Option<Prepared>,
}

impl Answer {
    /// A cell of its rows; empty where it is NULL or not there.
    pub(crate) fn cell(&self, row: usize, column: usize) -> &str {
        let cell = self.rows.get(row).and_then(|row| row.get(column));
        cell.and_then(Option::as_deref).unwrap_or_default()
    }
}

impl Connection {
    /// Binds and executes the unnamed statement with each of `sets`; returns how many rows all of them concerned.
    pub(crate) fn execute_each(
        &mut self,
        sets: impl Iterator<Item = Result<Vec<Option<Vec<u8>>>>>,
    ) -> Result<Option<u64>> {
        let mut rows = Some(0);
        for set in sets {
            self.enqueue_execution(&set?)?;
            if self.outbox.len() >= UNDER_WAY {
                rows = self.finish_executions(rows)?;
            }
        }
        self.finish_executions(rows)
    }

    /// Puts the execution of the unnamed statement with `parameters` into the outbox.
    pub(crate) fn enqueue_execution(&mut self, parameters: &[Option<Vec<u8>>]) -> Result<()> {
        bind("", "", parameters, &[], &mut self.outbox)?;
        frontend::execute("", 0, &mut self.outbox).map_err(|_| zero_byte("the statement"))
    }

    /// Sends what is in the outbox, whose few words of answer wait.
    pub(crate) fn send_executions(&mut self) -> Result<()> {
        self.flush(Exchange::Parsing)
    }

    /// `rows` and those that the executions since the last `Sync` concern.
    pub(crate) fn finish_executions(&mut self, mut rows: Option<u64>) -> Result<Option<u64>> {
        frontend::sync(&mut self.outbox);
        self.flush(Exchange::Extended)?;
        self.finish_with_tags(|tag| {
            let changed = tag.rsplit(' ').next().and_then(|last| last.parse::<u64>().ok());
            rows = rows.zip(changed).map(|(rows, changed)| rows + changed);
        })?;
        Ok(rows)
    }

    /// Runs `steps` one after the other and returns what each brought. The first that fails ends the flight; the
    /// connection can then be used again, unless it broke.
    pub(crate) fn flight(&mut self, steps: &[Step]) -> Result<Vec<Answer>> {
        let mut answers = Vec::with_capacity(steps.len());
        let flown = self.fly(steps, &mut answers).and_then(|()| self.finish());
        match flown {
            Ok(()) => Ok(answers),
            Err(error) => Err(self.land(error)),
        }
    }

    pub(crate) fn ask(&mut self, step: Step) -> Result<Answer> {
        Ok(self.flight(&[step])?.pop().unwrap_or_default())
    }

    /// Ends a failed flight, and gives `error` back.
    fn land(&mut self, error: Error) -> Error {
        self.outbox.clear();
        match self.exchange {
            Exchange::Parsing => self.recover(error),
            Exchange::Extended if error.sqlstate().is_some_and(|state| state != VIOLATION) => {
                // The first error is the one that tells.
                let _ = self.finish();
                error
            }
            _ => error,
        }
    }

    fn fly(&mut self, steps: &[Step], answers: &mut Vec<Answer>) -> Result<()> {
        for (index, step) in steps.iter().enumerate() {
            self.enqueue(step)?;
            if index + 1 == steps.len() {
                frontend::sync(&mut self.outbox);
                self.flush(Exchange::Extended)?;
            } else if self.outbox.len() >= UNDER_WAY {
                frontend::flush(&mut self.outbox);
                self.flush(Exchange::Parsing)?;
            } else {
                continue;
            }
            for sent in &steps[answers.len()..=index] {
                let answer = self.answer(sent)?;
                answers.push(answer);
            }
        }
        Ok(())
    }

    fn enqueue(&mut self, step: &Step) -> Result<()> {
        let no_zero = |_| zero_byte("the statement");
        self.unnamed = None;
        frontend::parse("", &step.text, step.types.iter().copied(), &mut self.outbox).map_err(no_zero)?;
        if step.described {
            return frontend::describe(b'S', "", &mut self.outbox).map_err(no_zero);
        }
        bind("", "", &step.parameters, &[], &mut self.outbox)?;
        frontend::execute("", 0, &mut self.outbox).map_err(no_zero)
    }

    fn answer(&mut self, step: &Step) -> Result<Answer> {
        if step.described {
            return Ok(Answer { rows: Vec::new(), prepared: Some(self.read_description()?) });
        }
        Ok(Answer { rows: self.text_rows()?, prepared: None })
    }
}
