//! The functions that the fuzz target calls: every reader of bytes that a server sends. There is none in an ordinary build.

use longshore_postgres::{Piece, RowSink, Splitter, Wanted};

use crate::{Column, Field, Form, Rows, Unit, plan};

/// Takes `bytes` for what a server sends, in two parts, while rows are kept. Its first bytes choose the columns and the parts.
///
/// # Panics
/// When what was kept does not add up.
pub fn stream(bytes: &[u8]) {
    let Some((&[which, how, cut], stream)) = bytes.split_first_chunk::<3>() else { return };
    let (columns, fields, size) = choose(which, usize::from(how >> 1) % 4 + 1);
    let Ok(steps) = plan(&columns, &fields) else { return };
    let Some(mut rows) = Rows::new(steps, size) else { return };
    let wanted = Wanted { rows: true, descriptions: true };
    let (mut splitter, mut at, mut others) = (Splitter::default(), 0, 0);
    for end in [stream.len().min(usize::from(cut)), stream.len()] {
        while let Ok(Some(piece)) = splitter.next(&stream[..end], at, wanted) {
            match piece {
                Piece::Row(range) => {
                    at = range.end;
                    rows.push(&stream[range]);
                    others += rows.take_objects().map_or(0, |objects| objects.len());
                }
                Piece::Description(range) | Piece::Other(range) => at = range.end,
            }
        }
    }
    assert!(others <= 6 * stream.len(), "objects are no longer than their rows, and NULLs");
    let (failure, count) = (rows.failure(), rows.count());
    let (_, nulls) = rows.finish();
    if failure.is_none() {
        assert!(nulls.windows(2).all(|pair| pair[0] < pair[1]));
        assert!(nulls.iter().all(|index| *index < count * columns.len() as u64));
    }
}

/// So many fields, each with a column that it takes.
fn choose(first: u8, count: usize) -> (Vec<Column>, Vec<Field>, usize) {
    let unit = |name: &str| Unit { name: name.to_owned(), multiple: 1 };
    let pairs = [
        ("bool", Form::Bool, 1),
        ("int8", Form::Unsigned, 8),
        ("int4", Form::Signed, 4),
        ("float8", Form::Float, 8),
        ("text", Form::Characters, 12),
        ("text", Form::Bytes, 3),
        ("bytea", Form::Bytes, 3),
        ("bytea", Form::Void(Vec::new()), 3),
        ("varbit", Form::Bytes, 3),
        ("jsonb", Form::Characters, 8),
        ("timestamp", Form::Datetime(unit("ns")), 8),
        ("timestamp", Form::Datetime(unit("M")), 8),
        ("date", Form::Datetime(unit("as")), 8),
        ("time", Form::Duration(unit("h")), 8),
        ("timetz", Form::Duration(unit("us")), 8),
        ("interval", Form::Duration(unit("ms")), 8),
        ("point", Form::Void(Vec::new()), 16),
        ("tid", Form::Void(Vec::new()), 6),
        ("numeric", Form::Object, 8),
    ];
    let (mut columns, mut fields, mut offset) = (Vec::new(), Vec::new(), 0);
    for (native, form, size) in pairs.iter().cycle().skip(usize::from(first)).take(count) {
        columns.push(Column { native, binary: true });
        fields.push(Field { form: form.clone(), offset, size: *size });
        offset += size;
    }
    (columns, fields, offset)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_of_every_kind_are_read_to_their_end() {
        let mut state = 1_u64;
        let mut random = move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            state.to_be_bytes()[0]
        };
        for which in 0..=u8::MAX {
            let columns = usize::from(random() >> 1) % 4 + 1;
            let mut bytes =
                vec![which, u8::try_from((columns - 1) << 1).unwrap_or_default() | which & 1, random()];
            for _ in 0..40 {
                let mut body = u16::try_from(columns).unwrap_or_default().to_be_bytes().to_vec();
                for _ in 0..columns {
                    let length = [0, 1, 2, 3, 4, 5, 6, 8, 12, 16, 255][usize::from(random()) % 11];
                    body.extend([if length == 255 { [0xff; 4] } else { [0, 0, 0, length] }].concat());
                    body.extend((0..length % 255).map(|_| random()));
                }
                bytes.push(if random() > 250 { random() } else { b'D' });
                bytes.extend(u32::try_from(body.len() + 4).unwrap_or_default().to_be_bytes());
                bytes.extend(body);
            }
            stream(&bytes);
        }
    }
}
