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

    pub(crate) fn log_start(self, address: SocketAddr) {
        self.write("started", &format!(",\"address\":\"{address}\""));
    }

    pub(crate) fn log_stop(self) {
        self.write("stopped", "");
    }

    pub(crate) fn log_failure(self, reason: &str) {
        self.write("failed", &format!(",\"reason\":{}", quote(reason)));
    }

    pub(crate) fn log_refusal(self, peer: Option<SocketAddr>) {
        let peer = peer.map(|peer| peer.ip().to_string()).unwrap_or_default();
        self.write("refused", &format!(",\"peer\":{}", quote(&peer)));
    }

    pub(crate) fn call(self, name: &'static str, user: &str) -> Call {
        Call { log: self, name, user: user.to_owned(), since: Instant::now() }
    }
}

impl Call {
    /// Tells the end of the call: its rows, where there are any, and the code of its error.
    pub(crate) fn log_end(&self, rows: Option<u64>, code: Option<tonic::Code>) {
        let rows = rows.map(|rows| format!(",\"rows\":{rows}")).unwrap_or_default();
        let code = code.map_or_else(|| "Ok".to_owned(), |code| format!("{code:?}"));
        let (user, millis) = (quote(&self.user), self.since.elapsed().as_millis());
        self.log.write(
            self.name,
            &format!(",\"user\":{user},\"milliseconds\":{millis}{rows},\"status\":\"{code}\""),
        );
    }
}

fn quote(text: &str) -> String {
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
