//! The server's own warnings about what it has computed.

use longshore_core::{Result, Warnings};

use crate::connection::Connection;

/// The most warnings that are looked at: as many as a server keeps by default.
const MOST: u16 = 64;

/// Codes of warnings that are not about values: words and hints that the server deprecates, does not know or leaves out.
const NOT_OF_VALUES: [u16; 13] =
    [1064, 1287, 1681, 3126, 3127, 3128, 3129, 3130, 3131, 3132, 3133, 3719, 3778];

/// Has the warnings told that the last statement has left behind, one of each code.
pub(crate) fn tell(connection: &mut Connection, warnings: &Warnings) -> Result<()> {
    for row in connection.rows(&format!("SHOW WARNINGS LIMIT {MOST}"))? {
        let [Some(level), Some(code), Some(text)] = row.as_slice() else { continue };
        let is_of_values = code.parse().is_ok_and(|code| !NOT_OF_VALUES.contains(&code));
        if level != "Note" && is_of_values {
            warnings.tell(&format!("warning {code}"), format!("the server warns: {text} (warning {code})"));
        }
    }
    Ok(())
}
