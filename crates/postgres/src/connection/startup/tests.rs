//! Openings against a server of a few lines.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use longshore_core::{Kind, Never, Target};

use super::*;
use crate::settings::Environment;

/// A scripted server for one connection after another: for each message of the client, an answer.
struct Fake {
    port: u16,
    thread: JoinHandle<Vec<Vec<u8>>>,
}

impl Fake {
    /// A server that answers the n-th message it receives, over all its connections, with the n-th of `answers`,
    /// and hangs up where there is none.
    fn new(connections: Vec<Vec<Vec<u8>>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let thread = std::thread::spawn(move || {
            let mut heard = Vec::new();
            for answers in connections {
                let (mut stream, _) = listener.accept().unwrap();
                for answer in answers {
                    let mut buffer = [0; 4096];
                    let count = stream.read(&mut buffer).unwrap_or(0);
                    heard.push(buffer[..count].to_vec());
                    let _ = stream.write_all(&answer);
                }
            }
            heard
        });
        Self { port, thread }
    }

    fn messages(self) -> Vec<Vec<u8>> {
        self.thread.join().unwrap()
    }
}

fn message(tag: u8, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(4 + body.len()).unwrap();
    [&[tag], &length.to_be_bytes()[..], body].concat()
}

fn ok() -> Vec<u8> {
    message(b'R', &[0; 4])
}

fn status(name: &str, value: &str) -> Vec<u8> {
    message(b'S', format!("{name}\0{value}\0").as_bytes())
}

fn error(sqlstate: &str, text: &str) -> Vec<u8> {
    message(b'E', format!("SFATAL\0C{sqlstate}\0M{text}\0\0").as_bytes())
}

fn ready() -> Vec<u8> {
    message(b'Z', b"I")
}

fn open_at(ports: &[u16], query: &str, deadline: &Deadline) -> Result<Connection> {
    let hosts: Vec<String> = ports.iter().map(|port| format!("127.0.0.1:{port}")).collect();
    let url = format!("postgresql://me:hidden@{}/db?{query}", hosts.join(","));
    let settings = Settings::resolve(&Target::from_url(&url)?, &environment())?;
    open_any(&settings, deadline)
}

fn open(ports: &[u16], query: &str) -> Result<Connection> {
    open_at(ports, query, &Deadline::new(Arc::new(Never), Some(Duration::from_secs(5))))
}

fn failure(ports: &[u16], query: &str) -> Error {
    let Err(error) = open(ports, query) else { panic!("it worked") };
    assert!(!error.to_string().contains("hidden"), "{error}");
    error
}

fn environment() -> Environment {
    Environment { variables: BTreeMap::new(), home: None, user: || None, socket_directories: Vec::new() }
}

#[test]
fn opens_and_cancels() {
    let key = [9; 36];
    let greeting = [
        ok(),
        message(b'N', b"SNOTICE\0\0"),
        status("server_version", "18.0"),
        status("client_encoding", "utf-8"),
        message(b'K', &key),
        ready(),
    ];
    let fake = Fake::new(vec![vec![greeting.concat()], vec![Vec::new()]]);
    let connection = open(&[fake.port], "sslmode=disable&options=-c%20a%3Db").unwrap();
    assert_eq!(connection.parameters.get("server_version").map(String::as_str), Some("18.0"));
    assert!(connection.inbox.bytes().is_empty());
    connection.canceller.cancel().unwrap();
    let heard = fake.messages();
    let settings = "user\0me\0database\0db\0application_name\0longshore\0client_encoding\0UTF8\0DateStyle\0ISO\0\
                    options\0-c a=b\0\0";
    assert_eq!(heard[0][4..8], [0, 3, 0, 0]);
    assert_eq!(String::from_utf8_lossy(&heard[0][8..]), settings);
    assert_eq!(heard[1], [&[0, 0, 0, 44, 4, 210, 22, 46][..], &key].concat());
}

#[test]
fn a_server_without_a_key_cannot_be_cancelled() {
    let fake = Fake::new(vec![vec![[ok(), ready()].concat()]]);
    let connection = open(&[fake.port], "sslmode=disable").unwrap();
    assert!(connection.canceller.cancel().unwrap_err().hint().is_some());
}

#[test]
fn negotiated_versions_and_notices_are_no_matter() {
    let greeting = [message(b'v', &[0; 8]), message(b'N', b"\0"), ok(), message(b'A', b"x"), ready()];
    open(&[Fake::new(vec![vec![greeting.concat()]]).port], "sslmode=disable").unwrap();
}

#[test]
fn prefers_tls_and_does_without() {
    let fake = Fake::new(vec![vec![b"N".to_vec(), [ok(), ready()].concat()]]);
    assert!(!open(&[fake.port], "sslmode=prefer").unwrap().socket.is_encrypted());
    assert_eq!(fake.messages()[0], [0, 0, 0, 8, 4, 210, 22, 47]);
    // A broken handshake leads to a second connection.
    let fake = Fake::new(vec![vec![b"S".to_vec(), vec![0; 64]], vec![[ok(), ready()].concat()]]);
    open(&[fake.port], "sslmode=prefer").unwrap();
    let fake = Fake::new(vec![vec![b"N".to_vec()]]);
    assert!(failure(&[fake.port], "sslmode=require").to_string().contains("does not speak TLS"));
}

