//! A pool never has more sessions than its size, and each of its reads gets its turn.

mod fake;

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use fake::{Stop, database, numbers};
use longshore_core::{
    Batches, Connection, Deadline, Kind, Pool, Query, ReadOptions, Request, Result, Split, open_read,
};

fn open(pool: &Arc<Pool>, text: &str, parts: usize, deadline: &Deadline) -> Result<Box<dyn Batches>> {
    let split = (parts > 1).then(|| Split { number: NonZeroUsize::new(parts), ..Split::default() });
    let request = Request { split, ..Request::unsplit(vec![Query::new(text)], ReadOptions::default()) };
    open_read(pool, &request, deadline).map(|opened| opened.batches)
}

fn read(pool: &Arc<Pool>, text: &str, parts: usize) -> Result<Vec<i64>> {
    numbers(open(pool, text, parts, &Deadline::never())?)
}

#[test]
fn the_bound_holds() {
    let (server, direct) = database();
    let pool = Arc::new(Pool::new(direct, 4));
    thread::scope(|scope| {
        for number in 0..24 {
            let pool = &pool;
            scope.spawn(move || {
                for _ in 0..10 {
                    match number % 4 {
                        0 => assert_eq!(read(pool, "1 2 3", 3).unwrap(), [1, 2, 3]),
                        1 => assert!(read(pool, "1,fail", 1).is_err()),
                        2 => drop(open(pool, "1,2", 1, &Deadline::never()).unwrap()),
                        _ => assert_eq!(read(pool, "1,2", 1).unwrap(), [1, 2]),
                    }
                }
            });
        }
    });
    assert!(server.most.load(Ordering::SeqCst) <= 4);
    assert_eq!(pool.in_use(), 0);
    assert_eq!(pool.idle(), server.open.load(Ordering::SeqCst));
    pool.close();
    assert_eq!(server.open.load(Ordering::SeqCst), 0);
}

#[test]
fn sessions_are_used_again_and_cleaned() {
    let (server, direct) = database();
    let pool = Arc::new(Pool::new(direct, 2));
    for _ in 0..5 {
        assert_eq!(read(&pool, "1", 1).unwrap(), [1]);
    }
    assert_eq!(server.connects.load(Ordering::SeqCst), 1);
    assert_eq!(server.count("reset"), 4);
}

#[test]
fn the_bound_holds_when_connecting_fails() {
    let (server, direct) = database();
    let pool = Arc::new(Pool::new(direct, 2));
    server.refuses.store(true, Ordering::SeqCst);
    for _ in 0..10 {
        assert_eq!(read(&pool, "1", 1).unwrap_err().kind(), Kind::Operational);
        assert_eq!(pool.in_use(), 0);
    }
    server.refuses.store(false, Ordering::SeqCst);
    assert_eq!(read(&pool, "1 2", 2).unwrap(), [1, 2]);
    // Dead sessions are closed before others are opened.
    server.refuses.store(true, Ordering::SeqCst);
    assert_eq!(read(&pool, "1", 1).unwrap_err().message(), "refused");
    assert_eq!((pool.in_use(), pool.idle()), (0, 0));
    assert_eq!(server.open.load(Ordering::SeqCst), 0);
}

#[test]
fn reads_in_parts_do_not_wait_for_each_others_sessions() {
    let (server, direct) = database();
    let pool = Arc::new(Pool::new(direct, 3));
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| assert_eq!(read(&pool, "sleep,1 2 3,4 5", 4).unwrap(), [1, 2, 3, 4, 5]));
        }
    });
    assert!(server.most.load(Ordering::SeqCst) <= 3);
}

