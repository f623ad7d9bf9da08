//! Reads a payload field by field (MySQL Internals, "Basic Types"); every lack of bytes is a protocol error.

use longshore_core::Result;

use crate::packet::broken;

/// The fields of one payload, from its start.
#[derive(Clone, Debug)]
pub(crate) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) fn new(payload: &'a [u8]) -> Self {
        Self(payload)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn bytes(&mut self, count: usize) -> Result<&'a [u8]> {
        let (taken, rest) =
            self.0.split_at_checked(count).ok_or_else(|| broken("a message ends too early"))?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let (taken, rest) =
            self.0.split_first_chunk::<N>().ok_or_else(|| broken("a message ends too early"))?;
        self.0 = rest;
        Ok(*taken)
    }

    pub(crate) fn u8(&mut self) -> Result<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    pub(crate) fn u16(&mut self) -> Result<u16> {
        self.array().map(u16::from_le_bytes)
    }

    pub(crate) fn u32(&mut self) -> Result<u32> {
        self.array().map(u32::from_le_bytes)
    }

    /// A length-encoded integer.
    pub(crate) fn length(&mut self) -> Result<u64> {
        Ok(match self.u8()? {
            small @ 0..=0xfa => u64::from(small),
            0xfc => u64::from(self.u16()?),
            0xfd => {
                let [a, b, c] = self.array()?;
                u64::from(u32::from_le_bytes([a, b, c, 0]))
            }
            0xfe => u64::from_le_bytes(self.array()?),
            other => return Err(broken(format!("a length that starts with {other:#04x}"))),
        })
    }

    /// Bytes behind their length.
    pub(crate) fn counted(&mut self) -> Result<&'a [u8]> {
        let length = usize::try_from(self.length()?).map_err(|_| broken("a length beyond memory"))?;
        self.bytes(length)
    }

    /// The same; `None` for NULL in a text row.
    pub(crate) fn cell(&mut self) -> Result<Option<&'a [u8]>> {
        if self.0.first() == Some(&0xfb) {
            self.0 = &self.0[1..];
            return Ok(None);
        }
        self.counted().map(Some)
    }

    /// Text behind its length; what is no UTF-8 is replaced.
    pub(crate) fn text(&mut self) -> Result<String> {
        self.counted().map(|bytes| String::from_utf8_lossy(bytes).into_owned())
    }

    /// Bytes that end at a zero byte, or with the payload.
    pub(crate) fn until_zero(&mut self) -> &'a [u8] {
        let end = self.0.iter().position(|byte| *byte == 0);
        let taken = &self.0[..end.unwrap_or(self.0.len())];
        self.0 = end.map_or(&[], |end| &self.0[end + 1..]);
        taken
    }

    pub(crate) fn rest(self) -> &'a [u8] {
        self.0
    }
}

/// Appends an integer in its length-encoded form.
pub(crate) fn put_length(value: u64, into: &mut Vec<u8>) {
    let bytes = value.to_le_bytes();
    match value {
        0..=0xfa => into.push(bytes[0]),
        0xfb..=0xffff => {
            into.push(0xfc);
            into.extend(&bytes[..2]);
        }
        0x1_0000..=0xff_ffff => {
            into.push(0xfd);
            into.extend(&bytes[..3]);
        }
        _ => {
            into.push(0xfe);
            into.extend(bytes);
        }
    }
}

/// Appends bytes behind their length.
pub(crate) fn put_counted(bytes: &[u8], into: &mut Vec<u8>) {
    put_length(bytes.len() as u64, into);
    into.extend_from_slice(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_come_back_as_they_went() {
        for value in [0, 0xfa, 0xfb, 0xffff, 0x1_0000, 0xff_ffff, 0x100_0000, u64::MAX] {
            let mut bytes = Vec::new();
            put_length(value, &mut bytes);
            let mut reader = Reader::new(&bytes);
            assert_eq!(reader.length().unwrap(), value);
            assert!(reader.is_empty());
        }
        assert!(Reader::new(&[0xfb]).length().is_err() && Reader::new(&[0xff]).length().is_err());
        assert!(Reader::new(&[5, 1]).counted().is_err());
        assert_eq!(Reader::new(&[0xfb, 9]).cell().unwrap(), None);
    }
}
