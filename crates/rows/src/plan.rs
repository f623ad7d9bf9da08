//! Which field takes which column, and how.

use std::sync::Arc;

use crate::native::Class;
use crate::scale::{Rest, Scale};
use crate::step::{Action, Step};
use crate::{Column, Field, Form, Leaf};

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
        Form::Bool | Form::Signed | Form::Unsigned | Form::Instant(_) | Form::Duration(_) => true,
        Form::Float => matches!(field.size, 4 | 8),
        Form::Bytes | Form::Characters | Form::Void(_) => field.size > 0,
        Form::Object | Form::Other => false,
    }
}

fn action(class: Class, field: &Field) -> Option<Action> {
    match &field.form {
        Form::Object => Some(Action::Object),
        Form::Bool => (class == Class::Bool).then_some(Action::Bool),
        Form::Signed => signed(class, field.size),
        Form::Unsigned => unsigned(class, field.size),
        Form::Float => match (class, field.size) {
            (Class::Float4, 4) => Some(Action::Number4),
            (Class::Float8, 8) => Some(Action::Number8),
            _ => None,
        },
        Form::Instant(unit) => {
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

fn signed(class: Class, size: usize) -> Option<Action> {
    match (class, size) {
        (Class::Int2, 2) => Some(Action::Number2),
        (Class::Int4, 4) => Some(Action::Number4),
        (Class::Int8, 8) => Some(Action::Number8),
        (Class::Unsigned4, 4) => Some(Action::Half4),
        (Class::Unsigned8, 8) => Some(Action::Half8),
        _ => None,
    }
}

fn unsigned(class: Class, size: usize) -> Option<Action> {
    match (class, size) {
        (Class::Unsigned4, 4) => Some(Action::Number4),
        (Class::Unsigned8, 8) => Some(Action::Number8),
        (Class::Int2, 2) => Some(Action::Half2),
        (Class::Int4, 4) => Some(Action::Half4),
        (Class::Int8, 8) => Some(Action::Half8),
        _ => None,
    }
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

/// What a field holds for NULL: asyncpg-rkt's values.
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
