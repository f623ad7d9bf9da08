//! Several queries: the caller's own parts.

use longshore_core::Query;
use longshore_source::NotSplit;

use super::moment::Moment;
use super::refusal::refuse;
use super::volatile;
use crate::connection::pipeline::Step;
use crate::session::PostgresSession;

/// The queries themselves, unless one of them cannot be read beside the others.
pub(super) fn parts(
    session: &mut PostgresSession,
    moment: &Moment,
    queries: &[Query],
) -> Result<Vec<Query>, NotSplit> {
    let uses = moment.queries.iter().map(|query| refuse(query, false, session.used));
    let lookups = uses.map(|uses| uses.map(|uses| uses.lookup())).collect::<Result<Vec<Step>, _>>()?;
    let answers = session.connection.flight(&lookups)?;
    match answers.iter().find_map(|answer| volatile::reason(&answer.rows)) {
        Some(reason) => Err(NotSplit::Reason(reason)),
        None => Ok(queries.to_vec()),
    }
}