#[test]
fn a_read_of_many_is_not_overtaken() {
    let (_, direct) = database();
    let pool = Arc::new(Pool::new(direct, 3));
    let small = open(&pool, "1", 1, &Deadline::never()).unwrap();
    thread::scope(|scope| {
        let large = scope.spawn(|| read(&pool, "1 2", 2).map(|numbers| (numbers, Instant::now())));
        thread::sleep(Duration::from_millis(100));
        let late = scope.spawn(|| read(&pool, "sleep,1", 1).map(|numbers| (numbers, Instant::now())));
        thread::sleep(Duration::from_millis(100));
        drop(small);
        let (large, late) = (large.join().unwrap().unwrap(), late.join().unwrap().unwrap());
        assert_eq!((large.0.as_slice(), late.0.as_slice()), ([1, 2].as_slice(), [1].as_slice()));
        assert!(large.1 < late.1);
    });
}

#[test]
fn a_serial_read_gives_back_what_it_does_not_need() {
    let (server, direct) = database();
    server.divides.store(false, Ordering::SeqCst);
    let pool = Arc::new(Pool::new(direct, 4));
    let batches = open(&pool, "1", 3, &Deadline::never()).unwrap();
    assert_eq!(pool.in_use(), 1);
    assert_eq!(read(&pool, "2", 1).unwrap(), [2]);
    assert_eq!(numbers(batches).unwrap(), [1]);
    assert_eq!(pool.in_use(), 0);
}

#[test]
fn a_wait_ends_with_its_deadline_a_stop_or_the_pool() {
    let (_, direct) = database();
    let pool = Arc::new(Pool::new(direct, 1));
    let held = open(&pool, "1", 1, &Deadline::never()).unwrap();
    let deadline = Deadline::new(Arc::new(Stop::default()), Some(Duration::from_millis(100)));
    let outcome = open(&pool, "1", 1, &deadline).map(drop);
    assert_eq!(outcome.unwrap_err().kind(), Kind::Timeout);

    let stop = Arc::new(Stop::default());
    stop.0.store(true, Ordering::SeqCst);
    let outcome = open(&pool, "1", 1, &Deadline::new(stop, None)).map(drop);
    assert_eq!(outcome.unwrap_err().kind(), Kind::Cancelled);

    thread::scope(|scope| {
        let waits = scope.spawn(|| read(&pool, "1", 1));
        thread::sleep(Duration::from_millis(100));
        pool.close();
        assert_eq!(waits.join().unwrap().unwrap_err().kind(), Kind::Interface);
    });
    assert_eq!(numbers(held).unwrap(), [1]);
    assert_eq!((pool.in_use(), pool.idle()), (0, 0));
}

#[test]
fn a_stop_while_a_session_is_cleaned_is_not_lost() {
    let (_, direct) = database();
    let pool = Arc::new(Pool::new(direct, 1));
    read(&pool, "1", 1).unwrap();
    let stop = Arc::new(Stop::default());
    stop.0.store(true, Ordering::SeqCst);
    let outcome = open(&pool, "1", 1, &Deadline::new(stop, None)).map(drop);
    assert_eq!(outcome.unwrap_err().kind(), Kind::Cancelled);
    assert_eq!(read(&pool, "1", 1).unwrap(), [1]);
}

#[test]
fn a_connection_ends_with_no_one_on_it() {
    let (server, direct) = database();
    let connection = Connection::open(direct, false, &Deadline::never()).unwrap();
    connection.begin(&Deadline::never()).unwrap();
    let request = Request::unsplit(vec![Query::new("1,2")], ReadOptions::default());
    let stream = open_read(&connection, &request, &Deadline::never()).unwrap().batches;
    assert!(connection.end_with(&Deadline::never(), |session| session.rollback()).is_none());
    drop(stream);
    let rolled_back = || connection.end_with(&Deadline::never(), |session| session.rollback());
    assert!(rolled_back().unwrap().is_ok());
    assert_eq!((server.count("rollback"), server.open.load(Ordering::SeqCst)), (1, 0));
    assert_eq!(rolled_back().unwrap().unwrap_err().kind(), Kind::Interface);
    assert!(connection.execute(&Query::new("1"), &Deadline::never()).is_err());
}
