//! MySQL and MariaDB, and the servers that speak their wire.

mod authentication;
mod cancel;
mod channel;
mod connection;
mod decode;
mod dialect;
mod driver;
mod encode;
// Tests build it too, so that it keeps up with what it calls.
#[cfg(any(fuzzing, test))]
pub mod fuzzing;
mod handshake;
mod layout;
mod message;
mod packet;
mod reader;
mod rows;
mod rsa;
mod scramble;
mod session;
mod settings;
mod split;
mod startup;
mod types;
mod wanted;
mod warnings;
mod write;
mod zone;

pub use driver::MySql;
