//! Reads over several sessions: their order, and what becomes of them when one fails.

mod fake;

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use fake::{Server, Stop, database, numbers};
use longshore_core::{
    Batches, Connection, Deadline, Delivery, Direct, Kind, Opened, Pool, Query, ReadOptions, Request, Result,
    Source, Split, Transaction, execute_partitions, open_read,
};

fn request(text: &str, sessions: usize, delivery: Delivery) -> Request {
    Request {
        setup: Vec::new(),
        queries: vec![Query::new(text)],
        split: Some(Split { number: NonZeroUsize::new(sessions), ..Split::default() }),
        delivery,
        estimate: false,
        options: ReadOptions::default(),
    }
}

fn open(source: &dyn Source, text: &str, sessions: usize, delivery: Delivery) -> Result<Box<dyn Batches>> {
    open_read(source, &request(text, sessions, delivery), &Deadline::never()).map(|opened| opened.batches)
}

/// All sessions are closed once no one reads: soon, for a thread may still be on its way out.
fn assert_closed(server: &Server) {
    let until = Instant::now() + Duration::from_secs(5);
    while server.open.load(Ordering::SeqCst) > 0 {
        assert!(Instant::now() < until, "a session is still open");
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn parts_come_in_their_order() {
    for sessions in [1, 2, 3, 4] {
        let (server, direct) = database();
        let batches = open(&direct, "sleep,1,2 3 sleep,4,5 6", sessions, Delivery::Ordered).unwrap();
        assert_eq!(numbers(batches).unwrap(), [1, 2, 3, 4, 5, 6]);
        assert_eq!(server.connects.load(Ordering::SeqCst), 1 + sessions);
        assert_closed(server);
        let log = server.log.lock().unwrap().clone();
        assert_eq!(log.last().unwrap(), "commit coordinator", "{log:?}");
        assert_eq!(server.count("commit part"), sessions);
    }
}

#[test]
fn interleaved_parts_are_all_there() {
    let (server, direct) = database();
    let batches = open(&direct, "sleep,1,2 3 4,5 6,7,8", 2, Delivery::Interleaved).unwrap();
    let mut all = numbers(batches).unwrap();
    assert_ne!(all[0], 1, "what comes first leaves first");
    all.sort_unstable();
    assert_eq!(all, [1, 2, 3, 4, 5, 6, 7, 8]);
    assert_closed(server);
}

#[test]
fn more_sessions_than_parts_are_not_opened() {
    let (server, direct) = database();
    assert_eq!(numbers(open(&direct, "1 2", 9, Delivery::Ordered).unwrap()).unwrap(), [1, 2]);
    assert_eq!(server.connects.load(Ordering::SeqCst), 3);
}

#[test]
fn a_part_that_fails_fails_the_whole() {
    for delivery in [Delivery::Ordered, Delivery::Interleaved] {
        for (text, says) in [
            ("1,2 3,fail hang", "part 2 of 3: a bad value"),
            ("1 2 3,fail", "part 3 of 3: a bad value"),
            ("fail", "part 1 of 1: a bad value"),
            ("1 2,panic hang", "a defect of Longshore"),
        ] {
            let (server, direct) = database();
            let started = Instant::now();
            let mut batches = open(&direct, text, 3, delivery).unwrap();
            let error = batches.by_ref().find_map(Result::err).unwrap();
            assert!(error.to_string().contains(says), "{error}");
            assert!(batches.next().is_none());
            drop(batches);
            assert!(started.elapsed() < Duration::from_secs(10));
            assert_closed(server);
        }
    }
}

#[test]
fn a_row_is_counted_over_the_parts_before_it() {
    let (server, direct) = database();
    for (text, row) in [("sleep,1,2 3,misfit 4", 3), ("sleep,1,misfit misfit 2", 1), ("1 2 misfit", 2)] {
        for sessions in [2, 3] {
            let batches = open(&direct, text, sessions, Delivery::Ordered).unwrap();
            let error = numbers(batches).unwrap_err();
            assert_eq!((error.place().row, error.message()), (Some(row), "a bad value"), "{text}");
        }
    }
    let batches = open(&direct, "1,2 misfit", 2, Delivery::Interleaved).unwrap();
    let error = numbers(batches).unwrap_err();
    assert_eq!((error.place().row, error.message()), (None, "part 2 of 2, row 0 of it: a bad value"));
    assert_closed(server);
}

#[test]
fn parts_that_no_one_asked_for() {
    let (server, direct) = database();
    let mut automatic = request("1 2", 2, Delivery::Ordered);
    automatic.split = Some(Split { most: NonZeroUsize::new(2), automatic: true, ..Split::default() });
    let read = |request: &Request| {
        let opened = open_read(&direct, request, &Deadline::never())?;
        assert_eq!(opened.serial, None);
        numbers(opened.batches)
    };
    server.splits_automatically.store(true, Ordering::SeqCst);
    assert_eq!(read(&automatic).unwrap(), [1, 2]);
    assert_eq!(server.connects.swap(0, Ordering::SeqCst), 3);
    // One session reads what the parts could not begin.
    server.loses_snapshot.store(true, Ordering::SeqCst);
    let whole = Request { queries: vec![Query::new("7,8")], ..automatic.clone() };
    assert_eq!(read(&whole).unwrap(), [7, 8]);
    // Where they are not welcome, nothing is divided.
    server.splits_automatically.store(false, Ordering::SeqCst);
    server.connects.store(0, Ordering::SeqCst);
    assert_eq!(read(&whole).unwrap(), [7, 8]);
    assert_eq!(server.connects.load(Ordering::SeqCst), 1);
    assert_closed(server);
}

#[test]
fn parts_begin_again_where_somebody_was_in_the_way() {
    let (server, direct) = database();
    for source in [&direct as &dyn Source, &Arc::new(Pool::new(direct.clone(), 4))] {
        server.busy.store(2, Ordering::SeqCst);
        let request = request("1,2 3 4", 3, Delivery::Ordered);
        request.options.meter.add_rows(9);
        let opened = open_read(source, &request, &Deadline::never()).unwrap();
        assert_eq!(opened.serial, None);
        assert_eq!(numbers(opened.batches).unwrap(), [1, 2, 3, 4]);
        // What the first attempt has counted counts no more.
        assert_eq!(request.options.meter.rows(), 0);
        assert_eq!(server.busy.load(Ordering::SeqCst), 0);
    }
}

#[test]
fn parts_that_never_begin_are_read_serially() {
    let (server, direct) = database();
    server.splits_automatically.store(true, Ordering::SeqCst);
    server.busy.store(usize::MAX, Ordering::SeqCst);
    let asked = request("7,8", 2, Delivery::Ordered);
    let split = Split { most: NonZeroUsize::new(2), automatic: true, ..Split::default() };
    let automatic = Request { split: Some(split), ..asked.clone() };
    for (request, reason) in [(&asked, Some("somebody is in the way")), (&automatic, None)] {
        let start = Instant::now();
        let opened = open_read(&direct, request, &Deadline::never()).unwrap();
        assert!(start.elapsed() < Duration::from_secs(10));
        assert_eq!(opened.serial.as_deref(), reason);
        assert_eq!(numbers(opened.batches).unwrap(), [7, 8]);
    }
    assert_closed(server);
}

#[test]
fn what_is_read_instead_of_parts_hears_its_own_caller() {
    let (server, direct) = database();
    server.splits_automatically.store(true, Ordering::SeqCst);
    server.loses_snapshot.store(true, Ordering::SeqCst);
    let mut automatic = request("1,hang", 2, Delivery::Ordered);
    automatic.split = Some(Split { most: NonZeroUsize::new(2), automatic: true, ..Split::default() });
    let stop = Arc::new(Stop::default());
    let mut batches = open_read(&direct, &automatic, &Deadline::new(stop.clone(), None)).unwrap().batches;
    assert!(batches.next().unwrap().is_ok());
    stop.0.store(true, Ordering::SeqCst);
    assert_eq!(batches.next().unwrap().unwrap_err().kind(), Kind::Cancelled);
    drop(batches);
    assert_closed(server);
}

#[test]
fn a_part_that_cannot_begin_fails_the_whole() {
    let (server, direct) = database();
    let error = open(&direct, "1 unreadable 3", 3, Delivery::Ordered).map(drop).unwrap_err();
    assert!(error.to_string().contains("part 2 of 3: unreadable"), "{error}");
    assert_closed(server);
}

#[test]
fn a_part_that_cannot_begin_later_fails_the_whole() {
    for delivery in [Delivery::Ordered, Delivery::Interleaved] {
        // Without a snapshot, one session that reads is enough to go on.
        let (server, direct) = database();
        server.snapshot.store(false, Ordering::SeqCst);
        let outcome = open(&direct, "1,sleep,2 unreadable 3", 3, delivery).and_then(numbers);
        let error = outcome.unwrap_err();
        assert!(error.to_string().contains("part 2 of 3: unreadable"), "{error}");
        assert_closed(server);
    }
}

#[test]
fn a_part_that_never_opens_ends_with_the_deadline() {
    let (server, direct) = database();
    *server.slow_connect.lock().unwrap() = Duration::from_secs(3600);
    let deadline = Deadline::new(Arc::new(Stop::default()), Some(Duration::from_millis(200)));
    let started = Instant::now();
    let outcome = open_read(&direct, &request("1 2", 2, Delivery::Ordered), &deadline);
    assert_eq!(outcome.map(drop).unwrap_err().kind(), Kind::Timeout);
    assert!(started.elapsed() < Duration::from_secs(10));
    assert_closed(server);
}

#[test]
fn a_part_whose_end_does_not_come_ends_with_the_deadline() {
    let (server, direct) = database();
    *server.slow_commit.lock().unwrap() = Duration::from_secs(3600);
    let deadline = Deadline::new(Arc::new(Stop::default()), Some(Duration::from_millis(200)));
    let started = Instant::now();
    let opened = open_read(&direct, &request("1 2", 2, Delivery::Ordered), &deadline).unwrap();
    assert_eq!(numbers(opened.batches).unwrap_err().kind(), Kind::Timeout);
    assert!(started.elapsed() < Duration::from_secs(10));
    assert_eq!(server.count("commit coordinator"), 0);
    assert_closed(server);
}

#[test]
fn a_deadline_is_heard_while_nothing_is_waited_for() {
    let (server, direct) = database();
    let deadline = Deadline::new(Arc::new(Stop::default()), Some(Duration::from_millis(100)));
    let request = request("1,2,3 4", 2, Delivery::Ordered);
    let mut batches = open_read(&direct, &request, &deadline).unwrap().batches;
    batches.next().unwrap().unwrap();
    std::thread::sleep(Duration::from_millis(150));
    assert_eq!(batches.next().unwrap().unwrap_err().kind(), Kind::Timeout);
    assert!(batches.next().is_none());
    drop(batches);
    assert_closed(server);
}

#[test]
fn sessions_of_a_failed_part_go_home() {
    let (server, direct) = database();
    let pool = Arc::new(Pool::new(direct, 3));
    for text in ["1,2 3,fail", "unreadable 1"] {
        assert!(open(&pool, text, 2, Delivery::Ordered).and_then(numbers).is_err());
        // Every one that is still open; a thread that was stopped early has opened none.
        assert_eq!((pool.idle(), pool.in_use()), (server.open.load(Ordering::SeqCst), 0), "{text}");
    }
}

#[test]
fn a_read_that_is_stopped_while_it_opens() {
    let (server, direct) = database();
    *server.slow_connect.lock().unwrap() = Duration::from_secs(3600);
    let stop = Arc::new(Stop::default());
    let deadline = Deadline::new(stop.clone(), None);
    let switch = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(100));
        stop.0.store(true, Ordering::SeqCst);
    });
    let outcome = open_read(&direct, &request("1 2", 2, Delivery::Ordered), &deadline);
    assert_eq!(outcome.map(drop).unwrap_err().kind(), Kind::Cancelled);
    switch.join().unwrap();
    assert_closed(server);
}

