//! Rows on their way to the server, in either of its two forms.

use std::io::Write;

use longshore_cells::push_decimal;

/// How rows are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// Lines of a file, whose texts are bytes without a character set.
    File,
    /// Literals of a statement, as `sql_mode` has them that `Session::write` sets.
    Literals,
}

/// Rows of one form.
#[derive(Debug)]
pub(super) struct Page {
    pub(super) bytes: Vec<u8>,
    form: Form,
}

impl Page {
    pub(super) fn new(form: Form) -> Self {
        Self { bytes: Vec::new(), form }
    }

    pub(super) fn form(&self) -> Form {
        self.form
    }

    pub(super) fn begin_row(&mut self) {
        if self.form == Form::Literals {
            self.bytes.push(b'(');
        }
    }

    pub(super) fn between(&mut self) {
        self.bytes.push(if self.form == Form::File { b'\t' } else { b',' });
    }

    pub(super) fn end_row(&mut self) {
        self.bytes.extend_from_slice(if self.form == Form::File { b"\n" } else { b")," });
    }

    pub(super) fn null(&mut self) {
        self.bytes.extend_from_slice(if self.form == Form::File { b"\\N" } else { b"NULL" });
    }

    pub(super) fn integer(&mut self, value: i128) {
        let Ok(small) = i64::try_from(value) else {
            self.display(value);
            return;
        };
        if small < 0 {
            self.bytes.push(b'-');
        }
        self.digits(small.unsigned_abs());
    }

    fn digits(&mut self, mut value: u64) {
        let (mut digits, mut at) = ([0_u8; 20], 20);
        loop {
            at -= 1;
            digits[at] = b'0' + u8::try_from(value % 10).unwrap_or_default();
            value /= 10;
            if value == 0 {
                break;
            }
        }
        self.bytes.extend_from_slice(&digits[at..]);
    }

    /// A decimal of `places` digits behind the point.
    pub(super) fn decimal(&mut self, value: i128, places: u8) {
        let beyond = u64::try_from(value.unsigned_abs()).ok().zip(10_u64.checked_pow(places.into()));
        let Some((digits, power)) = beyond else {
            let mut text = String::new();
            push_decimal(&mut text, &value.to_string(), i8::try_from(places).unwrap_or(i8::MAX));
            self.number(&text);
            return;
        };
        if value < 0 {
            self.bytes.push(b'-');
        }
        self.digits(digits / power);
        if places > 0 {
            self.bytes.push(b'.');
            let rest = digits % power;
            let missing = usize::from(places) - rest.checked_ilog10().map_or(1, |log| log as usize + 1);
            self.bytes.extend(std::iter::repeat_n(b'0', missing));
            self.digits(rest);
        }
    }

    /// A double, by the shortest text that is this one and no other.
    pub(super) fn double(&mut self, value: f64) {
        self.display(format_args!("{value:e}"));
    }

    fn display(&mut self, value: impl std::fmt::Display) {
        // A Vec takes all that is written.
        let _ = write!(self.bytes, "{value}");
    }

    /// A number's own digits.
    pub(super) fn number(&mut self, digits: &str) {
        self.bytes.extend_from_slice(digits.as_bytes());
    }

    /// Text that nothing has to be escaped in.
    pub(super) fn plain(&mut self, text: &str) {
        let quote: &[u8] = if self.form == Form::File { b"" } else { b"'" };
        self.bytes.extend_from_slice(quote);
        self.bytes.extend_from_slice(text.as_bytes());
        self.bytes.extend_from_slice(quote);
    }

    pub(super) fn text(&mut self, text: &str) {
        match self.form {
            Form::File => self.escaped(text.as_bytes(), in_file),
            Form::Literals => {
                self.bytes.push(b'\'');
                self.escaped(text.as_bytes(), in_literal);
                self.bytes.push(b'\'');
            }
        }
    }

    pub(super) fn raw(&mut self, bytes: &[u8]) {
        match self.form {
            Form::File => self.escaped(bytes, in_file),
            Form::Literals => {
                self.bytes.extend_from_slice(b"x'");
                let digit = |half: u8| b"0123456789abcdef"[usize::from(half)];
                self.bytes.extend(bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]));
                self.bytes.push(b'\'');
            }
        }
    }

    fn escaped(&mut self, bytes: &[u8], escape: fn(u8) -> Option<u8>) {
        let mut from = 0;
        for (at, byte) in bytes.iter().enumerate() {
            if let Some(letter) = escape(*byte) {
                self.bytes.extend_from_slice(&bytes[from..at]);
                self.bytes.extend_from_slice(&[b'\\', letter]);
                from = at + 1;
            }
        }
        self.bytes.extend_from_slice(&bytes[from..]);
    }
}

/// What follows the backslash, where a byte needs one.
#[inline]
fn in_file(byte: u8) -> Option<u8> {
    match byte {
        b'\\' => Some(b'\\'),
        b'\t' => Some(b't'),
        b'\n' => Some(b'n'),
        0 => Some(b'0'),
        _ => None,
    }
}

#[inline]
fn in_literal(byte: u8) -> Option<u8> {
    match byte {
        b'\\' => Some(b'\\'),
        b'\'' => Some(b'\''),
        0 => Some(b'0'),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(form: Form) -> String {
        let mut page = Page::new(form);
        page.begin_row();
        page.null();
        page.between();
        page.integer(i64::MIN.into());
        page.between();
        page.integer(u64::MAX.into());
        page.between();
        page.double(-1e300);
        page.between();
        page.decimal(-105, 2);
        page.between();
        page.decimal(100, 2);
        page.between();
        page.decimal(i128::MAX, 38);
        page.between();
        page.plain("2020-01-01");
        page.between();
        page.text("it's\ta\\b\n\0");
        page.between();
        page.raw(b"\xff\t");
        page.end_row();
        String::from_utf8_lossy(&page.bytes).into_owned()
    }

    #[test]
    fn what_would_end_a_cell_is_escaped() {
        assert_eq!(
            page(Form::File),
            "\\N\t-9223372036854775808\t18446744073709551615\t-1e300\t-1.05\t1.00\t1.70141183460469231731687303715884105727\t2020-01-01\tit's\\ta\\\\b\\n\\0\t\u{fffd}\\t\n"
        );
        assert_eq!(
            page(Form::Literals),
            "(NULL,-9223372036854775808,18446744073709551615,-1e300,-1.05,1.00,1.70141183460469231731687303715884105727,'2020-01-01','it\\'s\ta\\\\b\n\\0',x'ff09'),"
        );
    }
}
