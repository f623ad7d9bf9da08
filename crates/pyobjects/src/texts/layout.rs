//! Where the interpreter that runs keeps the parts of a `str`.
//!
//! The stable ABI has functions for the length and for the UTF-8, which the second writes to the object where the text is not
//! ASCII; where the characters lie, threads can read them without a call and without the interpreter's lock. The header has had
//! one order since Python 3.3. [`Layout::of`] takes what differs from `str` itself, and is `None` where a sample is kept in
//! another way.

use std::ffi::c_void;
use std::slice;

use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyString;

/// Where the number of characters is: behind what every object begins with.
const LENGTH: usize = size_of::<ffi::PyObject>();

/// Where the form is: behind the length and the hash.
const FORM: usize = LENGTH + 2 * size_of::<isize>();

/// The bits of the form that tell how characters are kept: their size, whether they are in the object itself, and whether
/// all are ASCII.
const BITS: u32 = 0b1_1111 << 2;
const ASCII: u32 = form(1) | 0b10 << 5;
const ONE: u32 = form(1);
const TWO: u32 = form(2);
const FOUR: u32 = form(4);

const fn form(size: u32) -> u32 {
    size << 2 | 1 << 5
}

/// Bytes in front of the characters.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    ascii: usize,
    other: usize,
    /// The address of the type `str`.
    text: usize,
}

