//! The fields of a NumPy dtype, the columns of a statement, and which field takes which column.

use std::sync::Arc;

use crate::scale::{Rest, Scale};
use crate::step::{Action, Step};

/// One field of a structured dtype.
#[derive(Clone, Debug)]
pub struct Field {
    /// The form of the field's values.
    pub form: Form,
    /// Where it begins within a record.
    pub offset: usize,
    /// Its bytes.
    pub size: usize,
}

/// The form of a field's values, by NumPy's kinds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Form {
    /// `b`
    Bool,
    /// `i`
    Signed,
    /// `u`
    Unsigned,
    /// `f`
    Float,
    /// `M`
    Datetime(Unit),
    /// `m`
    Duration(Unit),
    /// `S`
    Bytes,
    /// `U`
    Characters,
    /// `V`: its parts, none where it is raw memory
    Void(Vec<Leaf>),
    /// `O`
    Object,
    /// Any other.
    Other,
}

/// The unit of a `datetime64` or `timedelta64`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unit {
    /// NumPy's word for it: `us`
    pub name: String,
    /// How many of it are one step: 25 in `[25us]`
    pub multiple: i64,
}

/// A number within a field that has several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leaf {
    /// NumPy's kind.
    pub kind: char,
    /// Its bytes.
    pub size: usize,
    /// Where it begins within the field.
    pub offset: usize,
}

/// One column of a statement.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// PostgreSQL's name of its type, where that is one of its own; else nothing.
    pub native: &'static str,
    /// Whether its cells come in the type's binary form, and not in its text.
    pub binary: bool,
}

/// The kind of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    Bool,
    /// So many bytes, with a sign.
    Integer(usize),
    /// Without one: oid and the like.
    Unsigned(usize),
    Float(usize),
    Text,
    /// Text after a byte that tells the version.
    Jsonb,
    Bytes,
    Uuid,
    /// A count of bits, and the bits.
    Bits,
    Date,
    Time,
    TimeTz,
    Timestamp,
    Interval,
    /// So many doubles.
    Doubles(usize),
    Tid,
    /// A value that only asyncpg decodes.
    Opaque,
}

impl Column {
    /// Whether it may be a NULL without a type: the server describes that as text.
    pub(crate) fn may_be_untyped(self) -> bool {
        matches!(self.native, "text" | "unknown")
    }

    pub(crate) fn class(self) -> Class {
        if !self.binary {
            return Class::Text;
        }
        match self.native {
            "bool" => Class::Bool,
            // "char" may hold a byte that is not text.
            "bytea" | "char" => Class::Bytes,
            "int2" => Class::Integer(2),
            "int4" => Class::Integer(4),
            "int8" => Class::Integer(8),
            "name" | "text" | "json" | "xml" | "unknown" | "bpchar" | "varchar" => Class::Text,
            "oid" | "xid" | "cid" | "regproc" | "regprocedure" | "regoper" | "regoperator" | "regclass"
            | "regtype" | "regconfig" | "regdictionary" | "regnamespace" | "regrole" | "regcollation" => {
                Class::Unsigned(4)
            }
            "pg_lsn" | "xid8" => Class::Unsigned(8),
            "float4" => Class::Float(4),
            "float8" => Class::Float(8),
            "tid" => Class::Tid,
            "point" => Class::Doubles(2),
            "line" | "circle" => Class::Doubles(3),
            "lseg" | "box" => Class::Doubles(4),
            "date" => Class::Date,
            "time" => Class::Time,
            "timetz" => Class::TimeTz,
            "timestamp" | "timestamptz" => Class::Timestamp,
            "interval" => Class::Interval,
            "bit" | "varbit" => Class::Bits,
            "uuid" => Class::Uuid,
            "jsonb" => Class::Jsonb,
            _ => Class::Opaque,
        }
    }
}

/// Why a dtype does not fit a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mismatch {
    /// The dtype and the statement have these numbers of columns.
    Count(usize, usize),
    /// The field of this index does not take its column.
    Field(usize),
}

/// The steps from `columns` into `fields`, one each.
pub fn plan(columns: &[Column], fields: &[Field]) -> Result<Vec<Step>, Mismatch> {
    if columns.len() != fields.len() {
        return Err(Mismatch::Count(fields.len(), columns.len()));
    }
    let pairs = columns.iter().zip(fields).enumerate();
    pairs.map(|(index, (column, field))| step(*column, field).ok_or(Mismatch::Field(index))).collect()
}

fn step(column: Column, field: &Field) -> Option<Step> {
    let action = action(column.class(), field)
        .or_else(|| (column.may_be_untyped() && has_null(field)).then_some(Action::Untyped))?;
    Some(Step::new(action, field.offset, field.size, null(action, field)))
}

/// Whether there is a NULL for the field, whatever its column is.
fn has_null(field: &Field) -> bool {
    match &field.form {
        Form::Bool | Form::Signed | Form::Unsigned | Form::Datetime(_) | Form::Duration(_) => true,
        Form::Float => matches!(field.size, 4 | 8),
        Form::Bytes | Form::Characters | Form::Void(_) => field.size > 0,
        Form::Object | Form::Other => false,
    }
}

