//! What the network sources share: sockets with TLS, the receive buffer, cells and their decoders' trait.

mod cells;
mod certificate;
mod decoder;
mod inbox;
mod low_water;
mod socket;
mod stream;
mod tls;
mod tunnel;
mod verifier;

pub use cells::{Cells, Span, Spans};
pub use decoder::{CellFault, Decoder, Odd};
pub use inbox::Inbox;
pub use socket::Socket;
pub use stream::{Address, Keepalive};
pub use tls::{Identity, Tls, Verification, Versions};
