//! Files as memory.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;

use arrow_buffer::Buffer;
use arrow_ipc::reader::FileDecoder;
use bytes::Bytes;
use memmap2::MmapOptions;

/// A private map of a whole file: what is written into its memory, where it is `writable`, reaches neither the file nor
/// another map of it.
pub(crate) fn map(file: &File, writable: bool) -> io::Result<Buffer> {
    let mut options = MmapOptions::new();
    let options = options.no_reserve_swap();
    // SAFETY: a chunk's file is never written to again once it has its name, and a vacuum only unlinks it.
    // The caller has compared its length with the catalogue's.
    let bytes = unsafe {
        if writable {
            Bytes::from_owner(options.map_copy(file)?)
        } else {
            Bytes::from_owner(options.map_copy_read_only(file)?)
        }
    };
    Ok(Buffer::from(bytes))
}

/// A decoder that does not look at the values: to look at every text would read the whole file.
pub(crate) fn trusting(decoder: FileDecoder) -> FileDecoder {
    // SAFETY: the file is one that this crate has written, by its length, schema and the bounds of its buffers; a check of the
    // store compares the contents with their checksum.
    unsafe { decoder.with_skip_validation(true) }
}