#[test]
fn bytes_behind_the_answer_about_tls_are_an_attack() {
    for answer in [&b"Sx"[..], b"Nx", b"H", b"E"] {
        let fake = Fake::new(vec![vec![answer.to_vec()]]);
        assert!(failure(&[fake.port], "sslmode=require").hint().is_some());
    }
}

#[test]
fn answers_that_are_none() {
    for answer in [
        Vec::new(),
        b"HTTP/1.1 400 Bad Request".to_vec(),
        b"R\0\0\0\x03".to_vec(),
        b"R\x7f\xff\xff\xff".to_vec(),
        b"E\xff\xff\xff\xff".to_vec(),
        message(b'R', b""),
        message(b'R', &[0, 0, 0, 10]),
        message(b'S', b"before\0authentication\0"),
        [ok(), message(b'S', b"cut")].concat(),
        [ok(), message(b'D', b"too early")].concat(),
        [ok(), ok()].concat(),
        [ok(), ready()].concat()[..12].to_vec(),
    ] {
        let fake = Fake::new(vec![vec![answer.clone()]]);
        let error = failure(&[fake.port], "sslmode=disable");
        assert!(error.hint().is_some(), "{answer:?}: {error}");
    }
}

#[test]
fn another_encoding_is_refused() {
    let greeting = [ok(), status("client_encoding", "LATIN1"), ready()].concat();
    let error = failure(&[Fake::new(vec![vec![greeting]]).port], "sslmode=disable");
    assert!(error.to_string().contains("LATIN1"), "{error}");
}

#[test]
fn errors_of_the_server_are_its_own() {
    let fake = Fake::new(vec![vec![message(b'R', &[0, 0, 0, 3]), error("28P01", "wrong password")]]);
    let error = failure(&[fake.port], "sslmode=disable");
    assert_eq!((error.message(), error.sqlstate()), ("wrong password", Some("28P01")));
}

#[test]
fn a_refusal_depends_on_encryption_only_before_the_password() {
    // Without TLS, then with it, where the server has none: the first reason counts.
    let fake = Fake::new(vec![vec![error("28000", "no entry")], vec![b"N".to_vec()]]);
    assert_eq!(failure(&[fake.port], "sslmode=allow").message(), "no entry");
    // Once the password was sent, there is no second connection: the fake accepts none.
    let fake = Fake::new(vec![vec![message(b'R', &[0, 0, 0, 3]), error("28P01", "wrong password")]]);
    assert_eq!(failure(&[fake.port], "sslmode=allow").message(), "wrong password");
}

#[test]
fn a_server_that_starts_up_is_passed_over() {
    for busy in [error("57P03", "starting up"), [ok(), error("57P03", "starting up")].concat()] {
        let first = Fake::new(vec![vec![busy]]);
        let second = Fake::new(vec![vec![[ok(), ready()].concat()]]);
        open(&[first.port, second.port], "sslmode=disable").unwrap();
    }
}

#[test]
fn every_host_has_its_reason() {
    let busy = || Fake::new(vec![vec![error("57P03", "starting up")]]);
    let (first, second) = (Fake::new(vec![vec![Vec::new()]]), busy());
    let error = failure(&[first.port, second.port], "sslmode=disable");
    let text = error.to_string();
    for part in [format!("127.0.0.1:{}", first.port), format!("127.0.0.1:{}: starting up", second.port)] {
        assert!(text.contains(&part), "{text}");
    }
    assert_eq!(error.sqlstate(), Some("57P03"));
}

#[test]
fn roles_are_asked_for_where_they_are_not_reported() {
    let row = |value: &str| {
        let length = u32::try_from(value.len()).unwrap().to_be_bytes();
        let body = [&[0, 1][..], &length, value.as_bytes()].concat();
        [message(b'1', b""), message(b'2', b""), message(b'D', &body), message(b'C', b"SHOW\0"), ready()]
            .concat()
    };
    for (role, answer, works) in [
        ("read-write", "off", true),
        ("read-write", "on", false),
        ("read-only", "on", true),
        ("primary", "f", true),
        ("standby", "f", false),
        ("standby", "t", true),
    ] {
        let fake = Fake::new(vec![vec![[ok(), ready()].concat(), row(answer)]]);
        let query = format!("sslmode=disable&target_session_attrs={role}");
        assert_eq!(open(&[fake.port], &query).is_ok(), works, "{role} {answer}");
    }
}

#[test]
fn a_silent_server_costs_no_more_than_the_deadline() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let deadline = Deadline::new(Arc::new(Never), Some(Duration::from_millis(100)));
    let started = std::time::Instant::now();
    for mode in ["disable", "require"] {
        deadline.restart();
        let Err(error) = open_at(&[port, port], &format!("sslmode={mode}"), &deadline) else {
            panic!("it worked")
        };
        assert_eq!(error.kind(), Kind::Timeout);
        assert!(error.to_string().contains(&port.to_string()), "{error}");
    }
    assert!(started.elapsed() < Duration::from_secs(10));
}
