//! Rows as a server sends them, into records.

use longshore_numpy_records::{Column, Failure, Fault, Field, Form, Leaf, Mismatch, Rows, Step, Unit, plan};
use longshore_postgres::RowSink;

const NULL: Option<&[u8]> = None;

fn column(native: &'static str) -> Column {
    Column { native, binary: true }
}

/// One field after the other.
fn fields(forms: Vec<(Form, usize)>) -> (Vec<Field>, usize) {
    let mut offset = 0;
    let mut fields = Vec::new();
    for (form, size) in forms {
        fields.push(Field { form, offset, size });
        offset += size;
    }
    (fields, offset)
}

fn message(cells: &[Option<&[u8]>]) -> Vec<u8> {
    let mut body = u16::try_from(cells.len()).unwrap().to_be_bytes().to_vec();
    for cell in cells {
        match cell {
            None => body.extend(u32::MAX.to_be_bytes()),
            Some(bytes) => {
                body.extend(u32::try_from(bytes.len()).unwrap().to_be_bytes());
                body.extend_from_slice(bytes);
            }
        }
    }
    let length = u32::try_from(body.len() + 4).unwrap();
    [b"D".as_slice(), &length.to_be_bytes(), &body].concat()
}

fn steps(columns: &[&'static str], forms: Vec<(Form, usize)>) -> (Vec<Step>, usize) {
    let columns: Vec<Column> = columns.iter().map(|native| column(native)).collect();
    let (fields, size) = fields(forms);
    (plan(&columns, &fields).expect("the dtype fits"), size)
}

/// The memory of one column's cells.
fn read(native: &'static str, form: Form, size: usize, cells: &[Option<&[u8]>]) -> Result<Vec<u8>, Failure> {
    let (steps, size) = steps(&[native], vec![(form, size)]);
    let mut rows = Rows::new(steps, size).unwrap();
    for cell in cells {
        rows.push(&message(&[*cell]));
    }
    if let Some(failure) = rows.failure() {
        return Err(failure);
    }
    Ok(rows.finish().0)
}

fn fault(native: &'static str, form: Form, size: usize, cells: &[&[u8]]) -> Fault {
    let cells: Vec<Option<&[u8]>> = cells.iter().map(|cell| Some(*cell)).collect();
    read(native, form, size, &cells).expect_err("it is refused").fault
}

fn unit(name: &str) -> Unit {
    Unit { name: name.to_owned(), multiple: 1 }
}

#[test]
fn records_hold_every_field() {
    let forms = vec![(Form::Signed, 4), (Form::Bytes, 3), (Form::Float, 8)];
    let rows = [
        message(&[Some(&7_i32.to_be_bytes()), Some(b"abc"), Some(&1.5_f64.to_be_bytes())]),
        message(&[NULL, Some(b""), NULL]),
        message(&[Some(&(-1_i32).to_be_bytes()), NULL, Some(&(-0.0_f64).to_be_bytes())]),
    ];
    let first = [7_i32.to_ne_bytes(), i32::MIN.to_ne_bytes(), (-1_i32).to_ne_bytes()];
    let second = [*b"abc", [0; 3], [0xff; 3]];
    let third = [1.5_f64.to_ne_bytes(), f64::NAN.to_ne_bytes(), (-0.0_f64).to_ne_bytes()];

    let (plan, size) = steps(&["int4", "text", "float8"], forms);
    let mut records = Rows::new(plan, size).unwrap();
    for row in &rows {
        records.push(row);
    }
    assert_eq!((records.count(), records.failure()), (3, None));
    let expected: Vec<u8> =
        (0..3).flat_map(|row| [&first[row][..], &second[row], &third[row]].concat()).collect();
    assert_eq!(records.finish(), (expected, vec![3, 5, 7]));
    records.push(&rows[0]);
    assert_eq!((records.count(), records.finish()), (0, (vec![], vec![])));
}

#[test]
fn room_grows_with_the_rows_whatever_was_expected() {
    for expected in [0, 1, 5000, 50_000] {
        let (plan, size) = steps(&["int4", "text"], vec![(Form::Signed, 4), (Form::Bytes, 3)]);
        let mut rows = Rows::new(plan, size).unwrap();
        rows.expect(expected);
        for row in 0..5000_i32 {
            rows.push(&message(&[Some(&row.to_be_bytes()), Some(b"abc")]));
        }
        let records = (0..5000_i32).flat_map(|row| [&row.to_ne_bytes()[..], b"abc"].concat());
        assert_eq!(rows.finish(), (records.collect(), vec![]), "{expected} expected");
    }
}

#[test]
fn every_field_has_its_place() {
    let (plan, size) = steps(&["int4", "text"], vec![(Form::Signed, 4), (Form::Bytes, 3)]);
    assert!(Rows::new(plan.clone(), size).is_some() && Rows::new(plan, size - 1).is_none());
}

#[test]
fn asyncpg_gets_the_objects_and_nothing_else() {
    let (plan, size) =
        steps(&["int4", "numeric", "text"], vec![(Form::Signed, 4), (Form::Object, 8), (Form::Object, 8)]);
    let mut rows = Rows::new(plan, size).unwrap();
    rows.push(&message(&[Some(&7_i32.to_be_bytes()), Some(b"number"), NULL]));
    rows.push(&message(&[NULL, NULL, Some(b"")]));
    let expected = [message(&[NULL, Some(b"number"), NULL]), message(&[NULL, NULL, Some(b"")])].concat();
    assert_eq!(rows.take_objects(), Some(expected));
    assert_eq!(rows.take_objects(), None);
    assert_eq!(rows.finish().1, [2, 3, 4]);
}

#[test]
fn a_row_that_is_not_as_described_is_a_fault_of_the_row() {
    let whole = message(&[Some(b"abcd")]);
    let mut broken = vec![message(&[]), message(&[NULL, NULL]), [whole.clone(), vec![0]].concat()];
    broken.extend((0..whole.len()).map(|length| whole[..length].to_vec()));
    for row in broken {
        let mut rows = Rows::new(steps(&["text"], vec![(Form::Bytes, 9)]).0, 9).unwrap();
        rows.push(&whole);
        rows.push(&row);
        rows.push(&whole);
        assert_eq!(rows.failure(), Some(Failure { column: None, row: 1, fault: Fault::Row }), "{row:?}");
    }
}

#[test]
fn every_type_of_one_width_refuses_another_length() {
    let forms = [
        ("bool", Form::Bool, 1),
        ("int2", Form::Signed, 2),
        ("int4", Form::Signed, 4),
        ("int8", Form::Signed, 8),
        ("oid", Form::Unsigned, 4),
        ("xid8", Form::Unsigned, 8),
        ("float4", Form::Float, 4),
        ("float8", Form::Float, 8),
        ("date", Form::Datetime(unit("D")), 8),
        ("time", Form::Duration(unit("us")), 8),
        ("timetz", Form::Duration(unit("us")), 8),
        ("timestamptz", Form::Datetime(unit("us")), 8),
        ("interval", Form::Duration(unit("us")), 8),
        ("point", Form::Void(Vec::new()), 16),
        ("tid", Form::Void(Vec::new()), 6),
    ];
    for (native, form, size) in forms {
        for length in [0_usize, 1, 3, 7, 13, 17] {
            if (native, length) == ("bool", 1) {
                continue;
            }
            assert_eq!(
                fault(native, form.clone(), size, &[&vec![1; length]]),
                Fault::Length(length),
                "{native}"
            );
        }
    }
}

#[test]
fn signs_are_never_reinterpreted() {
    assert_eq!(fault("int4", Form::Unsigned, 4, &[&(-1_i32).to_be_bytes()]), Fault::Sign);
    assert_eq!(fault("int8", Form::Unsigned, 8, &[&i64::MIN.to_be_bytes()]), Fault::Sign);
    assert_eq!(fault("oid", Form::Signed, 4, &[&u32::MAX.to_be_bytes()]), Fault::Sign);
    assert_eq!(fault("pg_lsn", Form::Signed, 8, &[&(1_u64 << 63).to_be_bytes()]), Fault::Sign);
    let least = read("int2", Form::Unsigned, 2, &[Some(&i16::MAX.to_be_bytes()), NULL]).unwrap();
    assert_eq!(least, [i16::MAX.to_ne_bytes(), (1_u16 << 15).to_ne_bytes().map(|byte| byte)].concat());
}

#[test]
fn infinity_and_what_is_out_of_range_are_never_wrapped() {
    let datetime = |name: &str| Form::Datetime(unit(name));
    for infinite in [i64::MIN, i64::MAX] {
        assert_eq!(fault("timestamp", datetime("us"), 8, &[&infinite.to_be_bytes()]), Fault::Infinite);
    }
    for infinite in [i32::MIN, i32::MAX] {
        assert_eq!(fault("date", datetime("D"), 8, &[&infinite.to_be_bytes()]), Fault::Infinite);
    }
    let endless =
        [i64::MAX.to_be_bytes().as_slice(), &i32::MAX.to_be_bytes(), &i32::MAX.to_be_bytes()].concat();
    assert_eq!(fault("interval", Form::Duration(unit("us")), 8, &[&endless]), Fault::Infinite);
    let far = 250_000_000_000_000_000_i64.to_be_bytes();
    assert_eq!(fault("timestamp", datetime("ns"), 8, &[&far]), Fault::OutOfRange);
    let last = (i64::MAX - 1).to_be_bytes();
    assert_eq!(fault("timestamp", datetime("us"), 8, &[&last]), Fault::OutOfRange);
    let seconds = read("timestamp", datetime("s"), 8, &[Some(&last)]).unwrap();
    let expected = (i128::from(i64::MAX - 1) + 946_684_800_000_000) / 1_000_000;
    assert_eq!(seconds, i64::try_from(expected).unwrap().to_ne_bytes());
    let long = [0_i64.to_be_bytes().as_slice(), &0_i32.to_be_bytes(), &i32::MAX.to_be_bytes()].concat();
    assert_eq!(fault("interval", Form::Duration(unit("us")), 8, &[&long]), Fault::OutOfRange);
}

#[test]
fn bytes_that_numpy_would_strip_are_refused_where_lengths_differ() {
    assert!(read("bytea", Form::Bytes, 2, &[Some(&[1, 0]), Some(&[0, 0]), NULL]).is_ok());
    assert!(read("bytea", Form::Bytes, 2, &[Some(&[1, 1]), Some(&[1]), Some(&[])]).is_ok());
    assert_eq!(fault("bytea", Form::Bytes, 2, &[&[0]]), Fault::TrailingZero);
    assert_eq!(fault("bytea", Form::Bytes, 2, &[&[1, 0], &[1]]), Fault::TrailingZero);
    assert_eq!(fault("bytea", Form::Bytes, 2, &[&[1], &[1, 0]]), Fault::TrailingZero);
    assert_eq!(fault("bytea", Form::Bytes, 2, &[&[1, 2, 3]]), Fault::Short(3));
    assert_eq!(fault("bytea", Form::Void(Vec::new()), 2, &[&[1]]), Fault::Inexact(1));
}

#[test]
fn bits_are_of_one_count() {
    let bits = |count: u32, bytes: &[u8]| [&count.to_be_bytes()[..], bytes].concat();
    let (three, four) = (bits(3, &[0xa0]), bits(4, &[0xa0]));
    assert_eq!(
        read("varbit", Form::Bytes, 1, &[Some(&three), NULL, Some(&three)]).unwrap(),
        [0xa0, 0xff, 0xa0]
    );
    assert_eq!(fault("varbit", Form::Bytes, 1, &[&three, &four]), Fault::BitCount(4));
    assert_eq!(fault("varbit", Form::Bytes, 1, &[&bits(9, &[1])]), Fault::Length(5));
    assert_eq!(fault("varbit", Form::Bytes, 1, &[&bits(9, &[1, 0])]), Fault::Short(2));
}

#[test]
fn json_loses_its_version_and_nothing_else() {
    assert_eq!(read("jsonb", Form::Bytes, 2, &[Some(b"\x01{}")]).unwrap(), b"{}");
    assert_eq!(fault("jsonb", Form::Bytes, 2, &[b"\x02{}"]), Fault::Version);
    assert_eq!(fault("jsonb", Form::Characters, 8, &[b""]), Fault::Version);
}

#[test]
fn a_null_without_a_type_goes_into_every_field() {
    for (form, size, null) in [
        (Form::Bool, 1, vec![0x80]),
        (Form::Signed, 2, i16::MIN.to_ne_bytes().to_vec()),
        (Form::Float, 4, f32::NAN.to_ne_bytes().to_vec()),
        (Form::Datetime(unit("us")), 8, i64::MIN.to_ne_bytes().to_vec()),
        (Form::Void(Vec::new()), 3, vec![0x80; 3]),
        (Form::Void(vec![Leaf { kind: 'f', size: 8, offset: 0 }]), 8, f64::NAN.to_ne_bytes().to_vec()),
    ] {
        assert_eq!(read("text", form.clone(), size, &[NULL]).unwrap(), null, "{form:?}");
        assert_eq!(fault("text", form, size, &[b""]), Fault::Kind);
    }
}

#[test]
fn fields_that_do_not_take_their_column_are_told() {
    let refused = |native, form, size| {
        let field = Field { form, offset: 0, size };
        plan(&[column(native)], &[field]).err()
    };
    for (native, form, size) in [
        ("int4", Form::Signed, 8),
        ("int8", Form::Signed, 4),
        ("int4", Form::Float, 4),
        ("float8", Form::Float, 4),
        ("bool", Form::Signed, 1),
        ("numeric", Form::Float, 8),
        ("timestamp", Form::Duration(unit("us")), 8),
        ("time", Form::Datetime(unit("us")), 8),
        ("timestamp", Form::Datetime(unit("generic")), 8),
        ("interval", Form::Duration(unit("M")), 8),
        ("text", Form::Bytes, 0),
        ("text", Form::Characters, 0),
        ("text", Form::Float, 2),
        ("varchar", Form::Void(Vec::new()), 4),
        ("uuid", Form::Bytes, 15),
        ("point", Form::Void(Vec::new()), 24),
        ("point", Form::Void(vec![Leaf { kind: 'f', size: 4, offset: 0 }; 2]), 16),
        (
            "tid",
            Form::Void(vec![Leaf { kind: 'u', size: 4, offset: 0 }, Leaf { kind: 'f', size: 2, offset: 4 }]),
            8,
        ),
        ("no_such_type", Form::Bytes, 9),
        ("text", Form::Other, 9),
    ] {
        assert_eq!(refused(native, form.clone(), size), Some(Mismatch::Field(0)), "{native} {form:?}");
    }
    assert_eq!(plan(&[column("int4")], &[]).err(), Some(Mismatch::Count(0, 1)));
    // What comes in text is text, whatever its type.
    let text = Column { native: "numeric", binary: false };
    assert!(plan(&[text], &[Field { form: Form::Characters, offset: 0, size: 8 }]).is_ok());
    assert!(plan(&[text], &[Field { form: Form::Float, offset: 0, size: 8 }]).is_err());
}
