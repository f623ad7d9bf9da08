//! Who the driver and the database are.

use std::collections::HashSet;
use std::sync::Arc;

use adbc_core::error::Result;
use adbc_core::options::InfoCode;
use adbc_core::schemas::GET_INFO_SCHEMA;
use arrow_array::{
    ArrayRef, BooleanArray, Int64Array, RecordBatch, StringArray, UInt32Array, UnionArray, new_empty_array,
};
use arrow_schema::DataType;
use longshore_core::Current;

use crate::error::refusal;

/// The version of ADBC, as its constants have it.
const ADBC_VERSION: i64 = 1_001_000;

enum Value {
    Text(String),
    Flag(bool),
    Integer(i64),
}

/// The information that is asked for, or all that is known.
pub(crate) fn table(current: &Current, codes: Option<&HashSet<InfoCode>>) -> Result<RecordBatch> {
    let text = |text: &str| Value::Text(text.to_owned());
    let known = [
        (InfoCode::VendorName, text(&current.vendor)),
        (InfoCode::VendorVersion, text(&current.version)),
        (InfoCode::VendorSql, Value::Flag(true)),
        (InfoCode::VendorSubstrait, Value::Flag(false)),
        (InfoCode::DriverName, text("Longshore")),
        (InfoCode::DriverVersion, text(env!("CARGO_PKG_VERSION"))),
        (InfoCode::DriverArrowVersion, text("60.1")),
        (InfoCode::DriverAdbcVersion, Value::Integer(ADBC_VERSION)),
    ];
    let wanted = known.into_iter().filter(|(code, _)| codes.is_none_or(|codes| codes.contains(code)));
    let (mut names, mut kinds, mut places) = (Vec::new(), Vec::new(), Vec::new());
    let (mut texts, mut flags, mut integers) = (Vec::new(), Vec::new(), Vec::new());
    for (code, value) in wanted {
        names.push(u32::from(&code));
        let (kind, place) = match value {
            Value::Text(text) => (0_i8, push(&mut texts, text)),
            Value::Flag(flag) => (1, push(&mut flags, flag)),
            Value::Integer(integer) => (2, push(&mut integers, integer)),
        };
        kinds.push(kind);
        places.push(place);
    }
    let DataType::Union(fields, _) = GET_INFO_SCHEMA.field(1).data_type() else {
        return Err(refusal(adbc_core::error::Status::Internal, "the standard's schema has no union"));
    };
    let mut children: Vec<ArrayRef> = vec![
        Arc::new(StringArray::from(texts)),
        Arc::new(BooleanArray::from(flags)),
        Arc::new(Int64Array::from(integers)),
    ];
    children.extend(fields.iter().skip(3).map(|(_, field)| new_empty_array(field.data_type())));
    let values = UnionArray::try_new(fields.clone(), kinds.into(), Some(places.into()), children)?;
    let columns: Vec<ArrayRef> = vec![Arc::new(UInt32Array::from(names)), Arc::new(values)];
    Ok(RecordBatch::try_new(GET_INFO_SCHEMA.clone(), columns)?)
}

/// Where `value` is in its child.
fn push<T>(values: &mut Vec<T>, value: T) -> i32 {
    values.push(value);
    // There are eight.
    i32::try_from(values.len() - 1).unwrap_or_default()
}
