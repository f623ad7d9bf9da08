//! Parts of one table by ranges of its rowid.

use longshore_core::Result;
use longshore_source::split::ranges;
use longshore_source::sql::OneTable;

use crate::dialect::{literal, quoted_name};
use crate::session::SqliteSession;

/// How often the table is asked where its rowids are, at most.
const PROBES: usize = 64;

/// Ranges for each session: one that is done early takes the next.
const EACH: usize = 4;

/// Where rowids are: no row lies between two intervals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Interval {
    first: i64,
    last: i64,
}

impl Interval {
    fn width(self) -> u128 {
        u128::from(self.last.abs_diff(self.first)) + 1
    }
}

/// The conditions that split `table` for `number` sessions; `Err` is the reason why there are none.
pub(super) fn conditions(
    session: &SqliteSession,
    table: &OneTable<'_>,
    number: usize,
) -> Result<Result<Vec<String>, String>> {
    let rowid = match rowid_of(session, table)? {
        Ok(rowid) => rowid,
        Err(reason) => return Ok(Err(reason)),
    };
    let name = format!("main.{}", quoted_name(table.last()));
    let probe = Probe { session, name, rowid };
    let Some(whole) = probe.within(i64::MIN, i64::MAX)? else { return Ok(Ok(Vec::new())) };
    let intervals = probe.narrow(whole)?;
    let column = format!("{}.{rowid}", table.alias);
    let bounds: Vec<String> = bounds(&intervals, number * EACH).into_iter().map(integer).collect();
    Ok(Ok(ranges(&column, &bounds)))
}

/// The name of the table's rowid; `Err` is the reason why it has none.
fn rowid_of(session: &SqliteSession, table: &OneTable<'_>) -> Result<Result<&'static str, String>> {
    if table.path.len() > 1 && !table.path[0].eq_ignore_ascii_case("main") {
        return Ok(Err("the table is not in the main database".into()));
    }
    let name = literal(table.last());
    let kinds = session.query(
        &format!(
            "SELECT type = 'table' AND wr = 0 FROM pragma_table_list WHERE schema = 'main' AND name = {name} COLLATE NOCASE"
        ),
        |row| row.is_true(0),
    )?;
    if kinds != [true] {
        return Ok(Err("only a table with a rowid has parts of its own: give partition_on".into()));
    }
    let columns = session
        .query(&format!("SELECT lower(name) FROM pragma_table_xinfo({name}, 'main')"), |row| row.text(0))?;
    let free =
        ["_rowid_", "rowid", "oid"].into_iter().find(|name| !columns.iter().any(|column| column == name));
    Ok(free.ok_or_else(|| "the table's columns hide its rowid: give partition_on".into()))
}

/// Asks a table where its rowids are.
struct Probe<'a> {
    session: &'a SqliteSession,
    name: String,
    rowid: &'static str,
}

impl Probe<'_> {
    /// The first and the last rowid from `low` to `high`.
    fn within(&self, low: i64, high: i64) -> Result<Option<Interval>> {
        let Self { name, rowid, .. } = self;
        let first =
            self.first(&format!("SELECT min({rowid}) FROM {name} WHERE {rowid} >= {}", integer(low)))?;
        let last =
            self.first(&format!("SELECT max({rowid}) FROM {name} WHERE {rowid} <= {}", integer(high)))?;
        Ok(match (first, last) {
            (Some(first), Some(last)) if first <= last => Some(Interval { first, last }),
            _ => None,
        })
    }

    fn first(&self, text: &str) -> Result<Option<i64>> {
        Ok(self.session.query(text, |row| row.integer(0))?.pop().flatten())
    }

    /// Leaves wide gaps out of `whole`: halves the widest interval again and again.
    fn narrow(&self, whole: Interval) -> Result<Vec<Interval>> {
        let mut intervals = vec![whole];
        for _ in 0..PROBES {
            let widest = (0..intervals.len()).max_by_key(|index| intervals[*index].width());
            let Some(widest) = widest.filter(|index| intervals[*index].width() > 1024) else { break };
            let Interval { first, last } = intervals[widest];
            let middle = i64::midpoint(first, last);
            let halves = [self.within(first, middle)?, self.within(middle + 1, last)?];
            intervals.splice(widest..=widest, halves.into_iter().flatten());
        }
        Ok(intervals)
    }
}

/// The first rowid of each part but the first.
fn bounds(intervals: &[Interval], number: usize) -> Vec<i64> {
    let total: u128 = intervals.iter().map(|interval| interval.width()).sum();
    let number = number as u128;
    let mut bounds = Vec::new();
    let mut before = 0;
    for interval in intervals {
        let width = interval.width();
        for part in 1..number {
            let at = total * part / number;
            if (before..before + width).contains(&at) {
                // Below the width of the interval, which fits.
                let offset = u64::try_from(at - before).unwrap_or(u64::MAX);
                bounds.push(interval.first.saturating_add_unsigned(offset));
            }
        }
        before += width;
    }
    bounds.dedup();
    bounds
}

/// An integer as SQLite reads it: the lowest one's digits alone would be a real.
pub(super) fn integer(value: i64) -> String {
    if value == i64::MIN { "(-9223372036854775807 - 1)".to_owned() } else { value.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval(first: i64, last: i64) -> Interval {
        Interval { first, last }
    }

    #[test]
    fn even_rowids_are_split_evenly() {
        assert_eq!(bounds(&[interval(1, 100)], 4), [26, 51, 76]);
        assert_eq!(bounds(&[interval(1, 1)], 4), [1]);
    }

    #[test]
    fn gaps_count_nothing() {
        assert_eq!(
            bounds(&[interval(1, 50), interval(1 << 62, (1 << 62) + 49)], 4),
            [26, 1 << 62, (1 << 62) + 25]
        );
        let all = bounds(&[interval(i64::MIN, i64::MAX)], 2);
        assert_eq!(all, [0]);
    }

    #[test]
    fn the_lowest_rowid_is_an_integer() {
        assert_eq!(integer(i64::MIN), "(-9223372036854775807 - 1)");
        assert_eq!(integer(-5), "-5");
    }
}
