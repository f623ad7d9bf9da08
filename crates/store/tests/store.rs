//! Transactions of a store, on real files.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use arrow_array::cast::AsArray as _;
use arrow_array::types::{Decimal64Type, Decimal128Type, Int64Type, UInt8Type};
use arrow_array::{
    Array as _, ArrayRef, Decimal128Array, DictionaryArray, Int8Array, Int64Array, RecordBatch, StringArray,
};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use longshore_core::{Deadline, Error, Frame, Kind, Result};
use longshore_store::{
    Access, Constant, Definition, Form, Operator, Predicate, Scan, Snapshot, Store, Transaction, Wanted,
};

static NEXT: AtomicU32 = AtomicU32::new(0);

/// A directory that goes with the test.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        let name = format!("longshore-store-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        Self(std::env::temp_dir().join(name))
    }

    fn store(&self) -> Store {
        Store::open(&self.0, Access::Create).unwrap()
    }

    fn files(&self) -> usize {
        std::fs::read_dir(self.0.join("data")).unwrap().count()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn columns([number, text]: [&str; 2]) -> SchemaRef {
    let fields = vec![Field::new(number, DataType::Int64, false), Field::new(text, DataType::Utf8, true)];
    Arc::new(Schema::new(fields))
}

fn schema() -> SchemaRef {
    columns(["id", "name"])
}

fn rows(ids: impl IntoIterator<Item = i64>, name: &str) -> RecordBatch {
    let ids = Int64Array::from_iter_values(ids);
    let names = StringArray::from(vec![name; ids.len()]);
    RecordBatch::try_new(schema(), vec![Arc::new(ids), Arc::new(names)]).unwrap()
}

fn create(transaction: &mut Transaction, name: &str, key: &[&str]) {
    let key = key.iter().map(|name| (*name).to_owned()).collect();
    transaction.create(name, &Definition { schema: schema(), key, text: None }, false).unwrap();
}

fn frame(batch: RecordBatch) -> Frame {
    Frame { schema: batch.schema(), batches: Box::new(std::iter::once(Ok(batch))) }
}

fn append(transaction: &mut Transaction, name: &str, batch: RecordBatch) -> Result<u64> {
    transaction.append(name, frame(batch), "append")
}

/// Commits one change.
fn commit<T>(store: &Store, change: impl FnOnce(&mut Transaction) -> T) -> T {
    let mut transaction = store.begin(Snapshot::Newest).unwrap();
    let changed = change(&mut transaction);
    transaction.commit().unwrap();
    changed
}

/// A store with one table, `boats`, whose key is `id`, of the rows 0 to 9.
fn boats(folder: &Folder) -> Store {
    let store = folder.store();
    let mut transaction = store.begin(Snapshot::Newest).unwrap();
    create(&mut transaction, "boats", &["id"]);
    append(&mut transaction, "boats", rows(0..10, "a")).unwrap();
    assert_eq!(transaction.commit().unwrap(), 1);
    store
}

fn ids(transaction: &mut Transaction, wanted: Wanted) -> Vec<i64> {
    let wanted = Wanted { columns: Some(vec!["id".to_owned()]), ..wanted };
    let batches = transaction.scan("boats", &wanted).unwrap().collect::<Result<Vec<_>>>().unwrap();
    batches.iter().flat_map(|batch| batch.column(0).as_primitive::<Int64Type>().values().to_vec()).collect()
}

fn at(store: &Store, snapshot: Snapshot) -> Vec<i64> {
    ids(&mut store.begin(snapshot).unwrap(), Wanted::default())
}

/// Deletes the rows with these numbers, by their positions.
fn delete(transaction: &mut Transaction, gone: &[i64]) -> u64 {
    let wanted = Wanted { positions: true, ..Wanted::default() };
    let batches = transaction.scan("boats", &wanted).unwrap().collect::<Result<Vec<_>>>().unwrap();
    let mut positions = batches.into_iter().map(|batch| {
        let ids = batch.column(0).as_primitive::<Int64Type>().values().iter();
        let found = ids.map(|id| Some(gone.contains(id))).collect();
        let batch = arrow_select::filter::filter_record_batch(&batch, &found).unwrap();
        Ok(batch.project(&[2]).unwrap())
    });
    transaction.delete("boats", &mut positions).unwrap()
}

fn refuses(error: &Error, kind: Kind, sqlstate: &str) {
    assert_eq!((error.kind(), error.sqlstate()), (kind, Some(sqlstate)), "{error}");
}

#[test]
fn a_commit_outlasts_its_store_and_a_rollback_leaves_nothing() {
    let folder = Folder::new();
    drop(boats(&folder));
    let store = folder.store();
    let mut transaction = store.begin(Snapshot::Newest).unwrap();
    append(&mut transaction, "boats", rows(10..20, "b")).unwrap();
    assert_eq!(ids(&mut transaction, Wanted::default()), (0..20).collect::<Vec<_>>());
    assert_eq!(folder.files(), 2);
    transaction.rollback();
    assert_eq!(folder.files(), 1);
    assert_eq!(at(&store, Snapshot::Newest), (0..10).collect::<Vec<_>>());
}

#[test]
fn each_version_stays_as_it_was_until_a_vacuum_that_waits_for_its_readers() {
    let folder = Folder::new();
    let store = boats(&folder);
    let mut transaction = store.begin(Snapshot::Newest).unwrap();
    assert_eq!(delete(&mut transaction, &(0..8).collect::<Vec<_>>()), 8);
    assert_eq!(transaction.commit().unwrap(), 2);
    let mut old = store.begin(Snapshot::Version(1)).unwrap();
    assert_eq!(at(&store, Snapshot::Newest), [8, 9]);
    // Most rows were deleted: the others were written again.
    assert_eq!(folder.files(), 2);
    assert_eq!(store.vacuum(0).unwrap().0, 0);
    assert_eq!(ids(&mut old, Wanted::default()), (0..10).collect::<Vec<_>>());
    drop(old);
    assert_eq!(store.vacuum(0).unwrap().0, 1);
    assert_eq!(folder.files(), 1);
    let error = store.begin(Snapshot::Version(1)).err().unwrap();
    assert_eq!(error.message(), "the store has no version 1");
    assert_eq!(error.hint(), Some("it keeps those from 2 to 2; store.versions() lists them"));
    assert_eq!(at(&store, Snapshot::Newest), [8, 9]);
    assert!(store.check().unwrap().is_empty());
}

#[test]
fn deleted_rows_are_marked_in_place() {
    let folder = Folder::new();
    let store = boats(&folder);
    for (gone, left) in [(vec![0], (1..10).collect::<Vec<_>>()), (vec![9, 5], vec![1, 2, 3, 4, 6, 7, 8])] {
        assert_eq!(commit(&store, |transaction| delete(transaction, &gone)), gone.len() as u64);
        assert_eq!(at(&store, Snapshot::Newest), left);
    }
    assert_eq!(folder.files(), 1);
    assert_eq!(at(&store, Snapshot::Version(2)), (1..10).collect::<Vec<_>>());
}

#[test]
fn a_deletion_writes_what_it_deletes_and_little_more() {
    let folder = Folder::new();
    let store = folder.store();
    make(&store, "boats", &[rows(0..600, "cog")]);
    let mut left: Vec<Vec<i64>> = vec![vec![], (0..600).collect()];
    for round in 0..120_i64 {
        // Positions with bytes of every kind, of which some are no text.
        let gone = [round * 5, round * 5 + 1];
        let gone = &gone[..=usize::from(round % 3 == 0)];
        assert_eq!(commit(&store, |transaction| delete(transaction, gone)), gone.len() as u64);
        left.push(left[left.len() - 1].iter().copied().filter(|id| !gone.contains(id)).collect());
    }
    for (version, left) in (0_i64..).zip(&left).skip(1) {
        assert_eq!(&at(&store, Snapshot::Version(version)), left, "{version}");
    }
    let catalogue = rusqlite::Connection::open(folder.0.join("catalogue.db")).unwrap();
    let told = |query: &str| catalogue.query_row(query, [], |row| row.get::<_, i64>(0)).unwrap();
    assert_eq!(folder.files(), 1);
    // Each list has as many rows as the next, or more; whole lists would have 9,680.
    assert!(told("SELECT count(*) FROM deletion WHERE ends > 121") <= 8);
    assert!(told("SELECT sum(length(rows)) / 4 FROM deletion") < 1_300);
}

#[test]
fn a_key_is_there_once() {
    let folder = Folder::new();
    let store = boats(&folder);
    let mut transaction = store.begin(Snapshot::Newest).unwrap();
    let error = append(&mut transaction, "boats", rows([20, 9], "b")).unwrap_err();
    refuses(&error, Kind::Integrity, "23505");
    assert_eq!(error.message(), "the table \"boats\" has the key (id) = (9) already");
    refuses(&append(&mut transaction, "boats", rows([30, 30], "b")).unwrap_err(), Kind::Integrity, "23505");
    // A key whose row is deleted is free again.
    delete(&mut transaction, &[9]);
    append(&mut transaction, "boats", rows([9], "b")).unwrap();
    transaction.upsert("boats", &["ID".to_owned()], frame(rows([3, 40, 40], "c"))).unwrap();
    transaction.commit().unwrap();
    let mut found = at(&store, Snapshot::Newest);
    found.sort_unstable();
    assert_eq!(found, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 40]);
}

