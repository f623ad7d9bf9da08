//! What makes two parts of one query disagree, or be more than the query: functions that do not depend on their row alone,
//! and the clock.

use longshore_core::Result;
use longshore_source::sql::Kind;

use crate::cell::Cell;
use crate::dialect::{called, literal, tokens};
use crate::session::SqliteSession;

/// Functions that may read the clock, whatever SQLite says of them.
const CLOCK: &[&str] = &["date", "time", "datetime", "julianday", "unixepoch", "strftime", "timediff"];

/// Aggregates whose result does not depend on the order of the rows.
const ORDERLESS: &[&str] = &["count", "min", "max"];

/// Words that make a result depend on the order of rows or on the clock, wherever they stand.
const WORDS: &[&str] = &["limit", "offset", "over", "current_date", "current_time", "current_timestamp"];

/// `SQLITE_DETERMINISTIC` (`sqlite.org/c3ref/c_deterministic.html`).
const DETERMINISTIC: i64 = 0x800;

/// Why `text` cannot be read in parts. `is_whole` tells that each part runs it as a whole and takes some of its rows.
pub(super) fn reason(session: &SqliteSession, text: &str, is_whole: bool) -> Result<Option<String>> {
    let tokens = tokens(text);
    let word = tokens
        .iter()
        .filter(|token| token.kind == Kind::Word)
        .find(|token| WORDS.iter().any(|word| token.is_word(word)));
    if let Some(word) = word {
        return Ok(Some(format!("{} may differ from part to part", word.text.to_uppercase())));
    }
    for name in called(text) {
        if CLOCK.contains(&name.as_str()) {
            return Ok(Some(format!("{name}() may read the clock")));
        }
        let kinds = session.ask(
            &format!("SELECT type || ' ' || flags FROM pragma_function_list WHERE name = {}", literal(&name)),
            kind_of,
        )?;
        if let Some(reason) =
            kinds.into_iter().find_map(|(kind, flags)| refusal(&name, &kind, flags, is_whole))
        {
            return Ok(Some(reason));
        }
    }
    Ok(None)
}

fn kind_of(row: &crate::library::Statement) -> (String, i64) {
    let Cell::Text(text) = row.cell(0) else { return (String::new(), 0) };
    let text = String::from_utf8_lossy(text);
    let (kind, flags) = text.split_once(' ').unwrap_or((&text, "0"));
    (kind.to_owned(), flags.parse().unwrap_or_default())
}

fn refusal(name: &str, kind: &str, flags: i64, is_whole: bool) -> Option<String> {
    match kind {
        "s" if flags & DETERMINISTIC == 0 => Some(format!("{name}() may differ from part to part")),
        "s" => None,
        _ if is_whole && ORDERLESS.contains(&name) => None,
        _ if is_whole => Some(format!("{name}() may depend on the order of the rows")),
        _ => Some(format!("{name}() looks at all rows together")),
    }
}
