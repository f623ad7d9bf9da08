//! Cells from the client, one by one -> bytes in a buffer and where each lies, for the decoders of whole columns.

use std::borrow::Cow;

use longshore_values::{Span, Spans};
use mssql_tds::datatypes::column_values::{
    SqlDate, SqlDateTime, SqlDateTime2, SqlDateTimeOffset, SqlMoney, SqlSmallDateTime, SqlSmallMoney,
    SqlTime, SqlXml,
};
use mssql_tds::datatypes::decoder::DecimalParts;
use mssql_tds::datatypes::row_writer::RowWriter;
use mssql_tds::datatypes::sql_json::SqlJson;
use mssql_tds::datatypes::sql_string::EncodingType;
use mssql_tds::datatypes::sql_vector::SqlVector;
use uuid::Uuid;

use crate::temporal::{self, DAMAGED};
use crate::variant;

/// Takes the cells of rows. Each becomes the bytes that [`decode`](crate::decode) reads: numbers in their own width, low
/// byte first, decimals as 128 bits, times in ticks of 100 ns, texts as they came.
pub(crate) struct Sink<'a> {
    pub(crate) bytes: &'a mut Vec<u8>,
    pub(crate) spans: &'a mut Spans,
    /// Which columns are `sql_variant`s.
    pub(crate) variants: &'a [bool],
    /// Which columns have values that come in parts; empty where none has.
    pub(crate) in_parts: &'a [bool],
    /// Whether a cell lies beyond what a span can tell, or in no column.
    pub(crate) is_beyond: &'a mut bool,
    /// The rows that may be in it.
    pub(crate) most: usize,
    /// The column whose cell comes next.
    pub(crate) next: usize,
}

/// The bytes of rows that are decoded at once, but for a single one that has more.
pub(crate) const CHUNK: usize = 1 << 20;

impl Sink<'_> {
    /// Whether no further row is to be taken before those that are there are decoded.
    pub(crate) fn is_full(&self) -> bool {
        self.spans.rows() >= self.most || self.bytes.len() >= CHUNK
    }

    #[inline]
    fn put(&mut self, column: usize, type_head: impl FnOnce() -> variant::Head, cell: &[u8]) {
        let start = self.bytes.len();
        match self.variants.get(column) {
            Some(false) => {}
            Some(true) => type_head().write(self.bytes),
            None => return *self.is_beyond = true,
        }
        self.bytes.extend_from_slice(cell);
        match (u32::try_from(start), u32::try_from(self.bytes.len() - start)) {
            (Ok(start), Ok(length)) if length < u32::MAX => self.spans.set(column, Span::new(start, length)),
            _ => *self.is_beyond = true,
        }
        self.next = column + 1;
    }

    fn decimal(&mut self, column: usize, decimal: &DecimalParts) {
        let magnitude = i128::try_from(decimal.magnitude()).ok();
        let value = magnitude.map(|it| if decimal.is_positive { it } else { -it });
        let head = || variant::Head::Decimal(decimal.precision, decimal.scale);
        self.put(column, head, &value.unwrap_or(i128::MIN).to_le_bytes());
    }

    fn ticks(&mut self, column: usize, head: variant::Head, ticks: Option<i64>) {
        self.put(column, || head, &ticks.unwrap_or(DAMAGED).to_le_bytes());
    }
}