#[test]
fn the_second_writer_of_a_table_waits_or_meets_a_conflict() {
    let folder = Folder::new();
    let store = boats(&folder);
    let mut first = store.begin(Snapshot::Newest).unwrap();
    append(&mut first, "boats", rows([10], "b")).unwrap();
    let mut second = store.begin(Snapshot::Newest).unwrap();
    assert_eq!(ids(&mut second, Wanted::default()).len(), 10);
    second.set_deadline(&Deadline::never().at_most(Duration::from_millis(20)));
    refuses(&append(&mut second, "boats", rows([11], "c")).unwrap_err(), Kind::Operational, "55P03");
    first.commit().unwrap();
    refuses(&append(&mut second, "boats", rows([11], "c")).unwrap_err(), Kind::Operational, "40001");
    // Who has not looked at anything writes after what is there.
    let mut third = store.begin(Snapshot::Newest).unwrap();
    let mut fourth = store.begin(Snapshot::Newest).unwrap();
    append(&mut third, "boats", rows([12], "d")).unwrap();
    third.commit().unwrap();
    append(&mut fourth, "boats", rows([13], "e")).unwrap();
    fourth.commit().unwrap();
    assert_eq!(at(&store, Snapshot::Newest), (0..11).chain([12, 13]).collect::<Vec<_>>());
}

