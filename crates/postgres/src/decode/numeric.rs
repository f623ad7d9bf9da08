//! numeric: exact, to the nearest double, or deferred until the whole result tells the smallest exact type.
//!
//! Its binary form is `numeric_send`'s: the number of base-10,000 digits, the weight of the first, a sign word,
//! the display scale, then the digits, all 16 bits.

use std::fmt::Write;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{ArrowPrimitiveType, Decimal128Type, Decimal256Type};
use arrow_array::{Array, ArrayRef, BinaryArray, PrimitiveArray};
use arrow_schema::{DataType, FieldRef};
use longshore_core::{Error, Kind, Result, Unrepresentable};
use longshore_values::decimal::{
    self, ALWAYS_BACK, DecimalMisfit, DecimalType, Mantissa, beyond_double, exact_quotient, rescale, special,
};
use longshore_values::{CellFault, Losses, Misfit, fault};

use super::deferred::Part;
use crate::types::Format;

const NEGATIVE: u16 = 0x4000;
const NAN: u16 = 0xC000;
const INFINITY: u16 = 0xD000;
const NEGATIVE_INFINITY: u16 = 0xF000;

/// A numeric taken apart: `digits` in base 10,000, two bytes each, the last of which counts
/// `10_000^-places`; trailing zero digits never come from the server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Numeric<'a> {
    negative: bool,
    /// Base-10,000 places after the point; negative where zeros follow the digits.
    places: i32,
    digits: &'a [u8],
}

/// The value of a numeric cell.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Parsed<'a> {
    Finite(Numeric<'a>),
    Special(f64),
}

fn damage() -> Misfit {
    Misfit::fault("the server sent a damaged numeric")
}

/// Takes a binary cell apart.
#[inline]
pub(crate) fn parse(cell: &[u8]) -> Result<Parsed<'_>, Misfit> {
    let Some((header, digits)) = cell.split_first_chunk::<8>() else { return Err(damage()) };
    let ([count, weight, sign, _scale], _) = header.as_chunks::<2>() else { return Err(damage()) };
    let count = usize::from(u16::from_be_bytes(*count));
    let weight = i16::from_be_bytes(*weight);
    let sign = u16::from_be_bytes(*sign);
    if digits.len() != count * 2 {
        return Err(damage());
    }
    let places = i32::try_from(count).unwrap_or(i32::MAX) - 1 - i32::from(weight);
    match sign {
        0 | NEGATIVE => Ok(Parsed::Finite(Numeric { negative: sign == NEGATIVE, places, digits })),
        NAN => Ok(Parsed::Special(f64::NAN)),
        INFINITY => Ok(Parsed::Special(f64::INFINITY)),
        NEGATIVE_INFINITY => Ok(Parsed::Special(f64::NEG_INFINITY)),
        _ => Err(damage()),
    }
}

/// The binary cell as the integer of the decimal `to`.
#[inline]
pub(crate) fn binary<M: Mantissa>(to: DecimalType, cell: &[u8]) -> Result<M, Misfit> {
    let numeric = match parse(cell)? {
        Parsed::Finite(numeric) => numeric,
        Parsed::Special(value) => return Err(special(value, to.numeric_nan)),
    };
    let mantissa = numeric.at_scale::<M>(to).map_err(|misfit| misfit.of(&numeric.plain(), to))?;
    Ok(if numeric.negative { mantissa.negate() } else { mantissa })
}

