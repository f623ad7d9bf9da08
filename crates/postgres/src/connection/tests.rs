//! Connections to a server of a few lines.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread::sleep;

use std::time::Duration;

use super::*;

const GREETING: &[u8] = b"R\0\0\0\x08\0\0\0\0K\0\0\0\x0c\0\0\0\x01\0\0\0\x02Z\0\0\0\x05I";
const CANCELED: &[u8] = b"E\0\0\0\x1dSERROR\0C57014\0Mcanceled\0\0";
const READY: &[u8] = b"Z\0\0\0\x05I";

fn hear(stream: &mut TcpStream) {
    assert!(stream.read(&mut [0; 4096]).unwrap() > 0);
}

/// Greets, lets the first statement run until it is cancelled, and is slow to be ready after it has said so.
fn serve(listener: &TcpListener) {
    let (mut session, _) = listener.accept().unwrap();
    hear(&mut session);
    session.write_all(GREETING).unwrap();
    hear(&mut session);
    let (mut request, _) = listener.accept().unwrap();
    hear(&mut request);
    drop(request);
    session.write_all(CANCELED).unwrap();
    // Further requests to cancel are heard as well, however late.
    let further = listener.try_clone().unwrap();
    std::thread::spawn(move || while further.accept().is_ok() {});
    sleep(Duration::from_millis(100));
    session.write_all(READY).unwrap();
    while session.read(&mut [0; 4096]).is_ok_and(|count| count > 0) {}
}

#[test]
fn an_error_ahead_of_its_end_keeps_the_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = std::thread::spawn(move || serve(&listener));
    let target = Target::from_url(&format!("postgresql://me@127.0.0.1:{port}/db?sslmode=disable")).unwrap();
    let mut connection = Connection::open(&target, &Deadline::never()).unwrap();
    frontend::query("SELECT 1", &mut connection.outbox).unwrap();
    connection.flush(Exchange::Simple).unwrap();
    assert!(connection.stop());
    drop(connection);
    server.join().unwrap();
}