#[test]
fn columns_come_and_go_without_a_file() {
    let folder = Folder::new();
    let store = boats(&folder);
    let mut transaction = store.begin(Snapshot::Newest).unwrap();
    let altered =
        |names: [&str; 2]| Definition { schema: columns(names), key: vec![names[0].to_owned()], text: None };
    // The column `name` goes, and another of its name comes.
    transaction.alter("boats", &altered(["number", "name"]), &[Some("id".to_owned()), None]).unwrap();
    let batch = transaction.scan("boats", &Wanted::default()).unwrap().next().unwrap().unwrap();
    assert_eq!(batch.schema().field(0).name(), "number");
    assert_eq!(batch.column(1).null_count(), 10);
    assert!(batch.schema().field(0).metadata().is_empty());
    let twice =
        transaction.alter("boats", &altered(["number", "Number"]), &[Some("number".to_owned()), None]);
    refuses(&twice.unwrap_err(), Kind::Programming, "42701");
    transaction.rollback();
    assert_eq!(folder.files(), 1);
}

#[test]
fn small_chunks_are_folded_and_large_ones_pruned() {
    let folder = Folder::new();
    let store = boats(&folder);
    for number in 1..100 {
        let added = rows(number * 10..number * 10 + 10, "b");
        commit(&store, |transaction| append(transaction, "boats", added)).unwrap();
    }
    let mut transaction = store.begin(Snapshot::Newest).unwrap();
    let table = transaction.table("boats").unwrap().unwrap();
    assert_eq!((table.rows(), table.chunks()), (1_000, 2));
    assert_eq!(ids(&mut transaction, Wanted::default()), (0..1_000).collect::<Vec<_>>());
    let constant = Constant::Number { unscaled: 7, scale: 0 };
    let predicate = Predicate { column: "id".to_owned(), operator: Operator::Less, constant };
    let wanted = Wanted { predicates: vec![predicate], ..Wanted::default() };
    let scan = transaction.scan("boats", &wanted).unwrap();
    assert_eq!(scan.chunks, 1);
    // The column is sorted: the rows are found within the chunk.
    assert!(scan.rows <= 8, "{}", scan.rows);
    let first = ids(&mut transaction, wanted).into_iter().filter(|id| *id < 7);
    assert!(first.eq(0..7));
    transaction.compact("boats").unwrap();
    assert_eq!(transaction.table("boats").unwrap().unwrap().chunks(), 1);
    assert_eq!(ids(&mut transaction, Wanted::default()), (0..1_000).collect::<Vec<_>>());
}

