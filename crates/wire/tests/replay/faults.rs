//! The outcomes that a conversation may have that is cut or garbled, whatever the source.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use arrow_array::{Int32Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};
use longshore_core::{
    Deadline, Driver, Error, IfExists, Kind, Load, Meter, Never, OwnOptions, Protocol, Query, ReadOptions,
    Result, TableName, Target,
};

use super::{Conversation, Count, Fault, Player, record};

/// A source, and where its conversations are.
pub(crate) struct Replay {
    pub(crate) driver: &'static dyn Driver,
    /// The URL of a connection over the Unix socket.
    pub(crate) url: fn(&Path) -> String,
    /// The name of its socket.
    pub(crate) socket: &'static str,
    pub(crate) count: Count,
    /// The environment's variable with the address of the server to be recorded.
    pub(crate) variable: String,
    /// Where the conversation is kept.
    pub(crate) file: PathBuf,
}

impl Replay {
    /// Reads `query`, cut and garbled at every byte: an error, or the right rows; a garbled value may be another one, but
    /// no row is lost.
    pub(crate) fn reads(&self, query: &str, protocol: Protocol, masks: &[u8]) {
        let read = |path: &Path| self.read(path, query, protocol);
        let (conversation, player) = self.player(&read);
        let right = player.under(Fault::None, || read(player.path())).unwrap();
        assert!(right.num_rows() > 0);
        let mut whole = 0;
        for byte in 0..conversation.size_before(0) {
            match player.under(Fault::Cut(byte), || read(player.path())) {
                Ok(got) => {
                    assert_eq!(got, right, "cut at {byte}");
                    whole += 1;
                }
                Err(error) => check(&error, &format!("cut at {byte}")),
            }
        }
        // The end marker is the last that is said.
        assert_eq!(whole, 0);
        // Most of the time of a garbled read is a wait.
        thread::scope(|scope| {
            let (conversation, right) = (&conversation, &right);
            for &mask in masks {
                scope.spawn(move || self.read_garbled(conversation, mask, right, read));
            }
        });
    }

    fn read_garbled(
        &self,
        conversation: &Conversation,
        mask: u8,
        right: &RecordBatch,
        read: impl Fn(&Path) -> Result<RecordBatch>,
    ) {
        let player = Player::new(conversation.clone(), self.socket, self.count);
        for byte in 0..conversation.size_before(0) {
            let place = format!("garbled by {mask:#x} at {byte}");
            match player.under(Fault::Garbled(byte, mask), || read(player.path())) {
                Ok(got) => assert_eq!(
                    (got.num_rows(), got.num_columns()),
                    (right.num_rows(), right.num_columns()),
                    "{place}"
                ),
                Err(error) => check(&error, &place),
            }
        }
    }

    /// Writes three rows into the table `recorded`, cut at every byte: a success once the server has said that they are
    /// committed, and not before. So many `answers` come after that one.
    pub(crate) fn writes(&self, answers: usize) {
        let write = |path: &Path| self.write(path);
        let (conversation, player) = self.player(&write);
        assert_eq!(player.under(Fault::None, || write(player.path())).unwrap(), 3);
        let committed = conversation.size_before(answers);
        for byte in 0..conversation.size_before(0) {
            let place = format!("cut at {byte}, committed at {committed}");
            match player.under(Fault::Cut(byte), || write(player.path())) {
                Ok(rows) => assert!(rows == 3 && byte >= committed, "{place}: a success"),
                Err(error) if byte < committed => check(&error, &place),
                Err(error) => panic!("{place}: {error}"),
            }
        }
    }

    /// The conversation, recorded again where there is a server for it.
    fn player<T>(&self, exchange: &dyn Fn(&Path) -> Result<T>) -> (Conversation, Player) {
        if let Ok(address) = std::env::var(&self.variable) {
            let conversation = record(&address, self.socket, |path| drop(exchange(path).unwrap()));
            conversation.store(&self.file);
        }
        let conversation = Conversation::load(&self.file);
        (conversation.clone(), Player::new(conversation, self.socket, self.count))
    }

    fn session(&self, path: &Path) -> Result<Box<dyn longshore_core::Session>> {
        let deadline = Deadline::new(Arc::new(Never), Some(Duration::from_secs(10)));
        self.driver.connect(&Target::from_url(&(self.url)(path))?, &deadline)
    }

    fn read(&self, path: &Path, query: &str, protocol: Protocol) -> Result<RecordBatch> {
        let options = ReadOptions { protocol, ..ReadOptions::default() };
        let mut batches = self.session(path)?.read(&Query::new(query), &options)?;
        let (Some(first), None) = (batches.next().transpose()?, batches.next().transpose()?) else {
            return Err(Error::internal("there is one batch"));
        };
        Ok(first)
    }

    fn write(&self, path: &Path) -> Result<u64> {
        let schema = Arc::new(Schema::new(vec![
            Field::new("id", DataType::Int32, true),
            Field::new("word", DataType::Utf8, true),
        ]));
        let ids = Int32Array::from(vec![Some(1), None, Some(3)]);
        let words = StringArray::from(vec![Some("one"), Some(""), None]);
        let batch = RecordBatch::try_new(schema.clone(), vec![Arc::new(ids), Arc::new(words)]).unwrap();
        let load = Load {
            table: TableName { schema: None, table: "recorded".to_owned() },
            schema,
            if_exists: IfExists::Append,
            key: Vec::new(),
            types: Vec::new(),
            own: OwnOptions::default(),
            meter: Arc::new(Meter::default()),
        };
        let Ok(session) = self.session(path)?.loading() else { panic!("the source is only read") };
        let mut sink = session.write(&load)?;
        sink.push(&batch)?;
        Ok(sink.commit()?.rows)
    }
}

/// A fault of the network is neither a fault of ours nor a wait without end.
fn check(error: &Error, place: &str) {
    let is_expected = !matches!(error.kind(), Kind::Internal | Kind::Timeout | Kind::Interrupted);
    assert!(is_expected, "{place}: {:?}: {error}", error.kind());
}
