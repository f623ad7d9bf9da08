//! Scripts: statements that the server itself tells apart.

use std::time::Duration;

use longshore_core::{Result, Watch};

use super::{Answer, Connection, Exchange, command};
use crate::packet::{HEADER, broken};

/// How long the server may take to set its option back, whatever the caller's own deadline is.
const SETTING: Duration = Duration::from_secs(2);

impl Connection {
    /// Runs the statements of a script. An error says which one has failed; a CALL counts as many as it has results.
    pub(crate) fn script(&mut self, text: &str) -> Result<()> {
        self.take_several(true)?;
        let mut done = 0;
        let ran = self.query(text).and_then(|()| self.results(&mut done));
        let ran = ran.map_err(|error| error.within(format!("statement {}", done + 1)));
        // For every other text the server takes one statement, as before.
        if ran.is_ok() || self.stop() {
            let watch = self.attend_for(Watch::never().at_most(SETTING));
            let set = self.take_several(false);
            self.attend(&watch);
            if set.is_err() {
                self.give_up();
            }
        }
        ran
    }

    /// Reads the results of all statements, and counts those that have ended well.
    fn results(&mut self, done: &mut usize) -> Result<()> {
        while self.exchange != Exchange::Idle {
            match self.answer()? {
                Answer::Done(_) => {}
                Answer::Columns(columns) => {
                    self.definitions(columns)?;
                    self.discard_rows()?;
                }
                Answer::File(_) => return Err(self.refuse_file()),
            }
            *done += 1;
        }
        Ok(())
    }

    /// Has the server take several statements in one text, or one.
    fn take_several(&mut self, several: bool) -> Result<()> {
        self.send(command::SET_OPTION, &u16::from(!several).to_le_bytes(), Exchange::Answer)?;
        let length = self.receive()?;
        match self.payload(length).first() {
            Some(0xff) => Err(self.take_error(length)),
            // The mark of an end without rows, or of a statement's.
            Some(0xfe | 0) => {
                self.consume(HEADER + length);
                self.exchange = Exchange::Idle;
                Ok(())
            }
            _ => Err(broken("an unknown answer to an option")),
        }
    }
}
