//! From what was seen to the one type.

use std::collections::HashSet;

use crate::fault::Fault;
use crate::kind::{Kind, NARROW, WIDE};
use crate::read::Extent;
use crate::seen::{Integers, Members, Seen, What};

/// The most bytes that Arrow's plain texts have in an array.
const PLAIN: u64 = i32::MAX as u64;

/// The type of all rows of a column. Scalars must be of one; with dicts or lists among them JSON does as well, unless
/// `as_text` has another form for what is of no one type.
pub(crate) fn column(seen: &Seen, as_text: bool) -> Result<Kind, Fault> {
    match one(seen)? {
        Ok(kind) => Ok(kind),
        Err(_) if !as_text && (seen.has(What::List) || seen.has(What::Dict)) => json(seen),
        Err(clash) => Err(clash),
    }
}

/// The type of what lies in dicts and lists.
fn inner(seen: &Seen) -> Result<Kind, Fault> {
    match one(seen)? {
        Ok(kind) => Ok(kind),
        Err(_) => json(seen),
    }
}

/// The one type of all values, or why there is none. What lies below them may have none at all.
fn one(seen: &Seen) -> Result<Result<Kind, Fault>, Fault> {
    let kinds = seen.kinds();
    let whats: Vec<What> = kinds.iter().map(|(what, _)| *what).collect();
    let large = seen.size > PLAIN;
    Ok(Ok(match whats.as_slice() {
        [] => Kind::Null,
        [What::Bool] => Kind::Bool,
        [What::Int] => return Ok(integers(&seen.integers)),
        [What::Float] => Kind::Float64,
        [What::Int, What::Float] | [What::Float, What::Int] => return Ok(floats(seen)),
        [What::Decimal] | [What::Int, What::Decimal] | [What::Decimal, What::Int] => {
            return Ok(decimals(seen));
        }
        [What::Text] => Kind::Text { large },
        [What::Bytes] => Kind::Bytes { large },
        [What::Date] => Kind::Date,
        [What::Naive] => Kind::Timestamp { utc: false },
        [What::Instant] => Kind::Timestamp { utc: true },
        [What::Time] => Kind::Time,
        [What::Duration] => Kind::Duration,
        [What::Uuid] => Kind::Uuid,
        [What::Interval] => Kind::Interval,
        [What::List] => Kind::List(Box::new(items(seen)?)),
        [What::Dict] => return members(seen).map(Ok),
        [first, .., _] => return Ok(Err(clash(&kinds, *first))),
    }))
}

#[cold]
fn clash(kinds: &[(What, usize)], first: What) -> Fault {
    let (what, row) = kinds[1];
    let message = format!(
        "it is {}, while row {} is {}: the objects are of no one type",
        what.name(),
        kinds[0].1,
        first.name()
    );
    Fault::new(row, message)
        .with_hint("convert the column, or take the text of each with options={\"objects\": \"text\"}")
}

fn integers(integers: &Integers) -> Result<Kind, Fault> {
    let bound = 10_i128.pow(u32::from(NARROW));
    if i64::try_from(integers.least).is_ok()
        && i64::try_from(integers.most).is_ok()
        && integers.beyond.is_none()
    {
        return Ok(Kind::Int64);
    }
    if let Some(row) = integers.beyond {
        return Err(too_long(row));
    }
    if integers.least >= 0 && u64::try_from(integers.most).is_ok() {
        return Ok(Kind::UInt64);
    }
    if -bound < integers.least && integers.most < bound {
        return Ok(Kind::Decimal(NARROW, 0));
    }
    Ok(Kind::Decimal(WIDE, 0))
}

#[cold]
fn too_long(row: usize) -> Fault {
    Fault::new(row, "the integer has more than 128 bits")
        .with_hint("convert the column to text, or to float where that is near enough")
}

fn floats(seen: &Seen) -> Result<Kind, Fault> {
    let Some(row) = seen.integers.inexact else { return Ok(Kind::Float64) };
    Err(Fault::new(row, "the column also holds floats, and no float of 64 bits equals this integer")
        .with_hint("make Decimals of the column, or convert it to float where that is near enough"))
}

fn decimals(seen: &Seen) -> Result<Kind, Fault> {
    if let Some(row) = seen.decimals.infinite {
        return Err(Fault::new(row, "NaN and infinity have no exact decimal")
            .with_hint("replace them by None, or convert the column to float"));
    }
    if let Some(row) = seen.integers.beyond {
        return Err(too_long(row));
    }
    let mut extent = seen.decimals.extent;
    extent.merge(Extent { whole: digits(&seen.integers), scale: 0 });
    let precision = extent.whole.saturating_add(extent.scale).max(1);
    match (u8::try_from(precision), i8::try_from(extent.scale)) {
        (Ok(precision), Ok(scale)) if precision <= WIDE => Ok(Kind::Decimal(precision, scale)),
        _ => {
            let row = seen.decimals.beyond.or_else(|| seen.kinds().last().map(|(_, row)| *row));
            Err(Fault::new(
                row.unwrap_or(0),
                "the decimals have more than 76 digits before and after the point",
            )
            .with_hint("round them, or convert the column to text"))
        }
    }
}

/// The digits of the longest integer.
fn digits(integers: &Integers) -> u32 {
    let longest = integers.least.unsigned_abs().max(integers.most.unsigned_abs());
    longest.checked_ilog10().map_or(0, |log| log + 1)
}

fn items(seen: &Seen) -> Result<Kind, Fault> {
    seen.items.as_deref().map_or(Ok(Kind::Null), |items| inner(items).map_err(Fault::in_list))
}

/// A struct of all keys; JSON where its fields could not be told apart or named.
fn members(seen: &Seen) -> Result<Kind, Fault> {
    let Some(members) = seen.fields.as_deref().filter(|members| is_struct(members)) else {
        return json(seen);
    };
    let fields = members.each().map(|(name, seen)| {
        let kind = inner(seen).map_err(|fault| fault.under(name))?;
        Ok((name.to_owned(), kind))
    });
    fields.collect::<Result<_, _>>().map(Kind::Struct)
}

/// SQL takes fields whose names differ in case alone for one, and has none without a name. Dicts of very many keys are
/// tables of their own, of which a struct would be nearly empty.
fn is_struct(members: &Members) -> bool {
    if members.rest.is_some() {
        return false;
    }
    let names = members.names.texts();
    let folded: HashSet<String> = names.iter().map(|name| name.to_ascii_lowercase()).collect();
    !names.is_empty() && folded.len() == names.len() && !folded.contains("")
}

/// JSON, if it has all that was seen, at any depth.
fn json(seen: &Seen) -> Result<Kind, Fault> {
    if let Some((what, row)) = seen.kinds().into_iter().find(|(what, _)| !what.is_json()) {
        return Err(Fault::new(
            row,
            format!("{} has no form in JSON, which the column's other values need", what.name()),
        )
        .with_hint("convert these values to one type, or to text"));
    }
    if let Some(row) = seen.infinite {
        return Err(Fault::new(
            row,
            "JSON has no NaN and no infinity, and the column's other values need JSON",
        )
        .with_hint("replace them by None, or convert these values to one type"));
    }
    if let Some(items) = &seen.items {
        json(items).map_err(Fault::in_list)?;
    }
    if let Some(members) = &seen.fields {
        for (name, seen) in members.each() {
            json(seen).map_err(|fault| fault.under(name))?;
        }
        if let Some(rest) = &members.rest {
            json(rest).map_err(|fault| fault.under("*"))?;
        }
    }
    Ok(Kind::Json)
}