#[test]
fn a_read_that_is_dropped_in_the_middle_stops_all_parts() {
    for delivery in [Delivery::Ordered, Delivery::Interleaved] {
        let (server, direct) = database();
        let mut batches = open(&direct, "1,hang 2,3,4,5,6,7,8,9,hang hang", 3, delivery).unwrap();
        assert!(batches.next().unwrap().is_ok());
        let started = Instant::now();
        drop(batches);
        assert!(started.elapsed() < Duration::from_secs(10));
        assert_closed(server);
        assert_eq!(server.count("commit coordinator"), 0);
    }
}

#[test]
fn a_lost_coordinator_fails_the_whole() {
    let (server, direct) = database();
    server.loses_coordinator.store(true, Ordering::SeqCst);
    let error = numbers(open(&direct, "1 2", 2, Delivery::Ordered).unwrap()).unwrap_err();
    assert!(error.to_string().contains("coordinator lost"), "{error}");
    assert_closed(server);
}

// A session that its owner keeps.

fn own(direct: Arc<Direct>, autocommit: bool) -> Arc<Connection> {
    Connection::open(direct, autocommit, &Deadline::never()).unwrap()
}

#[test]
fn the_owners_session_comes_back_after_everything() {
    for text in ["1 2", "1,fail 2", "undividable", "unreadable 1", "hang 1"] {
        let (server, direct) = database();
        let own = own(direct, true);
        if let Ok(mut batches) = open(&own, text, 2, Delivery::Interleaved) {
            assert_eq!(own.transaction(), None);
            assert!(own.execute(&Query::new("x"), &Deadline::never()).is_err());
            let _ = batches.next();
        }
        assert!(!own.is_closed(), "{text}");
        assert_eq!(own.transaction(), Some(Transaction::None), "{text}");
        own.execute(&Query::new("x"), &Deadline::never()).unwrap();
        assert_eq!(server.open.load(Ordering::SeqCst), 1);
    }
}