#[test]
fn marks_undo_what_came_after() {
    let folder = Folder::new();
    let store = boats(&folder);
    let mut transaction = store.begin(Snapshot::Newest).unwrap();
    let mark = transaction.mark();
    transaction.truncate("boats").unwrap();
    create(&mut transaction, "others", &[]);
    assert_eq!(transaction.tables().unwrap(), ["boats", "others"]);
    transaction.undo_to(mark).unwrap();
    assert_eq!(transaction.tables().unwrap(), ["boats"]);
    assert_eq!(ids(&mut transaction, Wanted::default()).len(), 10);
    transaction.rename("boats", "Ships").unwrap();
    transaction.commit().unwrap();
    let mut transaction = store.begin(Snapshot::Newest).unwrap();
    assert_eq!(transaction.tables().unwrap(), ["Ships"]);
    assert_eq!(transaction.table("ships").unwrap().unwrap().rows(), 10);
    let operations: Vec<String> =
        store.versions(Some("ships")).unwrap().into_iter().map(|change| change.operation).collect();
    assert_eq!(operations, ["rename"]);
}

#[test]
fn what_a_crash_has_left_is_removed_by_an_open_unless_someone_writes() {
    let folder = Folder::new();
    let store = boats(&folder);
    let left = folder.0.join("data").join("00.arrow");
    std::fs::write(&left, "half").unwrap();
    let mut transaction = store.begin(Snapshot::Newest).unwrap();
    append(&mut transaction, "boats", rows([10], "b")).unwrap();
    drop(folder.store());
    assert!(left.exists());
    transaction.commit().unwrap();
    drop(folder.store());
    assert!(!left.exists());
    assert_eq!(folder.files(), 2);
}

#[test]
fn damage_is_told_before_a_value_is_read() {
    let folder = Folder::new();
    let store = boats(&folder);
    let file = std::fs::read_dir(folder.0.join("data")).unwrap().next().unwrap().unwrap().path();
    let whole = std::fs::read(&file).unwrap();
    let fails = |bytes: &[u8]| {
        std::fs::write(&file, bytes).unwrap();
        let error = store.begin(Snapshot::Newest).unwrap().scan("boats", &Wanted::default()).err().unwrap();
        assert_eq!(error.kind(), Kind::Operational);
        assert!(error.message().contains(file.to_str().unwrap()), "{error}");
    };
    fails(&whole[..whole.len() - 1]);
    fails(&[&whole[..], b"x"].concat());
    fails(&vec![0; whole.len()]);
    let mut flipped = whole.clone();
    // The metadata and the footer, byte by byte: an error or the same rows, never a panic.
    for at in (0..whole.len()).filter(|at| *at < 600 || *at + 900 > whole.len()) {
        flipped[at] ^= 0x55;
        std::fs::write(&file, &flipped).unwrap();
        if let Ok(scan) = store.begin(Snapshot::Newest).unwrap().scan("boats", &Wanted::default()) {
            assert!(scan.map(|batch| batch.map_or(0, |batch| batch.num_rows())).sum::<usize>() <= 10);
        }
        assert_eq!(store.check().unwrap().len(), 1, "byte {at}");
        flipped[at] = whole[at];
    }
    std::fs::write(&file, &whole).unwrap();
    assert!(store.check().unwrap().is_empty());
}