impl Numeric<'_> {
    #[inline]
    fn digits(&self) -> impl Iterator<Item = i32> {
        self.digits.as_chunks::<2>().0.iter().map(|pair| i32::from(i16::from_be_bytes(*pair)))
    }

    fn at_scale<M: Mantissa>(&self, to: DecimalType) -> Result<M, DecimalMisfit> {
        let mut mantissa = M::ZERO;
        let shift = i32::from(to.scale) - 4 * self.places;
        let (last, whole) = if shift < 0 { (shift.unsigned_abs(), false) } else { (0, true) };
        let count = self.digits.len() / 2;
        for (index, digit) in self.digits().enumerate() {
            if !(0..10_000).contains(&digit) {
                return Err(DecimalMisfit::Damaged);
            }
            if !whole && index + 1 == count && last < 4 {
                // Only the last digit reaches beyond the scale: it is divided before it can overflow.
                let power = 10_i32.pow(last);
                if digit % power != 0 {
                    return Err(DecimalMisfit::Decimals);
                }
                mantissa = mantissa.times_plus(10_000 / power, digit / power).ok_or(DecimalMisfit::Digits)?;
                return if mantissa.fits(to.precision) { Ok(mantissa) } else { Err(DecimalMisfit::Digits) };
            }
            mantissa = mantissa.times_plus(10_000, digit).ok_or(DecimalMisfit::Digits)?;
        }
        rescale(mantissa, 4 * self.places, to)
    }

    /// The nearest double.
    #[inline]
    fn nearest(&self, losses: &mut Losses) -> Result<f64, Misfit> {
        if self.digits.len() <= 8 {
            let mantissa = self.digits().fold(0_i64, |acc, digit| acc * 10_000 + i64::from(digit));
            if let Some(value) = exact_quotient(mantissa, 4 * self.places)
                && (mantissa < ALWAYS_BACK.cast_signed() || !losses.looks())
            {
                return Ok(if self.negative { -value } else { value });
            }
        }
        // The standard library rounds a decimal text to the nearest double.
        match self.text().parse::<f64>() {
            Ok(value) if value.is_finite() => {
                if losses.looks() {
                    losses.look(&self.plain(), value);
                }
                Ok(value)
            }
            Ok(_) => Err(beyond_double()),
            Err(_) => Err(damage()),
        }
    }

    /// `[-]digitsE-places`, for the standard library's parser.
    fn text(&self) -> String {
        let mut text = String::with_capacity(self.digits.len() * 2 + 8);
        text.push_str(if self.negative { "-0" } else { "0" });
        self.push_digits(&mut text);
        // Writing to a String cannot fail.
        let _ = write!(text, "E{}", -4 * self.places);
        text
    }

    fn push_digits(&self, text: &mut String) {
        for digit in self.digits() {
            let _ = write!(text, "{digit:04}");
        }
    }

    /// The number as PostgreSQL writes it, but for zeros at its end.
    #[cold]
    fn plain(&self) -> String {
        let mut digits = String::new();
        self.push_digits(&mut digits);
        let places = usize::try_from(4 * self.places).unwrap_or_default();
        let zeros = usize::try_from(-4 * self.places).unwrap_or_default();
        let digits =
            format!("{}{digits}{}", "0".repeat((places + 1).saturating_sub(digits.len())), "0".repeat(zeros));
        let (whole, fraction) = digits.split_at(digits.len() - places);
        let whole = Some(whole.trim_start_matches('0')).filter(|whole| !whole.is_empty()).unwrap_or("0");
        let fraction = fraction.trim_end_matches('0');
        let point = if fraction.is_empty() { "" } else { "." };
        format!("{}{whole}{point}{fraction}", if self.negative { "-" } else { "" })
    }

    /// Decimal places after the point, and digits before it, without zeros at either end.
    pub(crate) fn extent(&self) -> (i32, i32) {
        let count = i32::try_from(self.digits.len() / 2).unwrap_or(i32::MAX);
        let mut digits = self.digits().enumerate().filter(|(_, digit)| *digit != 0);
        let Some((first, head)) = digits.next() else { return (0, 0) };
        let (last, tail) = digits.last().unwrap_or((first, head));
        let place = |index: usize| i32::try_from(index).unwrap_or(i32::MAX);
        let trailing = (0..4).take_while(|zeros| tail % 10_i32.pow(zeros + 1) == 0).count();
        let leading = i32::try_from(head.unsigned_abs().ilog10()).unwrap_or(0) + 1;
        let decimals = 4 * (self.places - (count - 1 - place(last))) - place(trailing);
        let whole = 4 * (count - 1 - place(first) - self.places) + leading;
        (decimals.max(0), whole.max(0))
    }
}

/// The double nearest to a binary cell.
#[inline]
pub(crate) fn double(cell: &[u8], policy: Unrepresentable, losses: &mut Losses) -> Result<f64, Misfit> {
    match parse(cell)? {
        Parsed::Finite(numeric) => numeric.nearest(losses),
        Parsed::Special(value) => Err(special(value, policy)),
    }
}

/// One array of numerics as they came.
pub(super) struct DeferredNumerics<'a> {
    pub(super) part: Part<'a>,
    pub(super) format: Format,
}

