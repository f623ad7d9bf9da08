//! The parts of Flight SQL that Longshore's client and its server share and that arrow-flight lacks: [`ipc`] reads messages.

mod error;
pub mod ipc;
mod session;
mod texts;
mod wait;

pub use error::{SQLSTATE, error_of, set_error};
pub use session::{
    OptionError, OptionValue, SessionOptionValue, SessionOptions, SetSessionOptionsResult, TextList,
};
pub use wait::wait;

/// The header that asks for a result in so many parts.
pub const PARTS: &str = "longshore-parts";

/// The header that names a call: a client that has left it says so again by `CancelFlightInfo`, as the answer may have been sent.
pub const CALL: &str = "longshore-call";

/// The options of an ingestion beyond Flight's: the mode `truncate` or `upsert`.
pub const MODE: &str = "longshore.mode";

/// A column of an upsert's key, by its place in it, which follows.
pub const KEY: &str = "longshore.key.";

/// The database's type of a new table's column, whose name follows.
pub const TYPE: &str = "longshore.type.";

/// The `SqlInfo` of a server that knows the options of an ingestion: a number for servers' own. The server tells those of
/// Longshore to who asks for them alone: Apache's JDBC driver fails at a number that it does not know.
pub const INGESTION: u32 = 10_310;

/// The `SqlInfo` of the queries of a server's catalogue, by name and text in turn.
pub const CATALOGUE: u32 = 10_311;