#[test]
fn other_directories_are_refused() {
    let folder = Folder::new();
    let error = Store::open(&folder.0, Access::Write).err().unwrap();
    assert_eq!(error.message(), format!("there is no store in {}", folder.0.display()));
    std::fs::create_dir(&folder.0).unwrap();
    std::fs::write(folder.0.join("letter.txt"), "x").unwrap();
    let error = Store::open(&folder.0, Access::Create).err().unwrap();
    assert!(error.message().ends_with("is not empty, and is not a store"), "{error}");
    std::fs::write(folder.0.join("catalogue.db"), "x".repeat(4096)).unwrap();
    assert_eq!(Store::open(&folder.0, Access::Create).err().unwrap().kind(), Kind::Operational);
    let error = Store::open(Path::new("/proc/self/nothing"), Access::Create).err().unwrap();
    assert!(error.message().starts_with("making the store /proc/self/nothing"), "{error}");
}

#[test]
fn a_store_that_is_only_read_is_not_written() {
    let folder = Folder::new();
    drop(boats(&folder));
    let store = Store::open(&folder.0, Access::Read).unwrap();
    let mut transaction = store.begin(Snapshot::Newest).unwrap();
    assert_eq!(ids(&mut transaction, Wanted::default()).len(), 10);
    refuses(&append(&mut transaction, "boats", rows([10], "b")).unwrap_err(), Kind::NotSupported, "25006");
    assert_eq!(store.vacuum(0).unwrap_err().kind(), Kind::NotSupported);
}

#[test]
fn names_are_swapped() {
    let folder = Folder::new();
    let store = boats(&folder);
    commit(&store, |transaction| create(transaction, "zed", &[]));
    commit(&store, |transaction| append(transaction, "zed", rows([7], "z"))).unwrap();
    commit(&store, |transaction| {
        for (name, to) in [("zed", "between"), ("boats", "zed"), ("between", "boats")] {
            transaction.rename(name, to).unwrap();
        }
    });
    assert_eq!(at(&store, Snapshot::Newest), [7]);
    assert_eq!(store.begin(Snapshot::Newest).unwrap().table("zed").unwrap().unwrap().rows(), 10);
    commit(&store, |transaction| transaction.rename("zed", "abc")).unwrap();
    let mut transaction = store.begin(Snapshot::Newest).unwrap();
    assert_eq!(transaction.tables().unwrap(), ["abc", "boats"]);
    assert_eq!(transaction.table("ABC").unwrap().unwrap().rows(), 10);
    assert_eq!(at(&store, Snapshot::Version(2)), (0..10).collect::<Vec<_>>());
    refuses(&transaction.rename("abc", "a\0c").unwrap_err(), Kind::Programming, "42939");
}

#[test]
fn a_vacuum_sees_all_readers_in_whatever_order_they_came() {
    let folder = Folder::new();
    let store = boats(&folder);
    for number in 1..5 {
        commit(&store, |transaction| {
            transaction.truncate("boats").unwrap();
            append(transaction, "boats", rows([number], "b")).unwrap();
        });
    }
    let mut readers: Vec<Transaction> =
        [4, 1, 3].into_iter().map(|version| store.begin(Snapshot::Version(version)).unwrap()).collect();
    // Version 2 alone has no reader.
    assert_eq!(store.vacuum(0).unwrap().0, 1);
    let seen: Vec<usize> = readers.iter_mut().map(|reader| ids(reader, Wanted::default()).len()).collect();
    assert_eq!(seen, [1, 10, 1]);
}

#[test]
fn a_null_among_the_values_of_a_dictionary_is_one() {
    let folder = Folder::new();
    let store = folder.store();
    let values = StringArray::from(vec![Some("a"), None]);
    let column = |keys: Vec<i8>| DictionaryArray::new(Int8Array::from(keys), Arc::new(values.clone()));
    let field = Field::new("name", column(vec![0]).data_type().clone(), true);
    let schema = Arc::new(Schema::new(vec![field]));
    let mut transaction = store.begin(Snapshot::Newest).unwrap();
    let definition = Definition { schema: schema.clone(), key: vec!["name".to_owned()], text: None };
    transaction.create("names", &definition, false).unwrap();
    for (keys, refusal) in [(vec![0], None), (vec![1], Some("23502")), (vec![0], Some("23505"))] {
        let batch = RecordBatch::try_new(schema.clone(), vec![Arc::new(column(keys))]).unwrap();
        let appended = append(&mut transaction, "names", batch);
        assert_eq!(appended.err().and_then(|error| error.sqlstate().map(str::to_owned)).as_deref(), refusal);
    }
}