#[test]
fn a_passed_deadline_does_not_keep_the_session() {
    let (_, direct) = database();
    let own = own(direct, true);
    let deadline = Deadline::new(Arc::new(Stop::default()), Some(Duration::from_millis(100)));
    let Opened { batches, .. } =
        open_read(&own, &request("1,hang hang", 2, Delivery::Ordered), &deadline).unwrap();
    assert_eq!(numbers(batches).unwrap_err().kind(), Kind::Timeout);
    assert!(!own.is_closed());
    assert_eq!(own.transaction(), Some(Transaction::None));
}

#[test]
fn a_session_that_is_lost_closes_the_connection() {
    for statement in ["die", "panic"] {
        let (server, direct) = database();
        let own = own(direct, true);
        let work = || own.execute(&Query::new(statement), &Deadline::never());
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
        assert!(!matches!(outcome, Ok(Ok(_))));
        assert!(own.is_closed());
        assert_eq!(own.execute(&Query::new("x"), &Deadline::never()).unwrap_err().kind(), Kind::Interface);
        assert_eq!(server.open.load(Ordering::SeqCst), 0);
    }
}

#[test]
fn a_statement_before_the_query_belongs_to_the_transaction() {
    let (server, direct) = database();
    server.divides.store(false, Ordering::SeqCst);
    let own = own(direct, false);
    let request = Request { setup: vec!["first".into()], ..request("1", 2, Delivery::Ordered) };
    let opened = open_read(&own, &request, &Deadline::never()).unwrap();
    assert_eq!(opened.serial.as_deref(), Some("it cannot be divided"));
    assert_eq!(numbers(opened.batches).unwrap(), [1]);
    assert_eq!(*server.log.lock().unwrap(), ["begin", "run first", "read 1"]);
    assert_eq!(own.transaction(), Some(Transaction::Open));
}

