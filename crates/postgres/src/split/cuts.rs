//! From the distribution of a key to parts of equal size: disjoint and together exhaustive, whatever the bounds are.

/// A value of the key, and how many rows are about it, in any unit.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Point {
    pub(super) value: String,
    /// Rows between the point before and this one.
    pub(super) before: f64,
    /// Rows of this very value.
    pub(super) at: f64,
}

/// Where a range starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Start {
    /// With this value.
    From(String),
    /// After this value.
    After(String),
}

/// Some of the key's values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    /// Those from the start to before the end; an open end takes all.
    Range(Option<Start>, Option<String>),
    Nulls,
}

/// One part.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Part {
    Pieces(Vec<Piece>),
    /// A value that alone has as many rows as so many parts should have.
    Value(String, usize),
}

/// Pieces that are too small for a part of their own, and how many rows they have.
type Rest = Vec<(Piece, f64)>;

/// Cuts a key into about `number` parts. The `points` are in the key's order, each once; `nulls` counts the NULLs.
pub(super) fn cut(points: &[Point], nulls: f64, number: usize) -> Vec<Part> {
    let total = points.iter().map(|point| point.before + point.at).sum::<f64>() + nulls;
    let share = total / count(number);
    if share.is_nan() || share <= 0.0 {
        return between(&[]);
    }
    let mut parts = Vec::new();
    let mut rest = Rest::new();
    let mut start = None;
    let mut runs: Vec<&[Point]> = points.split_inclusive(|point| dominates(point, share)).collect();
    if points.last().is_none_or(|last| dominates(last, share)) {
        runs.push(&[]);
    }
    for run in runs {
        let heavy = run.last().filter(|last| dominates(last, share));
        let light = &run[..run.len() - usize::from(heavy.is_some())];
        let rows = light.iter().map(|point| point.before + point.at).sum::<f64>()
            + heavy.map_or(0.0, |it| it.before);
        let bounds = bounds(light, rows, share);
        let ranges = ranges(start.take(), &bounds, heavy.map(|heavy| &heavy.value));
        match ranges.as_slice() {
            [only] if rows < share / 2.0 => rest.push((only.clone(), rows)),
            _ => parts.extend(ranges.into_iter().map(|range| Part::Pieces(vec![range]))),
        }
        if let Some(heavy) = heavy {
            parts.push(Part::Value(heavy.value.clone(), rounded_up(heavy.at / share)));
            start = Some(Start::After(heavy.value.clone()));
        }
    }
    rest.push((Piece::Nulls, nulls));
    add_rest(&mut parts, rest, share);
    parts
}

/// Parts between the values of `bounds`, which are in the key's order; the NULLs are in the last.
pub(super) fn between(bounds: &[String]) -> Vec<Part> {
    let ranges = ranges(None, bounds, None);
    let mut parts: Vec<Part> = ranges.into_iter().map(|range| Part::Pieces(vec![range])).collect();
    add_rest(&mut parts, vec![(Piece::Nulls, 0.0)], 1.0);
    parts
}

/// Whether a value alone has more than a part's share.
fn dominates(point: &Point, share: f64) -> bool {
    point.at > share * (1.0 + 1e-9)
}

/// The values at which `light` points, of `rows` rows, are to be cut into parts of about a `share`.
fn bounds(light: &[Point], rows: f64, share: f64) -> Vec<String> {
    let parts = (rows / share).round();
    let mut below = Vec::with_capacity(light.len());
    let mut sum = 0.0;
    for point in light {
        below.push(sum + point.before);
        sum += point.before + point.at;
    }
    let mut chosen: Vec<usize> = Vec::new();
    let mut left = parts;
    while left > 1.0 {
        // What is left, by the parts that are left: a large value before has taken more than its share.
        let taken = chosen.last().map_or(0.0, |last| below[*last]);
        let target = taken + (rows - taken) / left;
        let after = below.partition_point(|below| *below < target);
        let at = match after.checked_sub(1) {
            Some(before) if below.get(after).is_none_or(|above| target - below[before] < above - target) => {
                before
            }
            _ => after,
        };
        let is_new = chosen.last().is_none_or(|last| *last < at);
        if is_new && below.get(at).is_some_and(|below| *below > 0.0) {
            chosen.push(at);
        }
        left -= 1.0;
    }
    chosen.into_iter().map(|at| light[at].value.clone()).collect()
}

/// The ranges from `start` over `bounds` to `end`.
fn ranges(start: Option<Start>, bounds: &[String], end: Option<&String>) -> Vec<Piece> {
    let starts = [start].into_iter().chain(bounds.iter().cloned().map(|bound| Some(Start::From(bound))));
    let ends = bounds.iter().cloned().map(Some).chain([end.cloned()]);
    starts.zip(ends).map(|(start, end)| Piece::Range(start, end)).collect()
}