impl RowWriter for Sink<'_> {
    #[inline]
    fn write_null(&mut self, column: usize) {
        if column < self.variants.len() {
            self.spans.set(column, Span::NULL);
        } else {
            *self.is_beyond = true;
        }
        self.next = column + 1;
    }

    fn write_bool(&mut self, column: usize, value: bool) {
        self.put(column, || variant::Head::Bit, &[value.into()]);
    }

    fn write_u8(&mut self, column: usize, value: u8) {
        self.put(column, || variant::Head::UInt8, &[value]);
    }

    fn write_i16(&mut self, column: usize, value: i16) {
        self.put(column, || variant::Head::Int16, &value.to_le_bytes());
    }

    #[inline]
    fn write_i32(&mut self, column: usize, value: i32) {
        self.put(column, || variant::Head::Int32, &value.to_le_bytes());
    }

    #[inline]
    fn write_i64(&mut self, column: usize, value: i64) {
        self.put(column, || variant::Head::Int64, &value.to_le_bytes());
    }

    fn write_f32(&mut self, column: usize, value: f32) {
        self.put(column, || variant::Head::Float, &value.to_le_bytes());
    }

    #[inline]
    fn write_f64(&mut self, column: usize, value: f64) {
        self.put(column, || variant::Head::Double, &value.to_le_bytes());
    }

    #[inline]
    fn write_string(&mut self, column: usize, bytes: Cow<'_, [u8]>, encoding: EncodingType) {
        self.put(column, || variant::Head::Text(encoding), &bytes);
    }

    fn write_bytes(&mut self, column: usize, bytes: Cow<'_, [u8]>) {
        self.put(column, || variant::Head::Bytes, &bytes);
    }

    fn write_decimal(&mut self, column: usize, value: DecimalParts) {
        self.decimal(column, &value);
    }

    fn write_numeric(&mut self, column: usize, value: DecimalParts) {
        self.decimal(column, &value);
    }

    fn write_date(&mut self, column: usize, value: SqlDate) {
        let days = temporal::date(value.get_days()).unwrap_or(i32::MIN);
        self.put(column, || variant::Head::Date, &days.to_le_bytes());
    }

    fn write_time(&mut self, column: usize, value: SqlTime) {
        self.ticks(column, variant::Head::Time(value.scale), temporal::time(&value));
    }

    fn write_datetime(&mut self, column: usize, value: SqlDateTime) {
        self.ticks(column, variant::Head::DateTime(3), temporal::datetime(&value));
    }

    fn write_smalldatetime(&mut self, column: usize, value: SqlSmallDateTime) {
        self.ticks(column, variant::Head::DateTime(0), temporal::smalldatetime(&value));
    }

    fn write_datetime2(&mut self, column: usize, value: SqlDateTime2) {
        self.ticks(column, variant::Head::DateTime(value.time.scale), temporal::datetime2(&value));
    }

    /// The ticks, and behind them the minutes of the offset.
    fn write_datetimeoffset(&mut self, column: usize, value: SqlDateTimeOffset) {
        let ticks = temporal::datetime2(&value.datetime2).unwrap_or(DAMAGED);
        let mut cell = [0; 10];
        cell[..8].copy_from_slice(&ticks.to_le_bytes());
        cell[8..].copy_from_slice(&value.offset.to_le_bytes());
        let scale = value.datetime2.time.scale;
        self.put(column, || variant::Head::DateTimeOffset(scale), &cell);
    }

    fn write_money(&mut self, column: usize, value: SqlMoney) {
        let amount = i64::from(value.msb_part) << 32 | i64::from(value.lsb_part.cast_unsigned());
        self.put(column, || variant::Head::Decimal(19, 4), &i128::from(amount).to_le_bytes());
    }

    fn write_smallmoney(&mut self, column: usize, value: SqlSmallMoney) {
        self.put(column, || variant::Head::Decimal(10, 4), &i128::from(value.int_val).to_le_bytes());
    }

    fn write_uuid(&mut self, column: usize, value: Uuid) {
        self.put(column, || variant::Head::Uuid, value.as_bytes());
    }

    fn write_xml(&mut self, column: usize, value: SqlXml) {
        self.put(column, || variant::Head::Bytes, &value.bytes);
    }

    fn write_json(&mut self, column: usize, value: SqlJson) {
        self.put(column, || variant::Head::Bytes, &value.bytes);
    }

    fn write_vector(&mut self, column: usize, value: SqlVector) {
        let numbers = value.as_f32().unwrap_or_default();
        let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
        self.put(column, || variant::Head::Bytes, &bytes);
    }

    /// A byte between rows, so that one of NULLs alone has bytes, too.
    fn end_row(&mut self) {
        self.bytes.push(0);
        self.spans.end_row();
        self.next = 0;
    }
}
