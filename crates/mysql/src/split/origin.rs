//! Where a column of a query comes from, and so whether a condition on it divides the query's rows and no group of them.
//!
//! A group's rows are equal under a collation, and need not be the same. The server chooses which of them stands for the
//! group, and each part may choose another; so what is computed from that is no key. See `docs/design/mysql.md`.

use crate::types::Class;

/// What a condition on a grouped column must not come near.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Care {
    /// It is compared as it is grouped.
    None,
    /// It is computed. A number may have more digits before it is grouped than after that.
    OfNumbers,
    /// Several queries give it, each in a type of its own, by which the server may compare it.
    Always,
}

/// Where a column's values come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Origin {
    /// The rows of tables, which nothing has put together; the very column of one, or computed.
    Column,
    Computed,
    /// What rows are grouped by, or what whole groups have, whatever the order of their rows is.
    Grouped(Care),
    /// A sum, which depends on that order if it is one of floating numbers.
    Sum,
    /// Nothing certain, for this reason.
    Uncertain(&'static str),
}

/// How a condition on a key comes to the rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// As deep as the server likes.
    Free,
    /// No deeper than the query's result.
    Fenced,
}

/// Why a key that is computed from others is none.
const OF_GROUPS: &str =
    "partition_on is computed from what the query groups, and may differ from part to part";

impl Origin {
    /// How deep a condition on a column of this class may go; or why there is none.
    pub(super) fn reach(self, class: Class) -> Result<Reach, &'static str> {
        let is_fraction = matches!(class, Class::Decimal(..) | Class::Float | Class::Double);
        match self {
            Self::Grouped(Care::Always) => Ok(Reach::Fenced),
            Self::Grouped(Care::OfNumbers) if is_fraction => Ok(Reach::Fenced),
            Self::Column | Self::Computed | Self::Grouped(_) => Ok(Reach::Free),
            Self::Sum if matches!(class, Class::Float | Class::Double) => {
                Err("partition_on is a sum that depends on the order of rows")
            }
            Self::Sum => Ok(Reach::Fenced),
            Self::Uncertain(reason) => Err(reason),
        }
    }

    /// A column that rows are grouped by.
    pub(super) fn grouped(self) -> Self {
        match self {
            Self::Column => Self::Grouped(Care::None),
            Self::Computed => Self::Grouped(Care::OfNumbers),
            Self::Sum => Self::Uncertain(OF_GROUPS),
            other => other,
        }
    }

    /// What is computed from columns of which this is the worst.
    pub(super) fn computed(self) -> Self {
        match self {
            Self::Column | Self::Computed => Self::Computed,
            Self::Uncertain(_) => self,
            _ => Self::Uncertain(OF_GROUPS),
        }
    }

    /// A column of several queries, put together.
    pub(super) fn united(self) -> Self {
        match self {
            Self::Column | Self::Computed | Self::Grouped(_) => Self::Grouped(Care::Always),
            Self::Sum => Self::Uncertain(OF_GROUPS),
            Self::Uncertain(_) => self,
        }
    }
}

/// The columns of a table, or of a query.
#[derive(Clone, Debug, Default)]
pub(super) struct Columns {
    /// Those whose place is known, each with its name in lower case, if it has one.
    named: Vec<(Option<String>, Origin)>,
    /// Those of tables that stand for an asterisk.
    starred: Vec<Columns>,
    /// Any other.
    other: Option<Origin>,
}

impl Columns {
    /// Columns of any name.
    pub(super) fn any(origin: Origin) -> Self {
        Self { other: Some(origin), ..Self::default() }
    }

    /// The columns of a table.
    pub(super) fn of_table(names: &[String]) -> Self {
        let columns = names.iter().map(|name| (Some(name.to_lowercase()), Origin::Column));
        Self { named: columns.collect(), ..Self::default() }
    }

    pub(super) fn push(&mut self, name: Option<&str>, origin: Origin) {
        self.named.push((name.map(str::to_lowercase), origin));
    }

    pub(super) fn star(&mut self, columns: Self) {
        self.starred.push(columns);
    }

    /// The column at this place of so many, or else of this name.
    pub(super) fn at(&self, place: usize, count: usize, name: &str) -> Origin {
        let placed = self.named.get(place).filter(|_| self.are_placed() && self.named.len() == count);
        placed
            .map(|(_, origin)| *origin)
            .or_else(|| self.find(name))
            .unwrap_or(Origin::Uncertain("partition_on has no name of its own: give it one with AS"))
    }

    /// The column of this name, the worst where there are several; `None` where there is none.
    pub(super) fn find(&self, name: &str) -> Option<Origin> {
        let name = name.to_lowercase();
        let own =
            self.named.iter().filter(|(known, _)| known.as_ref() == Some(&name)).map(|(_, origin)| *origin);
        own.chain(self.starred.iter().filter_map(|columns| columns.find(&name))).max().or(self.other)
    }

    /// Whether it certainly has no column of this name.
    pub(super) fn lacks(&self, name: &str) -> bool {
        self.find(name).is_none()
    }

    /// Whether a condition on one of them may have to stay outside.
    pub(super) fn need_care(&self) -> bool {
        let needs = |origin: Origin| matches!(origin, Origin::Grouped(Care::OfNumbers | Care::Always));
        self.named.iter().map(|(_, origin)| *origin).chain(self.other).any(needs)
            || self.starred.iter().any(Self::need_care)
    }

    fn worst(&self) -> Option<Origin> {
        let own = self.named.iter().map(|(_, origin)| *origin).chain(self.other);
        own.chain(self.starred.iter().filter_map(Self::worst)).max()
    }

    /// Each column's origin made another.
    pub(super) fn map(self, change: &impl Fn(Origin) -> Origin) -> Self {
        Self {
            named: self.named.into_iter().map(|(name, origin)| (name, change(origin))).collect(),
            starred: self.starred.into_iter().map(|columns| columns.map(change)).collect(),
            other: self.other.map(change),
        }
    }

    fn are_placed(&self) -> bool {
        self.starred.is_empty() && self.other.is_none()
    }

    /// The same columns by other names; by none where there are no such.
    pub(super) fn renamed(mut self, names: &[String]) -> Self {
        if names.is_empty() {
            return self;
        }
        if !self.are_placed() || names.len() != self.named.len() {
            return Self::any(self.worst().unwrap_or(Origin::Computed).computed());
        }
        for (column, name) in self.named.iter_mut().zip(names) {
            column.0 = Some(name.to_lowercase());
        }
        self
    }

    /// The columns of two queries put together, which have the first one's names.
    pub(super) fn united(self, other: &Self) -> Self {
        if self.are_placed() && other.are_placed() && self.named.len() == other.named.len() {
            let pairs = self.named.into_iter().zip(&other.named);
            let named = pairs.map(|((name, own), (_, its))| (name, own.max(*its).united())).collect();
            return Self { named, ..Self::default() };
        }
        let worst = self.worst().max(other.worst()).unwrap_or(Origin::Computed);
        Self::any(worst.united())
    }
}