/// Finds a part for what is too small for its own: with the last range if all is little, else with one another.
fn add_rest(parts: &mut Vec<Part>, rest: Rest, share: f64) {
    let rows: f64 = rest.iter().map(|(_, rows)| rows).sum();
    let last = parts.iter_mut().rev().find_map(|part| match part {
        Part::Pieces(pieces) => Some(pieces),
        Part::Value(..) => None,
    });
    if let Some(last) = last
        && rows < share / 2.0
    {
        last.extend(rest.into_iter().map(|(piece, _)| piece));
        return;
    }
    let mut filled = f64::INFINITY;
    for (piece, rows) in rest {
        match parts.last_mut() {
            Some(Part::Pieces(pieces)) if filled + rows <= share => {
                pieces.push(piece);
                filled += rows;
            }
            _ => {
                parts.push(Part::Pieces(vec![piece]));
                filled = rows;
            }
        }
    }
}

#[allow(clippy::cast_precision_loss)] // numbers of parts are small
fn count(number: usize) -> f64 {
    number as f64
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // at most the number of parts
fn rounded_up(shares: f64) -> usize {
    (shares - 1e-9).ceil() as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether the part takes this number, or NULL.
    fn takes(part: &Part, key: Option<i64>) -> bool {
        let number = |text: &String| text.parse::<i64>().unwrap();
        match part {
            Part::Value(value, _) => key == Some(number(value)),
            Part::Pieces(pieces) => {
                let holds = |piece: &&Piece| match (piece, key) {
                    (Piece::Nulls, key) => key.is_none(),
                    (Piece::Range(..), None) => false,
                    (Piece::Range(start, end), Some(key)) => {
                        let is_after = start.as_ref().is_none_or(|start| match start {
                            Start::From(value) => key >= number(value),
                            Start::After(value) => key > number(value),
                        });
                        is_after && end.as_ref().is_none_or(|end| key < number(end))
                    }
                };
                pieces.iter().filter(holds).count() == 1
            }
        }
    }

    fn is_exact(parts: &[Part]) {
        for key in (-1..40).map(Some).chain([None]) {
            let found = parts.iter().filter(|part| takes(part, key)).count();
            assert_eq!(found, 1, "{key:?} in {parts:?}");
        }
    }

    /// Numbers that look random.
    struct Dice(u64);

    impl Dice {
        fn below(&mut self, end: u64) -> u64 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 33) % end
        }

        fn rows(&mut self) -> f64 {
            let scale = [0_u32, 1, 10, 1000][usize::try_from(self.below(4)).unwrap()];
            f64::from(scale) * f64::from(u32::try_from(self.below(100)).unwrap())
        }
    }

    #[test]
    fn nothing_is_lost_and_nothing_is_doubled() {
        let mut dice = Dice(1);
        for _ in 0..20_000 {
            let values = (0..38).filter(|_| dice.below(5) == 0).collect::<Vec<u32>>();
            let points: Vec<Point> = values
                .iter()
                .map(|value| Point { value: value.to_string(), before: dice.rows(), at: dice.rows() })
                .collect();
            let nulls = dice.rows();
            let number = usize::try_from(1 + dice.below(12)).unwrap();
            is_exact(&cut(&points, nulls, number));
        }
    }

    #[test]
    fn equal_bounds_lose_nothing() {
        is_exact(&between(&["3", "3", "9", "9"].map(str::to_owned)));
        is_exact(&between(&[]));
    }

    fn even(count: u32) -> Vec<Point> {
        (0..count).map(|value| Point { value: value.to_string(), before: 0.0, at: 1.0 }).collect()
    }

    #[test]
    fn an_even_key_is_cut_evenly() {
        let parts = cut(&even(100), 0.0, 4);
        let range = |start: Option<&str>, end: Option<&str>| {
            Piece::Range(start.map(|it| Start::From(it.into())), end.map(str::to_owned))
        };
        assert_eq!(
            parts,
            [
                Part::Pieces(vec![range(None, Some("25"))]),
                Part::Pieces(vec![range(Some("25"), Some("50"))]),
                Part::Pieces(vec![range(Some("50"), Some("75"))]),
                Part::Pieces(vec![range(Some("75"), None), Piece::Nulls]),
            ]
        );
    }

    #[test]
    fn a_value_that_dominates_is_alone() {
        let mut points = even(20);
        points[10].at = 60.0;
        let parts = cut(&points, 1.0, 4);
        let heavy = parts.iter().find(|part| matches!(part, Part::Value(..))).unwrap();
        assert_eq!(*heavy, Part::Value("10".into(), 3));
        assert_eq!(parts.len(), 3, "{parts:?}");
        is_exact(&parts);
    }

    #[test]
    fn many_nulls_are_a_part() {
        let parts = cut(&even(10), 90.0, 4);
        assert!(parts.contains(&Part::Pieces(vec![Piece::Nulls])), "{parts:?}");
        is_exact(&parts);
    }

    #[test]
    fn a_single_value_is_one_part_or_more() {
        let parts = cut(&[Point { value: "7".into(), before: 0.0, at: 10.0 }], 0.0, 2);
        assert!(parts.contains(&Part::Value("7".into(), 2)));
        is_exact(&parts);
    }
}
