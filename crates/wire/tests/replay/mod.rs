//! Conversations with servers, recorded once (`make record`) and played again, each time with another fault.
//!
//! A conversation is a text: a line `> 1f8b...` is what the client says, a line `< ...` what the server says, in
//! hexadecimal digits. When it is played, the client's side is only counted, message by message, for its process
//! identifier and its random numbers differ.

pub(crate) mod faults;

use std::fmt::Write as _;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use std::{env, fs, process};

/// Returns how many whole messages the bytes that a client has said begin with.
pub(crate) type Count = fn(&[u8]) -> usize;

/// How long a client whose byte was garbled may take for its next message, before it counts as one that waits for more.
const ANSWER: Duration = Duration::from_millis(3);

/// How long a client may take for a message that is sure to come.
const SURE: Duration = Duration::from_secs(20);

/// The bytes that each side says until the other one speaks.
#[derive(Clone, Debug, PartialEq)]
enum Turn {
    Client(Vec<u8>),
    Server(Vec<u8>),
}

/// One connection, from its first byte to its last.
#[derive(Clone, Debug, Default)]
pub(crate) struct Conversation(Vec<Turn>);

impl Conversation {
    /// Reads a recorded one.
    pub(crate) fn load(file: &Path) -> Self {
        let text = fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let mut conversation = Self::default();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let (side, digits) = line.split_once(' ').expect("a side and what it says");
            conversation.add(side == "<", &bytes(digits));
        }
        conversation
    }

    /// Writes it down, for [`Conversation::load`].
    pub(crate) fn store(&self, file: &Path) {
        let mut text = String::from("# Made by `make record`.\n");
        for turn in &self.0 {
            let (side, said) = match turn {
                Turn::Client(said) => ('>', said),
                Turn::Server(said) => ('<', said),
            };
            for line in said.chunks(64) {
                write!(text, "{side} ").unwrap();
                for byte in line {
                    write!(text, "{byte:02x}").unwrap();
                }
                text.push('\n');
            }
        }
        fs::write(file, text).unwrap();
    }

    /// How many bytes the server says before the last so many of its answers.
    pub(crate) fn size_before(&self, answers: usize) -> usize {
        let sizes = self.0.iter().rev().filter_map(|turn| match turn {
            Turn::Server(said) => Some(said.len()),
            Turn::Client(_) => None,
        });
        sizes.skip(answers).sum()
    }

    fn add(&mut self, is_server: bool, said: &[u8]) {
        match (self.0.last_mut(), is_server) {
            (Some(Turn::Server(before)), true) | (Some(Turn::Client(before)), false) => {
                before.extend_from_slice(said);
            }
            (_, true) => self.0.push(Turn::Server(said.to_vec())),
            (_, false) => self.0.push(Turn::Client(said.to_vec())),
        }
    }
}

fn bytes(digits: &str) -> Vec<u8> {
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.as_bytes().chunks(2).map(byte).collect()
}

/// The fault that befalls what the server says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Fault {
    None,
    /// The connection ends before this byte.
    Cut(usize),
    /// This byte is another one: it is combined with a mask by exclusive or.
    Garbled(usize, u8),
}

/// A Unix socket in a directory of its own, which is gone with it.
struct Listener {
    path: PathBuf,
    socket: UnixListener,
}

impl Listener {
    fn new(socket: &str) -> Self {
        static LISTENERS: AtomicUsize = AtomicUsize::new(0);
        let number = LISTENERS.fetch_add(1, Ordering::Relaxed);
        let directory = env::temp_dir().join(format!("longshore-{}-{number}", process::id()));
        fs::create_dir_all(&directory).unwrap();
        let path = directory.join(socket);
        let socket = UnixListener::bind(&path).unwrap();
        Self { path, socket }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(self.path.parent().expect("a directory of its own"));
    }
}

/// Plays a conversation to one client after another.
pub(crate) struct Player {
    path: PathBuf,
    fault: Arc<Mutex<Option<Fault>>>,
    thread: Option<JoinHandle<()>>,
}

