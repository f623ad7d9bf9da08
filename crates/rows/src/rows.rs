//! Rows -> the memory of one array of records, or of one block for the columns of each dtype.

use longshore_core::memory::make_room;

use crate::block::Block;
use crate::splitter::HEADER;
use crate::step::Step;
use crate::{Failure, Fault};

/// The length word of NULL.
const NULL: u32 = u32::MAX;

/// What is asked of the system at most for rows that may not come.
const MOST_EXPECTED: usize = 256 << 20;

/// What the values go into.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Records of so many bytes.
    Records(usize),
    /// Blocks of these columns each. Every column is in one, and the fields of a block have one size.
    Blocks(Vec<Vec<usize>>),
}

impl Shape {
    /// Whether every one of `steps` has its place in it.
    #[must_use]
    pub fn holds(&self, steps: &[Step]) -> bool {
        match self {
            Self::Records(size) => steps.iter().all(|step| step.offset + step.size <= *size),
            Self::Blocks(groups) => {
                let mut indexes: Vec<usize> = groups.iter().flatten().copied().collect();
                indexes.sort_unstable();
                indexes.into_iter().eq(0..steps.len())
                    && groups
                        .iter()
                        .all(|group| group.windows(2).all(|pair| steps[pair[0]].size == steps[pair[1]].size))
            }
        }
    }
}

#[derive(Debug)]
enum Layout {
    Records { memory: Vec<u8>, size: usize },
    Blocks { blocks: Vec<Block>, places: Vec<Place> },
}

/// Where a column is.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    block: usize,
    column: usize,
}

impl Layout {
    fn new(steps: &[Step], shape: &Shape) -> Self {
        let groups = match shape {
            Shape::Records(size) => return Self::Records { memory: Vec::new(), size: *size },
            Shape::Blocks(groups) => groups,
        };
        let mut places = vec![Place::default(); steps.len()];
        for (block, group) in groups.iter().enumerate() {
            for (column, index) in group.iter().enumerate() {
                places[*index] = Place { block, column };
            }
        }
        let size = |group: &[usize]| group.first().map_or(0, |index| steps[*index].size);
        let blocks = groups.iter().map(|group| Block::new(group.len(), size(group))).collect();
        Self::Blocks { blocks, places }
    }
}

/// A result on its way into NumPy's memory.
#[derive(Debug)]
pub struct Rows {
    steps: Vec<Step>,
    layout: Layout,
    count: u64,
    nulls: Vec<u64>,
    failure: Option<Failure>,
    /// Rows of the columns that asyncpg decodes, for it.
    objects: Option<Vec<u8>>,
}

impl Rows {
    /// No rows yet.
    ///
    /// # Panics
    /// Where `shape` does not hold `steps`.
    #[must_use]
    pub fn new(steps: Vec<Step>, shape: &Shape) -> Self {
        let layout = Layout::new(&steps, shape);
        let objects = steps.iter().any(Step::is_object).then(Vec::new);
        Self { steps, layout, count: 0, nulls: Vec::new(), failure: None, objects }
    }

    /// Makes room for so many rows, of which none may come: memory is held once it is written. Without it, what grows is
    /// copied now and then.
    pub fn expect(&mut self, rows: u64) {
        let rows = usize::try_from(rows).unwrap_or(usize::MAX);
        match &mut self.layout {
            Layout::Records { memory, size } => {
                // Where there is no room, growing will tell.
                let _ = memory.try_reserve_exact(rows.saturating_mul(*size).min(MOST_EXPECTED));
            }
            Layout::Blocks { blocks, .. } => {
                let width: usize = self.steps.iter().map(|step| step.size).sum();
                let rows = rows.min(MOST_EXPECTED / width.max(1));
                for block in blocks {
                    // Likewise.
                    let _ = block.grow(rows);
                }
            }
        }
    }

    /// The rows so far.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// What was wrong with the first row at fault; none that came later is kept.
    #[must_use]
    pub fn failure(&self) -> Option<Failure> {
        self.failure
    }

    /// Appends the row of a whole message.
    #[inline]
    pub fn push(&mut self, message: &[u8]) {
        if self.failure.is_some() {
            return;
        }
        let body = message.get(HEADER..).unwrap_or_default();
        if make_room(&mut self.nulls, self.steps.len()).is_err() {
            return self.fail(None, Fault::NoRoom);
        }
        let written = match &mut self.layout {
            Layout::Records { memory, size } => {
                let start = memory.len();
                if make_room(memory, *size).is_err() {
                    return self.fail(None, Fault::NoRoom);
                }
                memory.resize(start + *size, 0);
                write(&mut self.steps, &mut Record(&mut memory[start..]), body, &mut self.nulls, self.count)
            }
            Layout::Blocks { blocks, places } => {
                // More rows than memory has addresses do not come.
                let row = usize::try_from(self.count).unwrap_or(usize::MAX);
                if blocks.iter_mut().try_for_each(|block| block.reach(row)).is_err() {
                    return self.fail(None, Fault::NoRoom);
                }
                write(
                    &mut self.steps,
                    &mut Row { blocks, places, number: row },
                    body,
                    &mut self.nulls,
                    self.count,
                )
            }
        };
        if let Err((column, fault)) = written {
            return self.fail(column, fault);
        }
        self.count += 1;
        if let Some(objects) = &mut self.objects {
            rewrite(&self.steps, body, objects);
        }
    }

