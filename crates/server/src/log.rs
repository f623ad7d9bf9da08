//! The log of a server's work, a JSON object a line on the standard error output: no data, no statement, no secret.

use std::io::Write;
use std::net::SocketAddr;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// The log, which may be off.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Log {
    pub(crate) is_on: bool,
}

/// One call that is under way, which tells its end.
pub(crate) struct Call {
    log: Log,
    name: &'static str,
    user: String,
    since: Instant,
}

impl Log {
    fn write(self, event: &str, rest: &str) {
        if !self.is_on {
            return;
        }
        let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
        let line = format!("{{\"time\":{time},\"event\":\"{event}\"{rest}}}\n");
        // No one may listen.
        let _ = std::io::stderr().write_all(line.as_bytes());
    }

    pub(crate) fn started(self, address: SocketAddr) {
        self.write("started", &format!(",\"address\":\"{address}\""));
    }

    pub(crate) fn stopped(self) {
        self.write("stopped", "");
    }

    pub(crate) fn failed(self, reason: &str) {
        self.write("failed", &format!(",\"reason\":{}", quoted(reason)));
    }

    pub(crate) fn refused(self, peer: Option<SocketAddr>) {
        let peer = peer.map(|peer| peer.ip().to_string()).unwrap_or_default();
        self.write("refused", &format!(",\"peer\":{}", quoted(&peer)));
    }

    pub(crate) fn call(self, name: &'static str, user: &str) -> Call {
        Call { log: self, name, user: user.to_owned(), since: Instant::now() }
    }
}

impl Call {
    /// Tells the end of the call: its rows, where there are any, and the code of its error.
    pub(crate) fn ended(&self, rows: Option<u64>, code: Option<tonic::Code>) {
        let rows = rows.map(|rows| format!(",\"rows\":{rows}")).unwrap_or_default();
        let code = code.map_or_else(|| "Ok".to_owned(), |code| format!("{code:?}"));
        let (user, millis) = (quoted(&self.user), self.since.elapsed().as_millis());
        self.log.write(
            self.name,
            &format!(",\"user\":{user},\"milliseconds\":{millis}{rows},\"status\":\"{code}\""),
        );
    }
}

fn quoted(text: &str) -> String {
    let escaped: String = text
        .chars()
        .map(|one| match one {
            '"' | '\\' => format!("\\{one}"),
            one if one.is_control() => format!("\\u{:04x}", u32::from(one)),
            one => one.to_string(),
        })
        .collect();
    format!("\"{escaped}\"")
}
