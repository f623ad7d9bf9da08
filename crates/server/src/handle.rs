//! The names by which clients hold what is theirs: handles, tickets and commands.

use arrow_flight::Ticket;
use arrow_flight::sql::{Any, Command, ProstMessageExt, TicketStatementQuery};
use prost::Message;
use tonic::Status;

use crate::status::not_flight_sql;

/// The text of a handle.
pub(crate) fn handle_text(handle: &[u8]) -> Result<String, Status> {
    std::str::from_utf8(handle)
        .map(str::to_owned)
        .map_err(|_| not_flight_sql("a handle is not one of this server's"))
}

/// A result's handle, and the number of the part.
pub(crate) fn split_handle(handle: &[u8]) -> Result<(String, usize), Status> {
    let text = handle_text(handle)?;
    let (result, part) =
        text.split_once('/').ok_or_else(|| not_flight_sql("a handle is not one of this server's"))?;
    let part = part
        .parse()
        .ok()
        .filter(|part| *part > 0)
        .ok_or_else(|| not_flight_sql("a part has a number from 1"))?;
    Ok((result.to_owned(), part))
}

/// The ticket of a part of a result.
pub(crate) fn ticket(handle: &str, part: usize) -> Ticket {
    let statement_handle = format!("{handle}/{part}").into();
    Ticket::new(TicketStatementQuery { statement_handle }.as_any().encode_to_vec())
}

/// The status of a part whose one reader has had it.
pub(crate) fn read_already() -> Status {
    Status::failed_precondition(
        "the part of the result has been read: each is read once; run the query again",
    )
}

/// The command in a descriptor or a ticket.
pub(crate) fn command(bytes: &[u8]) -> Result<Command, Status> {
    let any = Any::decode(bytes).map_err(not_flight_sql)?;
    Command::try_from(any).map_err(not_flight_sql)
}
