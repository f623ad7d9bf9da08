//! What the server and its session are, as far as a write has to know, and what a write sets for its time.

use longshore_core::{Error, Result};

use crate::connection::Connection;
use crate::dialect::literal;

/// Rows are refused, not changed; a 0 is no wish for a number; and quotes and backslashes mean one thing.
const MODES: &str = "STRICT_ALL_TABLES,NO_AUTO_VALUE_ON_ZERO,NO_ENGINE_SUBSTITUTION";

/// The server, and its session's own settings.
#[derive(Clone, Debug)]
pub(super) struct Server {
    pub(super) is_mariadb: bool,
    version: (u32, u32, u32),
    modes: String,
    pub(super) takes_files: bool,
    pub(super) longest: usize,
}

impl Server {
    /// Asks, and then sets what a write needs.
    pub(super) fn begin(connection: &mut Connection) -> Result<Self> {
        let rows = connection.rows("SELECT VERSION(), @@sql_mode, @@local_infile, @@max_allowed_packet")?;
        let Some([Some(version), modes, files, longest]) = rows.first().map(Vec::as_slice) else {
            return Err(Error::internal("the server says nothing of itself"));
        };
        let server = Self {
            is_mariadb: version.contains("MariaDB"),
            version: numbers(version),
            modes: modes.clone().unwrap_or_default(),
            takes_files: connection.offers_files() && files.as_deref() == Some("1"),
            longest: longest.as_deref().and_then(|text| text.parse().ok()).unwrap_or(1 << 20),
        };
        connection.run(&format!("SET sql_mode = '{MODES}'"))?;
        Ok(server)
    }

    /// Sets what was.
    pub(super) fn end(&self, connection: &mut Connection) -> Result<()> {
        connection.run(&format!("SET sql_mode = {}", literal(&self.modes)))
    }

    /// The collation of a new table: texts that differ in anything are different.
    pub(super) fn collation(&self) -> &'static str {
        match (self.is_mariadb, self.version) {
            (true, _) => "utf8mb4_nopad_bin",
            (false, (8, 0, 17..) | (8, 1.., _) | (9.., ..)) => "utf8mb4_0900_bin",
            (false, _) => "utf8mb4_bin",
        }
    }

    pub(super) fn uuid(&self) -> &'static str {
        match (self.is_mariadb, self.version) {
            (true, (10, 7.., _) | (11.., ..)) => "UUID",
            _ => "BINARY(16)",
        }
    }

    /// The most digits behind the point of a DECIMAL.
    pub(super) fn most_decimals(&self) -> i16 {
        if self.is_mariadb { 38 } else { 30 }
    }
}

/// The first three numbers of a version.
fn numbers(version: &str) -> (u32, u32, u32) {
    let mut parts =
        version.split(|letter: char| !letter.is_ascii_digit()).map(|part| part.parse().unwrap_or(0));
    let mut next = || parts.next().unwrap_or(0);
    (next(), next(), next())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_numbers() {
        assert_eq!(numbers("10.11.6-MariaDB-0+deb12u1-log"), (10, 11, 6));
        assert_eq!(numbers("8.0.15"), (8, 0, 15));
        assert_eq!(numbers("nothing"), (0, 0, 0));
    }
}