#[test]
fn a_closed_connection_lets_its_read_go_on() {
    let (server, direct) = database();
    let own = own(direct, true);
    let batches = open(&own, "1 2", 2, Delivery::Ordered).unwrap();
    own.close().unwrap();
    assert!(own.is_closed());
    assert_eq!(numbers(batches).unwrap(), [1, 2]);
    assert!(own.is_closed());
    assert_closed(server);
}

#[test]
fn a_lease_that_is_made_while_the_connection_closes_is_ended() {
    let (server, source) = database();
    let connection = Connection::open(source, true, &Deadline::never()).unwrap();
    *server.slow_connect.lock().unwrap() = Duration::from_millis(100);
    let making = {
        let (connection, day) = (connection.clone(), Duration::from_secs(86_400));
        let (options, split) = (ReadOptions::default(), Split::default());
        let query = Query::new("1 2");
        move || execute_partitions(&connection, query, &split, &options, day, &Deadline::never()).map(|_| ())
    };
    let making = std::thread::spawn(making);
    while server.connects.load(Ordering::SeqCst) < 2 {
        std::thread::sleep(Duration::from_millis(1));
    }
    connection.close().unwrap();
    assert_eq!(making.join().unwrap().unwrap_err().message(), "the connection is closed");
    assert_closed(server);
}