impl DeferredNumerics<'_> {
    pub(super) fn finalise(&self, arrays: Vec<ArrayRef>) -> Result<(FieldRef, Vec<ArrayRef>)> {
        let (mut decimals, mut whole) = (0, 0);
        for cell in arrays.iter().flat_map(AsArray::as_binary::<i32>).flatten() {
            let (cell_decimals, cell_whole) = self.extent(cell);
            decimals = decimals.max(cell_decimals);
            whole = whole.max(cell_whole);
        }
        let digits = decimals.saturating_add(whole);
        let scale =
            i8::try_from(decimals).ok().filter(|_| digits <= i32::from(self.part.options.decimal_digits));
        let Some(scale) = scale else { return Err(self.too_wide(whole, decimals)) };
        if digits <= 38 {
            return self.convert::<Decimal128Type>(arrays, 38, scale, DataType::Decimal128(38, scale));
        }
        self.convert::<Decimal256Type>(arrays, 76, scale, DataType::Decimal256(76, scale))
    }

    fn extent(&self, cell: &[u8]) -> (i32, i32) {
        match self.format {
            Format::Binary => match parse(cell) {
                Ok(Parsed::Finite(numeric)) => numeric.extent(),
                // Faults are found, with their row, by the conversion.
                Ok(Parsed::Special(_)) | Err(_) => (0, 0),
            },
            Format::Text => {
                let text = std::str::from_utf8(cell).unwrap_or_default();
                decimal::Text::parse(text).map_or((0, 0), |text| text.extent())
            }
        }
    }

    fn convert<T>(
        &self,
        arrays: Vec<ArrayRef>,
        precision: u8,
        scale: i8,
        to: DataType,
    ) -> Result<(FieldRef, Vec<ArrayRef>)>
    where
        T: ArrowPrimitiveType<Native: Mantissa>,
    {
        let decimal = DecimalType { precision, scale, numeric_nan: self.part.options.numeric_nan };
        let mut row = 0;
        let mut converted = Vec::with_capacity(arrays.len());
        // Each batch of cells is freed once its decimals are there.
        for array in arrays {
            self.part.options.budget.grow(array.len() * size_of::<T::Native>())?;
            let array = array.as_binary::<i32>();
            converted
                .push(Arc::new(self.cells::<T>(array, decimal, row)?.with_data_type(to.clone())) as ArrayRef);
            row += array.len() as u64;
        }
        Ok((self.part.with_type(to), converted))
    }

    fn cells<T>(&self, array: &BinaryArray, decimal: DecimalType, first: u64) -> Result<PrimitiveArray<T>>
    where
        T: ArrowPrimitiveType<Native: Mantissa>,
    {
        let read = |(row, cell): (u64, Option<&[u8]>)| match (cell, self.format) {
            (None, _) => Ok(None),
            (Some(cell), Format::Binary) => self.value(binary(decimal, cell), row),
            (Some(cell), Format::Text) => self.value(decimal.text(cell), row),
        };
        (first..).zip(array).map(read).collect()
    }

    fn value<M>(&self, parsed: Result<M, Misfit>, row: u64) -> Result<Option<M>> {
        let place = || self.part.place(Some(row));
        let refuse = |fault: CellFault| Err(fault.into_error(place()));
        parsed.map(Some).or_else(|misfit| fault(0, misfit).map_or(Ok(None), refuse))
    }

    fn too_wide(&self, whole: i32, decimals: i32) -> Error {
        let limit = self.part.options.decimal_digits;
        Error::new(
            Kind::Data,
            format!("its values need {whole} digits before the point and {decimals} after it; {limit} are the limit"),
        )
        .with_hint(format!(
            "choose a type with schema={{{:?}: \"string\"}}, \"float64\" or \"decimal128(38, <scale>)\"",
            self.part.column.name()
        ))
        .at(self.part.place(None))
    }
}

#[cfg(test)]
mod tests {
    use arrow_buffer::i256;

    use super::*;

    fn cell(weight: i16, sign: u16, digits: &[i16]) -> Vec<u8> {
        let count = u16::try_from(digits.len()).unwrap();
        let mut cell = Vec::new();
        cell.extend(count.to_be_bytes());
        cell.extend(weight.to_be_bytes());
        cell.extend(sign.to_be_bytes());
        cell.extend(0_u16.to_be_bytes());
        cell.extend(digits.iter().flat_map(|digit| digit.to_be_bytes()));
        cell
    }

    fn decimal(precision: u8, scale: i8) -> DecimalType {
        DecimalType { precision, scale, numeric_nan: Unrepresentable::Error }
    }

