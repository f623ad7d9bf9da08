//! Where the clauses of a SELECT stand in its text, and how a condition is put into it.

use longshore_source::sql::Token;
use sqlparser::ast::{Query as Parsed, SetExpr};

/// The clauses of one SELECT.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Shape {
    select: usize,
    from: usize,
    /// Where its condition begins, if it has one.
    condition: Option<usize>,
    /// Where its condition ends, or would.
    end: usize,
}

impl Shape {
    /// The shape of `text`; `None` where it is not one SELECT that reads a table.
    pub(super) fn of(tree: &Parsed, found: &[Token<'_>], text: &str) -> Option<Self> {
        let SetExpr::Select(select) = tree.body.as_ref() else { return None };
        let outer = outermost(found)?;
        let only = |word: &str| {
            let mut places = outer.iter().filter(|token| token.is_word(word));
            let first = places.next();
            places.next().is_none().then_some(first)
        };
        let (start, from, condition) = (only("select")??, only("from")??, only("where")?);
        if condition.is_some() != select.selection.is_some() || select.from.is_empty() {
            return None;
        }
        let later = ["group", "having", "window", "order"].map(only);
        let mut end = text.len();
        for place in later {
            end = end.min(place?.map_or(text.len(), |token| token.start));
        }
        let condition = condition.map(|token| token.end());
        let is_in_order = start.start < from.start && condition.unwrap_or(from.end()) > from.start;
        (is_in_order && condition.unwrap_or(from.end()) <= end).then_some(Self {
            select: start.start,
            from: from.start,
            condition,
            end,
        })
    }

    /// The rows of `text` that `condition` takes, before anything groups them or puts them in order.
    pub(super) fn with(&self, text: &str, condition: &str) -> String {
        let (head, tail) = text.split_at(self.end);
        match self.condition {
            Some(at) => {
                let (head, own) = head.split_at(at);
                format!("{head} ({own}\n) AND ({condition}) {tail}")
            }
            None => format!("{head}\nWHERE {condition} {tail}"),
        }
    }

    /// Whether what stands at this place is part of [`Self::rows`].
    pub(super) fn reads(&self, place: usize) -> bool {
        place < self.select || (self.from..self.end).contains(&place)
    }

    /// A query of `expression` for each row that `text` reads, before anything groups them.
    pub(super) fn rows(&self, text: &str, expression: &str) -> String {
        format!("{}SELECT {expression} {}", &text[..self.select], &text[self.from..self.end])
    }
}

/// The tokens outside of parentheses.
fn outermost<'a, 'b>(found: &'b [Token<'a>]) -> Option<Vec<&'b Token<'a>>> {
    let mut depth = 0_usize;
    let mut kept = Vec::new();
    for (at, token) in found.iter().enumerate() {
        if token.is_mark("(") {
            depth += 1;
        } else if token.is_mark(")") {
            depth = depth.checked_sub(1)?;
        } else if depth == 0 && !(at > 0 && found[at - 1].is_mark(".")) {
            kept.push(token);
        }
    }
    (depth == 0).then_some(kept)
}

#[cfg(test)]
mod tests {
    use super::super::walk::parsed;
    use super::*;
    use crate::dialect::tokens;

    fn with(text: &str) -> Option<String> {
        let tree = parsed(text).ok()?;
        let shape = Shape::of(&tree, &tokens(text, true), text)?;
        Some(shape.with(text, "k < 5").replace('\n', " "))
    }

    #[test]
    fn a_condition_has_its_place() {
        for (text, expected) in [
            ("SELECT a FROM t", "SELECT a FROM t WHERE k < 5 "),
            ("SELECT a FROM t WHERE a OR b", "SELECT a FROM t WHERE ( a OR b ) AND (k < 5) "),
            (
                "WITH c AS (SELECT 1 FROM u WHERE x) SELECT a FROM c WHERE a GROUP BY a HAVING b ORDER BY 1",
                "WITH c AS (SELECT 1 FROM u WHERE x) SELECT a FROM c WHERE ( a  ) AND (k < 5) GROUP BY a HAVING b ORDER BY 1",
            ),
            (
                "SELECT extract(year FROM t.at), t.where FROM t GROUP BY (SELECT 1 FROM t WHERE 1)",
                "SELECT extract(year FROM t.at), t.where FROM t  WHERE k < 5 GROUP BY (SELECT 1 FROM t WHERE 1)",
            ),
        ] {
            assert_eq!(with(text).as_deref(), Some(expected));
        }
        for other in ["(SELECT a FROM t)", "SELECT 1", "SELECT a FROM t UNION SELECT a FROM u"] {
            assert_eq!(with(other), None, "{other}");
        }
    }
}
