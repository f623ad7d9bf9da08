//! The vocabulary that every source and every frame shares.
//!
//! Arrow record batches are the only waist: a source produces them, a frame consumes them. This crate holds
//! the words both sides speak, and knows no socket and no Python.

mod agreement;
mod batch;
mod catalogue;
mod chain;
mod connection;
mod deadline;
mod describe;
mod error;
mod jobs;
pub mod memory;
mod metadata;
mod open;
mod parallel;
mod partitions;
mod pool;
mod process;
mod progress;
mod query;
mod read;
mod read_ahead;
mod remedy;
mod secret;
mod session;
mod source;
mod split;
mod stream;
mod target;
mod texts;
mod typename;
mod warnings;
mod write;

pub use batch::{batch_of, finalise_columns};
pub use catalogue::{
    COLUMN, CONSTRAINT, CatalogueQueries, Current, Depth, ObjectFilter, PLACE, STATISTIC_NAMES,
    catalogue_batch, catalogue_queries, current, has_table, lacks_table, objects, statistics, table_types,
    temporary_schema, use_schema,
};
pub use connection::{Connection, execute_many, in_use};
pub use deadline::{CancelHandle, Deadline, Interrupt, Never};
pub use describe::{describe, parameters, partition, table_schema, tables};
pub use error::{Error, Kind, Place, Result};
pub use jobs::{lock, run_jobs};
pub use metadata::{DEFERRED, EXTENSION, EXTENSION_METADATA, NATIVE_TYPE, has_deferred, native_field};
pub use open::{Opened, Request, open_read};
pub use parallel::Delivery;
pub use partitions::{Partitions, execute_partitions, read_partition};
pub use pool::{Hold, Pool};
pub use process::Process;
pub use progress::{Listener, Meter, Progress};
pub use query::{Param, Params, Query, Value};
pub use read::{Decimals, OwnOptions, Protocol, ReadOptions, SourceOption, Unrepresentable, Uuids};
pub use read_ahead::ReadAhead;
pub use remedy::Placeholders;
pub use secret::{PasswordSource, Secret};
pub use session::{
    Batches, Collected, Column, Done, Driver, Failed, Finalised, Finaliser, Leasing, Loading, NOT_PREPARED,
    NOT_SPLIT, NoRows, ParameterSets, Preparing, SEVERAL, Scripting, Session, Splitting, Transaction,
    TransactionStatements, not_committed,
};
pub use source::{Direct, Lease, OneSession, Reservation, SessionFactory, Source};
pub use split::{Parts, Split, SplitPlan};
pub use stream::{LiveResult, Stream, give_up};
pub use target::{Target, percent_decode};
pub use texts::misencoded_row;
pub use typename::{parse_type, type_name};
pub use warnings::Warnings;
pub use write::{
    Frame, Frames, IfExists, Load, Quotes, Sink, Spread, Stage, TableName, Written, check_type, write,
};
