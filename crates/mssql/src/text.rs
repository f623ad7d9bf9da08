//! Texts as the server sends them: UTF-16, or the code page of a collation.

use longshore_core::{Error, Result};
use longshore_values::Misfit;
use mssql_tds::datatypes::sql_string::{EncodingType, ResolvedEncoding};
use mssql_tds::encoding_rs::{self, DecoderResult};
use mssql_tds::token::tokens::SqlCollation;

/// How a column's texts are written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Encoding {
    Utf16,
    CodePage(ResolvedEncoding),
}

/// Locales of two different code pages, by which is told whether a collation's sort order has one of its own.
const JAPANESE: u32 = 0x0411;
const RUSSIAN: u32 = 0x0419;

/// The bits of a collation that are the locale.
const LOCALE: u32 = 0x000f_ffff;

impl Encoding {
    /// The encoding of a `collation`'s texts; an error where that is not known, which the client would guess.
    pub(crate) fn of(collation: Option<SqlCollation>) -> Result<Self> {
        let collation = collation.ok_or_else(|| unknown("a text without a collation"))?;
        let resolve = |collation| EncodingType::LcidBased(collation).resolved_encoding();
        let resolved = |locale| {
            let info = collation.info & !LOCALE | locale;
            resolve(SqlCollation {
                info,
                lcid_language_id: i32::try_from(locale).unwrap_or_default(),
                ..collation
            })
        };
        // Where the locale decides, it has to be one that is known.
        let locale = collation.info & LOCALE;
        let is_known = resolved(JAPANESE) == resolved(RUSSIAN)
            || resolved(locale) != Some(encoding_rs::WINDOWS_1252.into())
            || is_western(locale);
        match resolve(collation) {
            Some(encoding) if is_known => Ok(Self::CodePage(encoding)),
            _ => Err(unknown(&format!(
                "a text of the locale {locale:#06x}, whose code page is not known here"
            ))),
        }
    }

    /// Appends the text of `cell`.
    #[inline]
    pub(crate) fn append(self, cell: &[u8], into: &mut Vec<u8>) -> Result<(), Misfit> {
        match self {
            Self::Utf16 => utf16(cell, into),
            Self::CodePage(_) if cell.is_ascii() => {
                into.extend_from_slice(cell);
                Ok(())
            }
            Self::CodePage(encoding) => code_page(encoding, cell, into),
        }
    }
}

/// Whether Windows 1252 is the code page of `locale`, and not what the client takes for want of another.
fn is_western(locale: u32) -> bool {
    // The primary languages of the locales of code page 1252 (MS-LCID): those of western Europe, and those that took
    // their letters.
    const LANGUAGES: &[u32] = &[
        0x03, 0x06, 0x07, 0x09, 0x0a, 0x0b, 0x0c, 0x0f, 0x10, 0x13, 0x14, 0x16, 0x17, 0x1d, 0x21, 0x2d, 0x2e,
        0x36, 0x38, 0x3b, 0x3c, 0x3e, 0x41, 0x52, 0x56, 0x62, 0x64, 0x6e, 0x6f, 0x7a, 0x7c, 0x7e,
    ];
    LANGUAGES.contains(&(locale & 0x3ff))
}

#[cold]
fn unknown(what: &str) -> Error {
    Error::not_supported(format!("the server sends {what}"))
        .with_hint("cast the column in the query: CAST(... AS nvarchar(max))")
}

/// Appends UTF-16, low byte first; half a character is a fault.
pub(crate) fn utf16(cell: &[u8], into: &mut Vec<u8>) -> Result<(), Misfit> {
    let (units, odd) = cell.as_chunks::<2>();
    // A loop without a way out, which the compiler does for many units at once.
    let bits = units.iter().fold(0, |bits, unit| bits | u16::from_le_bytes(*unit));
    if bits < 0x80 && odd.is_empty() {
        into.extend(units.iter().map(|[low, _]| low));
        return Ok(());
    }
    let mut decoder = encoding_rs::UTF_16LE.new_decoder_without_bom_handling();
    let start = into.len();
    let most = decoder.max_utf8_buffer_length_without_replacement(cell.len()).unwrap_or_default();
    into.resize(start + most, 0);
    let (result, _, written) = decoder.decode_to_utf8_without_replacement(cell, &mut into[start..], true);
    into.truncate(start + written);
    if result == DecoderResult::InputEmpty { Ok(()) } else { Err(half_a_character(units)) }
}