/// The characters of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Characters<'a> {
    Ascii(&'a [u8]),
    One(&'a [u8]),
    Two(&'a [u16]),
    Four(&'a [u32]),
}

/// The first look at an object.
#[derive(Clone, Copy, Debug)]
pub(super) struct Head {
    object: *const c_void,
    length: usize,
    /// Zero for what is not a `str`, or of a class that inherits from it.
    form: u32,
}

impl Head {
    pub(super) const NONE: Self = Self { object: std::ptr::null(), length: 0, form: 0 };

    #[inline]
    pub(super) fn is_ascii(&self) -> bool {
        self.form == ASCII
    }

    #[inline]
    pub(super) fn length(&self) -> usize {
        self.length
    }

    /// The address of the object, or of nothing.
    #[inline]
    pub(super) fn address(&self) -> usize {
        self.object.addr()
    }
}

impl Layout {
    /// The layout of all texts, if it is known.
    pub(super) fn of(py: Python<'_>) -> Option<Self> {
        let text = py.get_type::<PyString>().as_type_ptr().addr();
        let before = |sample: &str| {
            let size: usize = sample_size(py, sample)?;
            let (characters, width) = (sample.chars().count(), width(sample));
            size.checked_sub((characters + 1) * width)
        };
        let layout = Self { ascii: before("ab")?, other: before("éa")?, text };
        let has_room = FORM + size_of::<u32>() <= layout.ascii && layout.ascii <= layout.other;
        let is_aligned = layout.other.is_multiple_of(size_of::<u32>());
        let is_known = cfg!(target_endian = "little") && has_room && is_aligned;
        (is_known && SAMPLES.iter().all(|sample| layout.is_of(py, sample))).then_some(layout)
    }

    /// Whether a text is kept in this way.
    #[allow(unsafe_code)]
    fn is_of(self, py: Python<'_>, sample: &str) -> bool {
        let before = if sample.is_ascii() { self.ascii } else { self.other };
        let length = sample.chars().count();
        if sample_size(py, sample) != Some(before + (length + 1) * width(sample)) {
            return false;
        }
        let object = PyString::new(py, sample);
        // SAFETY: the object is a `str`, and alive. Its own size says that what lies in front of the characters is in it.
        let head = unsafe { self.head(object.as_ptr().cast_const().cast()) };
        if head.length != length || head.form != expected(sample) {
            return false;
        }
        // SAFETY: the object is alive, and its own size says that as many characters of this size are in it.
        let found = unsafe { self.characters(&head) };
        found.is_some_and(|found| found.is(sample))
    }

    /// Looks at an object.
    ///
    /// # Safety
    ///
    /// `object` is alive meanwhile, and if it is a `str`, this is its layout.
    #[inline]
    #[allow(unsafe_code)]
    pub(super) unsafe fn head(self, object: *const c_void) -> Head {
        // SAFETY: every object has a type, and a `str` has a length and a form in front of its characters. The length is not negative.
        unsafe {
            if ffi::Py_TYPE(object.cast_mut().cast()).addr() != self.text {
                return Head { object, length: 0, form: 0 };
            }
            let length = object.byte_add(LENGTH).cast::<usize>().read();
            let form = object.byte_add(FORM).cast::<u32>().read() & BITS;
            Head { object, length, form }
        }
    }

    /// Arrow's view of a text of ASCII that has twelve characters or less.
    ///
    /// # Safety
    ///
    /// The object is alive, this is its layout, and the text is such a one.
    #[inline]
    #[allow(unsafe_code)]
    pub(super) unsafe fn inline(self, head: &Head) -> u128 {
        // SAFETY: the characters lie in the object, and in front of them what every text has: more than sixteen bytes.
        let end = unsafe {
            head.object.byte_add(self.ascii + head.length).byte_sub(16).cast::<u128>().read_unaligned()
        };
        ((end >> 32) >> (8 * (12 - head.length))) << 32 | head.length as u128
    }

    /// The characters of a text of ASCII.
    ///
    /// # Safety
    ///
    /// The object is alive as long as the characters are used, this is its layout, and its text is of ASCII.
    #[inline]
    #[allow(unsafe_code)]
    pub(super) unsafe fn ascii<'a>(self, head: &Head) -> &'a [u8] {
        // SAFETY: so many characters of a byte lie in the object, from the layout's place on; they never change.
        unsafe { slice::from_raw_parts(head.object.byte_add(self.ascii).cast(), head.length) }
    }

    /// The characters of an object that was looked at; `None` if they are not in the object itself, or there are none.
    ///
    /// # Safety
    ///
    /// The object is alive as long as the characters are used, and this is its layout.
    #[inline]
    #[allow(unsafe_code)]
    pub(super) unsafe fn characters<'a>(self, head: &Head) -> Option<Characters<'a>> {
        // SAFETY: the form says how large the characters are and that they lie in the object, from the layout's place on; they never
        // change. An object lies at a multiple of a pointer's size, and so the characters at one of theirs.
        unsafe {
            Some(match head.form {
                ASCII => Characters::Ascii(self.ascii(head)),
                ONE => Characters::One(slice::from_raw_parts(
                    head.object.byte_add(self.other).cast(),
                    head.length,
                )),
                TWO => Characters::Two(slice::from_raw_parts(
                    head.object.byte_add(self.other).cast(),
                    head.length,
                )),
                FOUR => Characters::Four(slice::from_raw_parts(
                    head.object.byte_add(self.other).cast(),
                    head.length,
                )),
                _ => return None,
            })
        }
    }
}

/// Bytes that the processor fetches at a time.
#[cfg(target_arch = "x86_64")]
const LINE: usize = 64;

/// Has the processor fetch the beginning of an object that will be looked at soon, and of its characters.
#[inline]
#[allow(unsafe_code)]
pub(super) fn fetch(object: *const c_void) {
    // SAFETY: to fetch ahead reads nothing, wherever the address leads.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(object.cast());
        _mm_prefetch::<_MM_HINT_T0>(object.wrapping_byte_add(LINE).cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = object;
}

/// Every form, with lengths that could be taken for one. Of texts of one letter or none Python has one object for all, whose
/// size may be larger by the UTF-8 that it keeps for them.
const SAMPLES: [&str; 10] =
    ["ab", "~~~", "abcd", "éa", "ÿÿÿ", "\u{100}a", "日本語", "\u{ffff}\u{ffff}", "😀a", "a😀\u{10ffff}"];

/// What Python says that a text takes.
fn sample_size(py: Python<'_>, sample: &str) -> Option<usize> {
    PyString::new(py, sample).call_method0(intern!(py, "__sizeof__")).ok()?.extract().ok()
}

fn width(sample: &str) -> usize {
    match sample.chars().max() {
        Some('\u{100}'..='\u{ffff}') => 2,
        Some('\u{10000}'..) => 4,
        _ => 1,
    }
}

fn expected(sample: &str) -> u32 {
    match width(sample) {
        _ if sample.is_ascii() => ASCII,
        1 => ONE,
        2 => TWO,
        _ => FOUR,
    }
}

impl Characters<'_> {
    fn is(&self, sample: &str) -> bool {
        let wanted = sample.chars().map(u32::from);
        match *self {
            Self::Ascii(found) | Self::One(found) => found.iter().map(|found| u32::from(*found)).eq(wanted),
            Self::Two(found) => found.iter().map(|found| u32::from(*found)).eq(wanted),
            Self::Four(found) => found.iter().copied().eq(wanted),
        }
    }
}