#[test]
fn dictionaries_with_too_many_values_together_stay_apart() {
    let folder = Folder::new();
    let store = folder.store();
    let mut transaction = store.begin(Snapshot::Newest).unwrap();
    for number in 0..20 {
        let values: StringArray = (0..100).map(|value| Some(format!("{number} {value}"))).collect();
        let keys = Int8Array::from_iter_values(0..100);
        let column: ArrayRef = Arc::new(DictionaryArray::new(keys, Arc::new(values)));
        let schema = Arc::new(Schema::new(vec![Field::new("name", column.data_type().clone(), true)]));
        if number == 0 {
            let definition = Definition { schema: schema.clone(), key: Vec::new(), text: None };
            transaction.create("names", &definition, false).unwrap();
        }
        let batch = RecordBatch::try_new(schema, vec![column]).unwrap();
        append(&mut transaction, "names", batch).unwrap();
    }
    assert_eq!(transaction.scan("names", &Wanted::default()).unwrap().rows, 2_000);
    let table = transaction.table("names").unwrap().unwrap();
    assert_eq!((table.rows(), table.chunks()), (2_000, 20));
}

#[test]
fn values_are_looked_at_where_that_is_wanted() {
    let folder = Folder::new();
    let store = boats(&folder);
    let file = std::fs::read_dir(folder.0.join("data")).unwrap().next().unwrap().unwrap().path();
    let mut bytes = std::fs::read(&file).unwrap();
    let name = bytes.windows(10).position(|each| each == b"aaaaaaaaaa").unwrap();
    bytes[name] = 0xff;
    std::fs::write(&file, &bytes).unwrap();
    let scan = |store: &Store, verified, validated| {
        let wanted = Wanted { verified, validated, ..Wanted::default() };
        store.begin(Snapshot::Newest)?.scan("boats", &wanted)
    };
    assert!(scan(&store, false, false).is_ok());
    assert!(scan(&store, true, false).err().unwrap().message().contains("checksum"));
    // Whoever has changed the file may have changed the catalogue, too.
    let catalogue = rusqlite::Connection::open(folder.0.join("catalogue.db")).unwrap();
    let checksum = xxhash_rust::xxh3::xxh3_64(&bytes).cast_signed();
    assert_eq!(catalogue.execute("UPDATE chunk SET checksum = ?", [checksum]).unwrap(), 1);
    // A store that is open knows its newest version.
    let store = folder.store();
    assert!(scan(&store, true, false).is_ok());
    let error = scan(&store, true, true).err().unwrap();
    assert!(error.message().contains("is damaged") && !error.message().contains("checksum"), "{error}");
}

/// Rows whose columns have an encoded form, and with so many of them a file of it.
fn sales(rows: i64, names: i64) -> RecordBatch {
    let prices = (0..rows).map(|row| (row % 5 > 0).then(|| i128::from(row) - 500));
    let prices = prices.collect::<Decimal128Array>().with_precision_and_scale(15, 2).unwrap();
    let sellers =
        (0..rows).map(|row| (row % 7 > 0).then(|| (row % names).to_string())).collect::<StringArray>();
    RecordBatch::try_from_iter_with_nullable([
        ("price", Arc::new(prices) as ArrayRef, true),
        ("seller", Arc::new(sellers) as ArrayRef, true),
    ])
    .unwrap()
}

fn make(store: &Store, name: &str, parts: &[RecordBatch]) {
    let definition = Definition { schema: parts[0].schema(), key: Vec::new(), text: None };
    commit(store, |transaction| {
        transaction.create(name, &definition, true).unwrap();
        for part in parts {
            append(transaction, name, part.clone()).unwrap();
        }
    });
}

fn read_encoded(store: &Store, name: &str) -> Vec<RecordBatch> {
    scan_encoded(store, name).unwrap().collect::<Result<Vec<_>>>().unwrap()
}

fn scan_encoded(store: &Store, name: &str) -> Result<Scan> {
    let wanted = Wanted { form: Form::Encoded, ..Wanted::default() };
    store.begin(Snapshot::Newest).unwrap().scan(name, &wanted)
}

