//! UUIDs as texts.

use std::fmt::Write;

use crate::fault::What;

/// Sixteen bytes in lower-case hexadecimal digits, in the five groups of RFC 9562.
// A text's maker may fail, though this one never does.
#[allow(clippy::unnecessary_wraps)]
pub(crate) fn text(bytes: &[u8]) -> Result<String, What> {
    let mut text = String::with_capacity(36);
    for (at, byte) in bytes.iter().enumerate() {
        if matches!(at, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        // A `String` takes every write.
        let _ = write!(text, "{byte:02x}");
    }
    Ok(text)
}
