//! `liblongshore_adbc.so`: Longshore's Rust sources as an ADBC 1.1.0 driver for every language that has a driver manager.
//!
//! `adbc_ffi` makes C functions of the traits of `adbc_core`; [`ffi`] adds what it lacks: errors of streams with their status
//! and details. No panic leaves a method of ours, as `adbc_ffi` would refuse every call after it.

mod bind;
mod call_lock;
mod connection;
mod database;
mod error;
mod ffi;
mod incoming;
mod info;
mod options;
mod rows;
mod statement;

use longshore_core::memory::Reserving;

/// Has what would end the process for want of memory be an error; see `docs/design/memory.md`.
#[global_allocator]
static ALLOCATOR: Reserving = Reserving;

/// The batches that a call gives.
type Reader = Box<dyn arrow_array::RecordBatchReader + Send>;
