//! The columns of one dtype -> the rows of one block.

/// How many pieces a column is moved in: so much less is held twice.
const PIECES: usize = 16;

/// One block of `columns`, one after the other. Each is freed from its end while it is copied, so that hardly more is held
/// than the block itself.
#[must_use]
pub fn block(mut columns: Vec<Vec<u8>>) -> Vec<u8> {
    if columns.len() == 1 {
        return columns.swap_remove(0);
    }
    let total = columns.iter().map(Vec::len).sum();
    // Zeros of the system's own: memory that is held only once it is written.
    let mut block = vec![0; total];
    let mut start = 0;
    for mut column in columns {
        let end = start + column.len();
        let piece = (column.len() / PIECES).max(1 << 20);
        while !column.is_empty() {
            let from = column.len().saturating_sub(piece);
            block[start + from..start + column.len()].copy_from_slice(&column[from..]);
            column.truncate(from);
            column.shrink_to_fit();
        }
        start = end;
    }
    block
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_follow_one_another() {
        assert_eq!(block(vec![vec![1, 2]]), [1, 2]);
        assert_eq!(block(vec![vec![1, 2], vec![3, 4], vec![5, 6]]), [1, 2, 3, 4, 5, 6]);
        assert_eq!(block(vec![vec![], vec![]]), [0; 0]);
        let long: Vec<u8> = (0..=255).cycle().take(5 << 20).collect();
        assert_eq!(block(vec![long.clone(), long.clone()]), [long.clone(), long].concat());
    }
}