impl Player {
    /// Listens on a Unix socket of this name. Clients end their messages as `count` says.
    pub(crate) fn new(conversation: Conversation, socket: &str, count: Count) -> Self {
        let listener = Listener::new(socket);
        let path = listener.path.clone();
        let fault = Arc::new(Mutex::new(None));
        let next = Arc::clone(&fault);
        let thread = thread::spawn(move || {
            while let Ok((client, _)) = listener.socket.accept() {
                // A second connection is one that is to stop the first, which listens no more.
                let fault = next.lock().unwrap_or_else(PoisonError::into_inner).take();
                match fault {
                    Some(Fault::Cut(usize::MAX)) => return,
                    // A client that has gone is no concern of its server's.
                    Some(fault) => drop(play(&conversation, &client, fault, count)),
                    None => {}
                }
            }
        });
        Self { path, fault, thread: Some(thread) }
    }

    /// Runs `exchange` with the next connection under `fault`.
    pub(crate) fn under<T>(&self, fault: Fault, exchange: impl FnOnce() -> T) -> T {
        *self.fault.lock().unwrap() = Some(fault);
        exchange()
    }

    /// The socket.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Player {
    fn drop(&mut self) {
        *self.fault.lock().unwrap_or_else(PoisonError::into_inner) = Some(Fault::Cut(usize::MAX));
        drop(UnixStream::connect(&self.path));
        let _ = self.thread.take().expect("it is joined once").join();
    }
}

fn play(conversation: &Conversation, mut client: &UnixStream, fault: Fault, count: Count) -> io::Result<()> {
    let mut heard = Vec::new();
    let mut expected = Vec::new();
    let mut sent = 0;
    for turn in &conversation.0 {
        match turn {
            Turn::Client(said) => {
                expected.extend_from_slice(said);
                let is_garbled = matches!(fault, Fault::Garbled(byte, _) if byte < sent);
                client.set_read_timeout(Some(if is_garbled { ANSWER } else { SURE }))?;
                hear(client, &mut heard, count(&expected), count)?;
            }
            Turn::Server(said) => {
                let mut said = said.clone();
                match fault {
                    Fault::Cut(byte) if byte < sent + said.len() => {
                        client.write_all(&said[..byte - sent])?;
                        return client.shutdown(Shutdown::Both);
                    }
                    Fault::Garbled(byte, mask) if (sent..sent + said.len()).contains(&byte) => {
                        said[byte - sent] ^= mask;
                    }
                    _ => {}
                }
                client.write_all(&said)?;
                sent += said.len();
            }
        }
    }
    Ok(())
}

/// Waits until the client has said so many messages.
fn hear(mut client: &UnixStream, heard: &mut Vec<u8>, messages: usize, count: Count) -> io::Result<()> {
    let mut buffer = [0; 4096];
    while count(heard) < messages {
        match client.read(&mut buffer)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            read => heard.extend_from_slice(&buffer[..read]),
        }
    }
    Ok(())
}

/// Writes down what a server at `address` (`host:port`) and the client that `exchange` makes say over one connection to
/// the socket that it gets.
pub(crate) fn record(address: &str, socket: &str, exchange: impl FnOnce(&Path)) -> Conversation {
    let listener = Listener::new(socket);
    let conversation = Arc::new(Mutex::new(Conversation::default()));
    let said = Arc::clone(&conversation);
    let server = TcpStream::connect(address).unwrap();
    let path = listener.path.clone();
    let carrier = thread::spawn(move || {
        let (client, _) = listener.socket.accept().unwrap();
        let answers = {
            let (server, client, said) =
                (server.try_clone().unwrap(), client.try_clone().unwrap(), Arc::clone(&said));
            thread::spawn(move || carry(&server, &client, |bytes| said.lock().unwrap().add(true, bytes)))
        };
        carry(&client, &server, |bytes| said.lock().unwrap().add(false, bytes));
        let _ = server.shutdown(Shutdown::Both);
        answers.join().unwrap();
    });
    exchange(&path);
    carrier.join().unwrap();
    let conversation = conversation.lock().unwrap();
    conversation.clone()
}

fn carry<A, B>(from: &A, to: &B, mut add: impl FnMut(&[u8]))
where
    for<'a> &'a A: Read,
    for<'a> &'a B: Write,
{
    let (mut from, mut to) = (from, to);
    let mut buffer = [0; 4096];
    while let Ok(read @ 1..) = from.read(&mut buffer) {
        add(&buffer[..read]);
        if to.write_all(&buffer[..read]).is_err() {
            return;
        }
    }
}