    #[test]
    fn decimals_are_exact_or_a_fault() {
        let price = cell(1, 0, &[1, 2345, 6700]);
        assert_eq!(binary::<i128>(decimal(15, 2), &price), Ok(1_234_567));
        assert_eq!(binary::<i128>(decimal(38, 20), &price), Ok(1_234_567 * 10_i128.pow(18)));
        assert!(matches!(binary::<i128>(decimal(15, 1), &price), Err(Misfit::Fault(_))));
        assert!(matches!(binary::<i128>(decimal(6, 2), &price), Err(Misfit::Fault(_))));
        let minus_hundred_million = cell(2, NEGATIVE, &[1]);
        assert_eq!(binary::<i128>(decimal(10, 0), &minus_hundred_million), Ok(-100_000_000));
        assert_eq!(
            binary::<i256>(decimal(76, 2), &minus_hundred_million),
            Ok(i256::from_i128(-10_000_000_000))
        );
        let widest = cell(9, 0, &[99, 9999, 9999, 9999, 9999, 9999, 9999, 9999, 9999, 9999]);
        assert_eq!(binary::<i128>(decimal(38, 0), &widest), Ok(10_i128.pow(38) - 1));
        assert!(matches!(binary::<i128>(decimal(38, 1), &widest), Err(Misfit::Fault(_))));
    }

    #[test]
    fn the_last_digit_is_cut_at_the_scale_before_it_overflows() {
        // 38 digits: 36 before the point, two after, where a whole base-10,000 digit would not fit.
        let value = cell(8, 0, &[9999, 9999, 9999, 9999, 9999, 9999, 9999, 9999, 9999, 9900]);
        assert_eq!(binary::<i128>(decimal(38, 2), &value), Ok(10_i128.pow(38) - 1));
    }

    #[test]
    fn doubles_are_the_nearest() {
        assert_eq!(double(&cell(0, 0, &[0, 1000]), Unrepresentable::Error, &mut Losses::default()), Ok(0.1));
        assert_eq!(
            double(&cell(1, NEGATIVE, &[1, 2345, 6700]), Unrepresentable::Error, &mut Losses::default()),
            Ok(-12_345.67)
        );
        assert_eq!(
            double(&cell(4, 0, &[1, 2, 3, 4, 5]), Unrepresentable::Error, &mut Losses::default()),
            Ok(10_002_000_300_040_005.0)
        );
        assert_eq!(
            double(&cell(0, NAN, &[]), Unrepresentable::Null, &mut Losses::default()),
            Err(Misfit::Null)
        );
        assert_eq!(double(&cell(0, 0, &[]), Unrepresentable::Error, &mut Losses::default()), Ok(0.0));
        assert!(matches!(
            double(&cell(100, 0, &[1]), Unrepresentable::Null, &mut Losses::default()),
            Err(Misfit::Fault(_))
        ));
    }

    #[test]
    fn extents_leave_zeros_out() {
        let extent = |cell: &[u8]| match parse(cell).unwrap() {
            Parsed::Finite(numeric) => numeric.extent(),
            Parsed::Special(_) => panic!("special"),
        };
        assert_eq!(extent(&cell(1, 0, &[1, 2345, 6700])), (2, 5));
        assert_eq!(extent(&cell(-1, 0, &[50])), (3, 0));
        assert_eq!(extent(&cell(2, 0, &[1])), (0, 9));
        assert_eq!(extent(&cell(0, 0, &[])), (0, 0));
    }

    #[test]
    fn faults_show_the_value() {
        let shown = |cell: &[u8], to: DecimalType| match binary::<i128>(to, cell) {
            Err(Misfit::Fault(fault)) => fault.0.to_string(),
            other => panic!("{other:?}"),
        };
        let price = cell(1, NEGATIVE, &[1, 2345, 6700]);
        assert_eq!(shown(&price, decimal(15, 1)), "-12345.67 has more than 1 decimals");
        assert_eq!(shown(&cell(-2, 0, &[1]), decimal(15, 1)), "0.00000001 has more than 1 decimals");
        assert_eq!(
            shown(&cell(2, 0, &[1]), decimal(5, 1)),
            "100000000 has more digits than decimal(5, 1) holds"
        );
    }

    #[test]
    fn damaged_cells_are_faults() {
        for bad in [&[][..], &[0, 1, 0, 0, 0, 0, 0, 0], &[0, 0, 0, 0, 0x12, 0, 0, 0]] {
            assert!(matches!(binary::<i128>(decimal(10, 2), bad), Err(Misfit::Fault(_))));
        }
    }
}
