//! x
use crate::session::MySqlSession;
use longshore_core::*;
pub(crate) fn estimate(_: &mut MySqlSession, _: &Query) -> Result<Option<u64>> {
    Ok(None)
}
pub(crate) fn join(_: &mut MySqlSession, _: &str) -> Result<()> {
    Ok(())
}
pub(crate) fn split(_: &mut MySqlSession, _: &[Query], _: &Split, _: &ReadOptions) -> Result<Division> {
    Ok(Division::Serial("x".into()))
}