/// The values of batches whose decimals and texts may be encoded.
fn values(batches: &[RecordBatch]) -> Vec<(Option<i128>, Option<String>)> {
    let prices = batches.iter().flat_map(|batch| match batch.column(0).as_primitive_opt::<Decimal64Type>() {
        Some(column) => column.iter().map(|price| price.map(i128::from)).collect::<Vec<_>>(),
        None => batch.column(0).as_primitive::<Decimal128Type>().iter().collect(),
    });
    let sellers = batches.iter().flat_map(|batch| match batch.column(1).as_dictionary_opt::<UInt8Type>() {
        Some(column) => {
            let texts = column.downcast_dict::<StringArray>().unwrap().into_iter();
            texts.map(|text| text.map(str::to_owned)).collect::<Vec<_>>()
        }
        None => batch.column(1).as_string::<i32>().iter().map(|text| text.map(str::to_owned)).collect(),
    });
    prices.zip(sellers).collect()
}

#[test]
fn the_engine_gets_the_same_values_in_another_form() {
    let folder = Folder::new();
    let store = folder.store();
    let (large, small) = (sales(100_000, 9), sales(1_000, 11));
    make(&store, "sales", &[large.clone(), small.clone()]);
    // The large chunk has a file of encoded columns, and the small one does not.
    assert_eq!(folder.files(), 3);
    let found = read_encoded(&store, "sales");
    let kinds: Vec<DataType> =
        found[0].schema().fields().iter().map(|field| field.data_type().clone()).collect();
    let texts = DataType::Dictionary(Box::new(DataType::UInt8), Box::new(DataType::Utf8));
    assert_eq!(kinds, [DataType::Decimal64(15, 2), texts]);
    assert_eq!(values(&found), values(&[large.clone(), small]));
    // A text that has many values in one chunk is as it is in all.
    let many = sales(1_000, 300);
    make(&store, "sales", &[large.clone(), many.clone()]);
    let found = read_encoded(&store, "sales");
    assert_eq!(found[0].column(1).data_type(), &DataType::Utf8);
    assert_eq!(values(&found), values(&[large, many]));
    assert_eq!(store.check().unwrap(), Vec::<String>::new());
    // A vacuum removes both files of a chunk.
    store.vacuum(0).unwrap();
    assert_eq!(folder.files(), 3);
}

#[test]
fn a_rollback_leaves_no_encoded_file() {
    let folder = Folder::new();
    let store = folder.store();
    let mut transaction = store.begin(Snapshot::Newest).unwrap();
    let rows = sales(100_000, 9);
    let definition = Definition { schema: rows.schema(), key: Vec::new(), text: None };
    transaction.create("sales", &definition, false).unwrap();
    append(&mut transaction, "sales", rows).unwrap();
    assert_eq!(folder.files(), 2);
    transaction.rollback();
    assert_eq!(folder.files(), 0);
}

#[test]
fn a_file_that_stays_mapped_is_let_go() {
    let folder = Folder::new();
    let store = folder.store();
    let data = format!("{}/data", folder.0.display());
    // The files that are mapped, and those of them that are removed.
    let mapped = || {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let ours = || maps.lines().filter(|line| line.contains(&data));
        (ours().count(), ours().filter(|line| line.ends_with("(deleted)")).count())
    };
    make(&store, "sales", &[sales(100_000, 9)]);
    read_encoded(&store, "sales");
    assert_eq!(mapped(), (2, 0));
    // Those of the version before are let go with the next look at the newest.
    make(&store, "sales", &[sales(1_000, 9)]);
    read_encoded(&store, "sales");
    assert_eq!(mapped(), (1, 0));
    store.vacuum(0).unwrap();
    assert_eq!(mapped(), (0, 0));
}

#[test]
fn a_file_that_is_cut_while_it_stays_mapped_is_an_error() {
    let folder = Folder::new();
    let store = folder.store();
    make(&store, "sales", &[sales(100_000, 9)]);
    read_encoded(&store, "sales");
    for entry in std::fs::read_dir(folder.0.join("data")).unwrap() {
        let file = std::fs::OpenOptions::new().write(true).open(entry.unwrap().path()).unwrap();
        file.set_len(file.metadata().unwrap().len() - 1).unwrap();
    }
    let error = scan_encoded(&store, "sales").err().unwrap();
    assert!(error.message().contains("bytes, of"), "{error}");
}
