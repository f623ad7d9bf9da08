//! Batches that wait on the disk, in files without a name: nothing is left of a server that is killed.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::sync::{Arc, Mutex};

use arrow_array::RecordBatch;
use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::StreamWriter;
use longshore_core::{Error, Result, lock};

/// The bytes after which a file is followed by another: its room is given back once all of it is read.
const SEGMENT: u64 = 64 << 20;

/// Writes batches, one after another.
#[derive(Default)]
pub(crate) struct Spill {
    segment: Option<Segment>,
}

struct Segment {
    file: Arc<Mutex<File>>,
    length: u64,
}

/// A batch on the disk.
pub(crate) struct Spilled {
    file: Arc<Mutex<File>>,
    at: u64,
    pub(crate) length: usize,
}

impl Spill {
    pub(crate) fn write(&mut self, batch: &RecordBatch) -> Result<Spilled> {
        let bytes = encode(batch)?;
        self.append(&bytes).map_err(|error| failure(&error))
    }

    fn append(&mut self, bytes: &[u8]) -> std::io::Result<Spilled> {
        let segment = match self.segment.take() {
            Some(segment) if segment.length < SEGMENT => self.segment.insert(segment),
            _ => {
                self.segment.insert(Segment { file: Arc::new(Mutex::new(tempfile::tempfile()?)), length: 0 })
            }
        };
        let at = segment.length;
        {
            let mut file = lock(&segment.file);
            file.seek(SeekFrom::Start(at))?;
            file.write_all(bytes)?;
        }
        segment.length += bytes.len() as u64;
        Ok(Spilled { file: segment.file.clone(), at, length: bytes.len() })
    }
}

impl Spilled {
    pub(crate) fn read(&self) -> Result<RecordBatch> {
        let mut bytes = vec![0; self.length];
        let mut read = || {
            let mut file = lock(&self.file);
            file.seek(SeekFrom::Start(self.at))?;
            file.read_exact(&mut bytes)
        };
        read().map_err(|error| failure(&error))?;
        decode(&bytes)
    }
}

fn failure(error: &std::io::Error) -> Error {
    Error::operational(format!("the parts of a result cannot wait on the disk: {error}"))
        .with_sqlstate("53100")
}

fn encode(batch: &RecordBatch) -> Result<Vec<u8>> {
    let broken = |error: arrow_schema::ArrowError| Error::internal(error.to_string());
    let mut writer = StreamWriter::try_new(Vec::new(), &batch.schema()).map_err(broken)?;
    writer.write(batch).map_err(broken)?;
    writer.into_inner().map_err(broken)
}

fn decode(bytes: &[u8]) -> Result<RecordBatch> {
    let broken = |error: arrow_schema::ArrowError| Error::internal(error.to_string());
    let mut reader = StreamReader::try_new(bytes, None).map_err(broken)?;
    reader.next().ok_or_else(|| Error::internal("a batch has gone on the disk"))?.map_err(broken)
}

#[cfg(test)]
mod tests {
    use arrow_array::{ArrayRef, Int64Array};

    use super::*;

    #[test]
    fn batches_come_back_from_several_files_in_any_order() {
        let batch = |start: i64| {
            let column: ArrayRef = Arc::new(Int64Array::from_iter_values(start..start + 1_000));
            RecordBatch::try_from_iter([("n", column)]).unwrap()
        };
        let mut spill = Spill::default();
        let mut spilled = Vec::new();
        for number in 0..6 {
            spilled.push((number, spill.write(&batch(number)).unwrap()));
            if let Some(segment) = spill.segment.as_mut().filter(|_| number == 2) {
                segment.length = SEGMENT;
            }
        }
        let starts: Vec<bool> = spilled.iter().map(|(_, spilled)| spilled.at == 0).collect();
        assert_eq!(starts, [true, false, false, true, false, false]);
        spilled.reverse();
        for (number, spilled) in spilled {
            assert_eq!(spilled.read().unwrap(), batch(number));
        }
    }
}
