//! What becomes of one column, decided once and done batch by batch.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{
    Array, ArrayRef, FixedSizeListArray, GenericListArray, MapArray, OffsetSizeTrait, StructArray,
};
use arrow_schema::{DataType, FieldRef};

use crate::exported::Odds;
use crate::fault::{Fault, What};
use crate::values::texts::Text;
use crate::values::{booleans, integers, moments, texts};

/// A column's field in the result, and how its arrays become that field's.
pub(crate) struct Plan {
    pub(crate) field: FieldRef,
    pub(crate) step: Step,
}

pub(crate) enum Step {
    /// The arrays are what they say.
    Keep,
    Booleans,
    Integers {
        signed: bool,
    },
    Texts(Text),
    Dates,
    Times {
        /// The count of a whole day.
        day: i64,
    },
    Timestamps,
    Intervals,
    Lists(Vec<Plan>),
    LargeLists(Vec<Plan>),
    FixedLists(Vec<Plan>),
    Structs(Vec<Plan>),
    Maps(Vec<Plan>),
}

impl Plan {
    pub(crate) fn keeps(&self) -> bool {
        matches!(self.step, Step::Keep)
    }

    /// The array of the plan's field that holds what `array` does.
    pub(crate) fn apply(&self, array: &ArrayRef, odds: Odds) -> Result<ArrayRef, Fault> {
        let data_type = self.field.data_type();
        match &self.step {
            Step::Keep => Ok(array.clone()),
            Step::Booleans => booleans::booleans(array),
            Step::Integers { signed } => integers::decimals(array, *signed, data_type),
            Step::Texts(text) => texts::texts(array, *text),
            Step::Dates => moments::dates(array, odds.infinity),
            Step::Times { day } => moments::times(array, *day, odds.time_24),
            Step::Timestamps => moments::timestamps(array, data_type, odds.infinity),
            Step::Intervals => moments::intervals(array, odds.infinity),
            Step::Lists(items) => list::<i32>(array, items, odds),
            Step::LargeLists(items) => list::<i64>(array, items, odds),
            Step::FixedLists(items) => fixed_list(array, items, odds),
            Step::Structs(fields) => {
                structure(array.as_struct(), fields, odds).map(|array| Arc::new(array) as _)
            }
            Step::Maps(entries) => map(array.as_map(), entries, data_type, odds),
        }
    }
}

fn unlike(error: &(impl ToString + ?Sized)) -> Fault {
    What::internal(error).at_row(0)
}

fn only(plans: &[Plan]) -> Result<&Plan, Fault> {
    plans.first().ok_or_else(|| unlike("a list of nothing"))
}

/// The same failure in the row around it: `offsets` are the rows' in what is inside them.
fn outward<O: OffsetSizeTrait>(fault: Fault, offsets: &[O]) -> Fault {
    let row = offsets.partition_point(|offset| offset.as_usize() <= fault.row).saturating_sub(1);
    Fault { row, ..fault }
}

fn list<O: OffsetSizeTrait>(array: &ArrayRef, items: &[Plan], odds: Odds) -> Result<ArrayRef, Fault> {
    let (list, item) = (array.as_list::<O>(), only(items)?);
    let values = item.apply(list.values(), odds).map_err(|fault| outward(fault, list.offsets()))?;
    let (offsets, nulls) = (list.offsets().clone(), list.nulls().cloned());
    let list = GenericListArray::<O>::try_new(item.field.clone(), offsets, values, nulls);
    Ok(Arc::new(list.map_err(|error| unlike(&error))?))
}

fn fixed_list(array: &ArrayRef, items: &[Plan], odds: Odds) -> Result<ArrayRef, Fault> {
    let (list, item) = (array.as_fixed_size_list(), only(items)?);
    let size = list.value_length();
    let values = item.apply(list.values(), odds).map_err(|fault| {
        let row = fault.row / usize::try_from(size).unwrap_or(1).max(1);
        Fault { row, ..fault }
    })?;
    let list = FixedSizeListArray::try_new(item.field.clone(), size, values, list.nulls().cloned());
    Ok(Arc::new(list.map_err(|error| unlike(&error))?))
}

fn structure(array: &StructArray, plans: &[Plan], odds: Odds) -> Result<StructArray, Fault> {
    let columns = array.columns().iter().zip(plans);
    let columns = columns.map(|(column, plan)| plan.apply(column, odds)).collect::<Result<_, _>>()?;
    let fields = plans.iter().map(|plan| plan.field.clone()).collect();
    StructArray::try_new_with_length(fields, columns, array.nulls().cloned(), array.len())
        .map_err(|error| unlike(&error))
}

fn map(array: &MapArray, entries: &[Plan], data_type: &DataType, odds: Odds) -> Result<ArrayRef, Fault> {
    let (Plan { field, step: Step::Structs(fields) }, DataType::Map(_, sorted)) = (only(entries)?, data_type)
    else {
        return Err(unlike("a map whose entries are not structs"));
    };
    let parts = structure(array.entries(), fields, odds).map_err(|fault| outward(fault, array.offsets()))?;
    let (offsets, nulls) = (array.offsets().clone(), array.nulls().cloned());
    let map = MapArray::try_new(field.clone(), offsets, parts, nulls, *sorted);
    Ok(Arc::new(map.map_err(|error| unlike(&error))?))
}