/// Why `units` are not a text.
#[cold]
fn half_a_character(units: &[[u8; 2]]) -> Misfit {
    let units = units.iter().map(|unit| u16::from_le_bytes(*unit));
    match char::decode_utf16(units).find_map(Result::err) {
        Some(half) => Misfit::with_hint(
            format!("the text holds half a character: the surrogate U+{:04X}", half.unpaired_surrogate()),
            "read its bytes with CAST(... AS varbinary(max)) in the query",
        ),
        None => Misfit::fault("the server sent a text of UTF-16 with an odd number of bytes"),
    }
}

fn code_page(encoding: ResolvedEncoding, cell: &[u8], into: &mut Vec<u8>) -> Result<(), Misfit> {
    let (text, is_malformed) = encoding.decode_without_bom_handling(cell);
    if is_malformed || (encoding == encoding_rs::BIG5.into() && has_own_characters(cell)) {
        return Err(Misfit::with_hint(
            format!("the text holds bytes that are not characters of its code page, {}", encoding.name()),
            "read its bytes with CAST(... AS varbinary(max)) in the query",
        ));
    }
    into.extend_from_slice(text.as_bytes());
    Ok(())
}

/// Whether a text of code page 950 has characters that its users define, for which the web's table has others.
fn has_own_characters(cell: &[u8]) -> bool {
    let mut at = 0;
    while let Some(lead) = cell.get(at) {
        let trail = cell.get(at + 1).copied().unwrap_or_default();
        match lead {
            ..=0x80 => at += 1,
            0x81..=0xa0 | 0xc7 | 0xc8 | 0xfa..=0xff => return true,
            0xc6 if trail >= 0xa1 => return true,
            _ => at += 2,
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(encoding: Encoding, cell: &[u8]) -> Result<String, Misfit> {
        let mut into = Vec::new();
        encoding.append(cell, &mut into).map(|()| String::from_utf8(into).unwrap())
    }

    fn collation(locale: u32, sort_id: u8) -> SqlCollation {
        let [a, b, c, d] = locale.to_le_bytes();
        SqlCollation::try_from([a, b, c, d, sort_id].as_slice()).unwrap()
    }

    fn of(locale: u32, sort_id: u8) -> Result<Encoding> {
        Encoding::of(Some(collation(locale, sort_id)))
    }

    #[test]
    fn utf16_is_exact_or_a_fault() {
        for text in ["", "a", "abcd", "abcdefgh€ij", "größe", "🦀", "abcd🦀"] {
            let cell: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
            assert_eq!(read(Encoding::Utf16, &cell).unwrap(), text);
        }
        for damaged in [&[0x3c, 0xd8][..], &[0x00, 0xdc, 0x61, 0], &[0x61], &[0x61, 0, 0x3c]] {
            assert!(read(Encoding::Utf16, damaged).is_err());
        }
    }

    #[test]
    fn code_pages_are_those_of_the_collation() {
        assert_eq!(read(of(0x0409, 52).unwrap(), b"caf\xe9 \x80").unwrap(), "café €");
        assert_eq!(read(of(0x0409, 30).unwrap(), b"\x82").unwrap(), "é");
        assert_eq!(read(of(0x0419, 0).unwrap(), b"\xcc\xe8\xf0").unwrap(), "Мир");
        assert_eq!(read(of(0x0411, 0).unwrap(), b"\x93\xfa").unwrap(), "日");
        assert_eq!(read(of(0x0804, 0).unwrap(), b"\xc8\xd5").unwrap(), "日");
        assert_eq!(read(of(0x0404, 0).unwrap(), b"\xa4\xe9").unwrap(), "日");
        let utf8 = Encoding::of(Some(collation(0x0409 | 0x0400_0000, 0))).unwrap();
        assert_eq!(read(utf8, "日".as_bytes()).unwrap(), "日");
        assert!(read(utf8, b"\xff").is_err());
        assert!(read(of(0x0411, 0).unwrap(), b"\x93").is_err());
        assert!(read(of(0x0404, 0).unwrap(), b"\xfa\x40").is_err());
    }

    #[test]
    fn a_code_page_is_never_guessed() {
        assert!(Encoding::of(None).is_err());
        // Hindi has none but Unicode's.
        assert!(of(0x0439, 0).is_err());
        assert!(of(0xffff, 0).is_err());
        assert!(of(0x0407, 0).is_ok() && of(0x0c0a, 0).is_ok());
    }
}
