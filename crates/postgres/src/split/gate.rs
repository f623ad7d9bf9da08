//! A knot that the server does not see: a part waits for its lock behind somebody who waits for the coordinator, and the
//! coordinator waits for the part, but here and not there.
//!
//! So each session of a part holds a gate, and when nothing comes, the coordinator stands in front of it for as long as
//! the server takes to look for a deadlock. It finds a circle, and lets the part pass who waits in front of it.

use longshore_core::Result;

use super::savepoint;
use crate::connection::pipeline::Step;
use crate::session::PostgresSession;

/// Whether a session that holds the gate waits for a lock.
const IS_STUCK: &str = "\
SELECT EXISTS (SELECT FROM pg_catalog.pg_locks gate JOIN pg_catalog.pg_locks waiting ON waiting.pid = gate.pid \
    WHERE gate.locktype = 'advisory' AND gate.objsubid = 1 \
      AND gate.classid::int8 << 32 | gate.objid::int8 = $1::int8 AND NOT waiting.granted)";

/// A little longer than the server waits before it looks for a deadlock.
const PATIENCE: &str = "\
SELECT pg_catalog.set_config('statement_timeout', '0', true), \
       pg_catalog.set_config('lock_timeout', (setting::int + 300)::text, true) \
FROM pg_catalog.pg_settings WHERE name = 'deadlock_timeout'";

/// The advisory lock that the parts of one read share, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Gate(i64);

impl Gate {
    /// The gate of all who join `snapshot`.
    pub(super) fn of(snapshot: &str) -> Self {
        // FNV-1a, 64 bits: any hash that all sessions agree on.
        let hash = snapshot.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        Self(hash.cast_signed())
    }

    /// What a part's session runs to hold it.
    pub(super) fn hold(self) -> String {
        format!("SELECT pg_catalog.pg_advisory_xact_lock_shared({})", self.0)
    }

    /// Lets those pass who hold the gate and wait for a lock.
    pub(super) fn relieve(self, session: &mut PostgresSession) -> Result<()> {
        let is_stuck = Step::run(IS_STUCK).bind(&self.0.to_string());
        if session.connection.flight(&[is_stuck])?[0].cell(0, 0) != "t" {
            return Ok(());
        }
        let stand = format!("SELECT pg_catalog.pg_advisory_xact_lock({})", self.0);
        let steps = [Step::run(savepoint::SET), Step::run(PATIENCE), Step::run(stand)];
        match session.connection.flight(&steps) {
            Err(error) if !session.connection.is_usable() => Err(error),
            // It does not pass, and need not: what matters has happened.
            _ => savepoint::undo(session),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Gate;

    #[test]
    fn every_snapshot_has_a_gate_of_its_own() {
        let gates = ["00000003-0000001B-1", "00000003-0000001B-2", "00000004-0000001B-1"].map(Gate::of);
        assert!(gates[0] != gates[1] && gates[1] != gates[2] && gates[0] != gates[2]);
        assert_eq!(Gate::of("00000003-0000001B-1"), gates[0]);
    }
}