    /// Keeps why no more rows are taken.
    #[cold]
    pub fn fail(&mut self, column: Option<usize>, fault: Fault) {
        self.failure = Some(Failure { column, row: self.count, fault });
        // What is there is of no use.
        self.nulls = Vec::new();
        match &mut self.layout {
            Layout::Records { memory, .. } => *memory = Vec::new(),
            Layout::Blocks { blocks, .. } => blocks.clear(),
        }
    }

    /// The messages for asyncpg since the last call: the rows, NULL in every column that it does not decode.
    pub fn take_objects(&mut self) -> Option<Vec<u8>> {
        self.objects.as_mut().map(std::mem::take).filter(|messages| !messages.is_empty())
    }

    /// The memory of the records or of each block, and the indexes of the NULLs: row times columns plus column.
    #[must_use]
    pub fn finish(self) -> (Vec<Vec<u8>>, Vec<u64>) {
        let rows = usize::try_from(self.count).unwrap_or(usize::MAX);
        let memories = match self.layout {
            Layout::Records { memory, .. } => vec![memory],
            Layout::Blocks { blocks, .. } => blocks.into_iter().map(|block| block.finish(rows)).collect(),
        };
        (memories, self.nulls)
    }
}

/// Where the fields of one row are.
trait Fields {
    fn field(&mut self, index: usize, step: &Step) -> &mut [u8];
}

struct Record<'a>(&'a mut [u8]);

impl Fields for Record<'_> {
    #[inline]
    fn field(&mut self, _: usize, step: &Step) -> &mut [u8] {
        &mut self.0[step.offset..step.offset + step.size]
    }
}

/// A row of blocks.
struct Row<'a> {
    blocks: &'a mut [Block],
    places: &'a [Place],
    number: usize,
}

impl Fields for Row<'_> {
    #[inline]
    fn field(&mut self, index: usize, _: &Step) -> &mut [u8] {
        let Place { block, column } = self.places[index];
        self.blocks[block].field(column, self.number)
    }
}

/// Writes one row; says which column is at fault, if one is.
#[inline]
fn write(
    steps: &mut [Step],
    fields: &mut impl Fields,
    body: &[u8],
    nulls: &mut Vec<u64>,
    row: u64,
) -> Result<(), (Option<usize>, Fault)> {
    const BROKEN: (Option<usize>, Fault) = (None, Fault::Row);
    let columns = steps.len();
    let (count, mut rest) = body.split_first_chunk::<2>().ok_or(BROKEN)?;
    if usize::from(u16::from_be_bytes(*count)) != columns {
        return Err(BROKEN);
    }
    for (index, step) in steps.iter_mut().enumerate() {
        let (length, after) = rest.split_first_chunk::<4>().ok_or(BROKEN)?;
        let length = u32::from_be_bytes(*length);
        let field = fields.field(index, step);
        if length == NULL {
            nulls.push(row * columns as u64 + index as u64);
            field.copy_from_slice(&step.null);
            rest = after;
            continue;
        }
        let (cell, after) = after.split_at_checked(length as usize).ok_or(BROKEN)?;
        step.write(cell, field).map_err(|fault| (Some(index), fault))?;
        rest = after;
    }
    if rest.is_empty() { Ok(()) } else { Err(BROKEN) }
}

/// Appends the message of a row that [`write`] has walked over, NULL in every column but the objects.
fn rewrite(steps: &[Step], body: &[u8], into: &mut Vec<u8>) {
    let start = into.len();
    into.extend_from_slice(b"D\0\0\0\0");
    into.extend_from_slice(&body[..2]);
    let mut rest = &body[2..];
    for step in steps {
        let Some((word, after)) = rest.split_first_chunk::<4>() else { break };
        let length = u32::from_be_bytes(*word);
        let bytes = if length == NULL { 0 } else { length as usize };
        if step.is_object() {
            into.extend_from_slice(&rest[..4 + bytes]);
        } else {
            into.extend_from_slice(&NULL.to_be_bytes());
        }
        rest = &after[bytes..];
    }
    // No longer than the message that it was made of.
    let length = u32::try_from(into.len() - start - 1).unwrap_or(u32::MAX);
    into[start + 1..start + HEADER].copy_from_slice(&length.to_be_bytes());
}
