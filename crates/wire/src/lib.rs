//! The base of the network sources: sockets with TLS, and the receive buffer.

mod certificate;
pub mod der;
mod inbox;
mod low_water;
mod socket;
mod stream;
mod tls;
mod tunnel;
mod verifier;

pub use inbox::{Inbox, Incoming};
pub use socket::Socket;
pub use stream::{Address, Keepalive, peer_name};
pub use tls::{Identity, Tls, Verification, Versions};
