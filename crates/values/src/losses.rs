//! The losses of values on their way to a frame by a documented default: told of once a column.

use std::sync::Arc;

use longshore_core::{Decimals, ReadOptions, Warnings};

use crate::decimal::comes_back;

/// The losses of one column's values.
#[derive(Clone, Debug, Default)]
pub struct Losses {
    column: Arc<str>,
    warnings: Arc<Warnings>,
    /// Whether a double that is not its decimal is still to be told of.
    looks: bool,
}

impl Losses {
    /// Those of `column`. Who asks for doubles with `schema=` knows of the rounding.
    #[must_use]
    pub fn of(column: &str, options: &ReadOptions) -> Self {
        let looks = options.decimals == Decimals::Float64 && options.wanted_type(column).is_none();
        Self { column: column.into(), warnings: options.warnings.clone(), looks }
    }

    /// Those of `column`, whose decimals become doubles.
    #[must_use]
    pub fn of_doubles(column: &str, warnings: &Arc<Warnings>) -> Self {
        Self { column: column.into(), warnings: warnings.clone(), looks: true }
    }

    /// Whether a double that is not its decimal is still to be told of.
    #[must_use]
    #[inline]
    pub fn looks(&self) -> bool {
        self.looks
    }

    /// Looks whether `value`, the double nearest to `decimal`, reads as the same number.
    pub fn look(&mut self, decimal: &str, value: f64) {
        if !self.looks || comes_back(decimal, value) {
            return;
        }
        self.looks = false;
        let column = &self.column;
        let text = format!(
            "numeric values of column {column:?} were rounded to float64, such as {decimal} to {value:?}: \
             dtype_backend=\"pyarrow\" keeps every digit, and so does read_sql's schema={{{column:?}: \
             \"decimal128(38, <scale>)\"}}; schema={{{column:?}: \"float64\"}}, or a CAST to double, asks for the rounding"
        );
        self.warnings.tell(&format!("rounded {column}"), text);
    }

    /// Tells of an array that does not begin at 1.
    #[cold]
    pub fn bounds(&self) {
        let column = &self.column;
        let text = format!(
            "arrays of column {column:?} have lower bounds other than 1, which lists do not keep: \
             schema={{{column:?}: \"string\"}} reads them as PostgreSQL writes them, with their bounds"
        );
        self.warnings.tell(&format!("bounds {column}"), text);
    }
}
