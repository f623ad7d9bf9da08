//! The text format of COPY: what its cells may not hold as it is.

/// Appends `cell` with backslashes before what would end or change it.
pub(super) fn escape(cell: &str, out: &mut Vec<u8>) {
    for byte in cell.bytes() {
        match byte {
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            _ => out.push(byte),
        }
    }
}
