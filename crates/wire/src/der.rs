//! The elements of DER (X.690).

/// The tag of a sequence.
pub const SEQUENCE: u8 = 0x30;

/// One element: tag, content, and the whole with its header.
pub struct Element<'a> {
    /// The kind of element.
    pub tag: u8,
    /// The bytes behind the header.
    pub content: &'a [u8],
    /// The header and the content.
    pub whole: &'a [u8],
}

/// Walks over the elements of a DER encoding, one level at a time; ends at the first broken one.
pub struct Walk<'a>(pub &'a [u8]);

impl<'a> Walk<'a> {
    /// The next element, if it has this tag.
    pub fn expect(&mut self, tag: u8) -> Option<Element<'a>> {
        self.next().filter(|element| element.tag == tag)
    }

    /// Enters a sequence.
    pub fn enter(&mut self) -> Option<Walk<'a>> {
        self.expect(SEQUENCE).map(|element| Walk(element.content))
    }
}

impl<'a> Iterator for Walk<'a> {
    type Item = Element<'a>;

    fn next(&mut self) -> Option<Element<'a>> {
        let (&[tag, first], mut rest) = self.0.split_first_chunk()?;
        let length = if first < 0x80 {
            usize::from(first)
        } else {
            // A length of lengths, of which four bytes are plenty for a certificate or a key.
            let count = usize::from(first & 0x7f);
            let (length, after) = rest.split_at_checked(count).filter(|_| (1..=4).contains(&count))?;
            rest = after;
            length.iter().fold(0, |length, byte| length << 8 | usize::from(*byte))
        };
        let (content, after) = rest.split_at_checked(length)?;
        let whole = self.0.get(..self.0.len() - after.len())?;
        self.0 = after;
        Some(Element { tag, content, whole })
    }
}