fn action(class: Class, field: &Field) -> Option<Action> {
    match &field.form {
        Form::Object => Some(Action::Object),
        Form::Bool => (class == Class::Bool).then_some(Action::Bool),
        Form::Signed | Form::Unsigned | Form::Float => number(class, field),
        Form::Datetime(unit) => {
            let scale = Scale::of(unit, Rest::Floor)?;
            match class {
                Class::Timestamp => Some(Action::Timestamp(scale)),
                Class::Date => Some(Action::Date(scale)),
                _ => None,
            }
        }
        Form::Duration(unit) => {
            let scale = Scale::of(unit, Rest::Truncate)?;
            match class {
                Class::Time => Some(Action::Time(scale)),
                Class::TimeTz => Some(Action::TimeTz(scale)),
                Class::Interval => Some(Action::Interval(scale)),
                _ => None,
            }
        }
        // A field of no bytes at all would hold the empty text alone.
        Form::Bytes if field.size > 0 => bytes(class, field.size),
        Form::Characters if field.size > 0 => match class {
            Class::Text => Some(Action::Characters),
            Class::Jsonb => Some(Action::JsonCharacters),
            _ => None,
        },
        Form::Void(_) => void(class, field),
        _ => None,
    }
}

fn number(class: Class, field: &Field) -> Option<Action> {
    let (own, size) = match class {
        Class::Integer(size) => (Form::Signed, size),
        Class::Unsigned(size) => (Form::Unsigned, size),
        Class::Float(size) => (Form::Float, size),
        _ => return None,
    };
    let is_same = own == field.form;
    if size != field.size || (!is_same && (own == Form::Float || field.form == Form::Float)) {
        return None;
    }
    Some(match (size, is_same) {
        (2, true) => Action::Number2,
        (4, true) => Action::Number4,
        (_, true) => Action::Number8,
        (2, false) => Action::Half2,
        (4, false) => Action::Half4,
        (_, false) => Action::Half8,
    })
}

fn bytes(class: Class, size: usize) -> Option<Action> {
    match class {
        Class::Text => Some(Action::Text),
        Class::Jsonb => Some(Action::JsonText),
        Class::Bytes => Some(Action::Stripped),
        Class::Uuid if size == 16 => Some(Action::Stripped),
        Class::Bits => Some(Action::Bits),
        _ => None,
    }
}

fn void(class: Class, field: &Field) -> Option<Action> {
    let Form::Void(leaves) = &field.form else { return None };
    match class {
        Class::Bytes if leaves.is_empty() && field.size > 0 => Some(Action::Exact),
        Class::Uuid if leaves.is_empty() && field.size == 16 => Some(Action::Exact),
        Class::Doubles(count) => {
            let fit = leaves.is_empty() || are_doubles(leaves, field.size);
            (field.size == count * 8 && fit).then_some(Action::Doubles(count))
        }
        Class::Tid => match leaves.as_slice() {
            [] => (field.size == 6).then_some(Action::Tid(4, [false; 2])),
            [block, row] => {
                let whole = [block, row].iter().all(|leaf| matches!(leaf.kind, 'u' | 'i'));
                let sized = block.size == 4 && row.size == 2 && block.offset == 0;
                let signed = [block.kind == 'i', row.kind == 'i'];
                (whole && sized && row.offset + 2 <= field.size).then_some(Action::Tid(row.offset, signed))
            }
            _ => None,
        },
        _ => None,
    }
}

/// Whether so many bytes are these doubles, one after the other.
fn are_doubles(leaves: &[Leaf], size: usize) -> bool {
    let in_order = leaves.iter().enumerate();
    let mut fit =
        in_order.map(|(index, leaf)| leaf.kind == 'f' && leaf.size == 8 && leaf.offset == index * 8);
    leaves.len() * 8 == size && fit.all(|fits| fits)
}

/// The bytes that a field holds for NULL: asyncpg-rkt's values.
fn null(action: Action, field: &Field) -> Arc<[u8]> {
    let least = |size: usize| {
        let mut bytes = vec![0; size];
        if cfg!(target_endian = "little") {
            bytes[size - 1] = 0x80;
        } else {
            bytes[0] = 0x80;
        }
        bytes
    };
    match (&field.form, action) {
        (Form::Float, _) if field.size == 4 => f32::NAN.to_ne_bytes().into(),
        (Form::Float, _) => f64::NAN.to_ne_bytes().into(),
        (Form::Bytes, _) => vec![0xff; field.size].into(),
        (Form::Void(leaves), _) if !leaves.is_empty() && are_doubles(leaves, field.size) => {
            f64::NAN.to_ne_bytes().repeat(leaves.len()).into()
        }
        (Form::Void(_), Action::Doubles(count)) => f64::NAN.to_ne_bytes().repeat(count).into(),
        (Form::Void(_), _) => vec![0x80; field.size].into(),
        (Form::Characters | Form::Object, _) => vec![0; field.size].into(),
        _ => least(field.size).into(),
    }
}
