//! What each column of a result becomes, before its first row.

use std::collections::HashMap;

use arrow_schema::{DataType, Field};
use longshore_core::{
    Column, DEFERRED, Decimals, Error, Kind, NATIVE_TYPE, OnOdd, Place, ReadOptions, Result,
};

use crate::types::Class;
use crate::wanted;

/// What is known of a column of a result.
#[derive(Clone, Debug)]
pub struct Facts {
    /// Its name.
    pub name: String,
    /// The type that CREATE TABLE declares; `None` for an expression.
    pub declared: Option<String>,
    /// Whether it may hold NULL.
    pub nullable: bool,
    /// Whether SQLite enforces the declared type.
    pub is_enforced: bool,
}

/// A column of a result, as it will be read.
#[derive(Clone, Debug)]
pub struct Plan {
    pub(crate) field: Field,
    pub(crate) class: Class,
    pub(crate) becomes: Becomes,
}

/// What a column becomes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Becomes {
    /// What all values of the whole result need.
    Settled,
    /// What the values of the first batch need.
    AsItBegins,
    /// This type.
    Declared(DataType),
    /// What the caller asks for.
    Wanted(DataType),
}

impl Plan {
    /// The class of a column whose type is final only with the whole result.
    pub(crate) fn deferred(&self) -> Option<Class> {
        (self.becomes == Becomes::Settled).then_some(self.class)
    }

    /// Whether its type is known only with the first rows.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.becomes == Becomes::AsItBegins
    }

    /// The column as the core describes it.
    #[must_use]
    pub fn column(&self) -> Column {
        let native_type = self.field.metadata().get(NATIVE_TYPE).cloned().unwrap_or_default();
        Column { field: self.field.clone(), native_type }
    }
}

/// Plans the columns of a result.
///
/// Fails for a `schema=` that names another column, or a type that no value of SQLite becomes.
pub fn plan(facts: Vec<Facts>, options: &ReadOptions) -> Result<Vec<Plan>> {
    let is_known = |name: &String| facts.iter().any(|column| column.name == *name);
    if let Some((name, _)) = options.schema.iter().find(|(name, _)| !is_known(name)) {
        let known: Vec<&str> = facts.iter().map(|column| column.name.as_str()).collect();
        return Err(Error::interface(format!("schema= names {name:?}, which the query does not return"))
            .with_hint(format!("it returns {}", known.join(", "))));
    }
    facts.into_iter().map(|column| one(column, options)).collect()
}

fn one(facts: Facts, options: &ReadOptions) -> Result<Plan> {
    let declared = facts.declared.as_deref().unwrap_or_default();
    let class = match Class::of(declared) {
        Class::Decimal(digits, scale) if options.decimals == Decimals::Float64 => {
            Class::Rounded(digits, scale)
        }
        Class::Decimal(digits, _) if digits > options.decimal_digits => Class::Text,
        class => class,
    };
    let mut metadata = HashMap::new();
    if !declared.is_empty() {
        metadata.insert(NATIVE_TYPE.to_owned(), declared.to_owned());
    }
    let is_streamed = options.decimals == Decimals::Streamed;
    let becomes = match options.wanted(&facts.name) {
        Some(wanted) => Becomes::Wanted(supported(&facts, wanted, class, options)?),
        None if facts.is_enforced && class != Class::Any => Becomes::Declared(class.arrow()),
        None if !is_streamed => Becomes::Settled,
        None if class == Class::Any => Becomes::AsItBegins,
        None => Becomes::Declared(class.arrow()),
    };
    let makes_null = options.infinity == OnOdd::Null || options.numeric_nan == OnOdd::Null;
    let (data_type, nullable) = match &becomes {
        Becomes::Wanted(wanted) => (wanted.clone(), facts.nullable || makes_null),
        Becomes::Settled => {
            metadata.insert(DEFERRED.to_owned(), String::new());
            (class.arrow(), facts.nullable)
        }
        _ => (class.arrow(), facts.nullable),
    };
    let field = Field::new(facts.name, data_type, nullable).with_metadata(metadata);
    Ok(Plan { field, class, becomes })
}

fn supported(facts: &Facts, wanted: &DataType, class: Class, options: &ReadOptions) -> Result<DataType> {
    let too_wide = matches!(wanted, DataType::Decimal256(digits, _) if *digits > options.decimal_digits);
    if !too_wide && wanted::reader(wanted, class, options).is_some() {
        return Ok(wanted.clone());
    }
    let place = Place { column: Some(facts.name.clone()), row: None, native_type: facts.declared.clone() };
    Err(Error::new(Kind::NotSupported, format!("cannot be read as {wanted}"))
        .with_hint("leave it out of schema=, or ask for \"string\"")
        .at(place))
}
