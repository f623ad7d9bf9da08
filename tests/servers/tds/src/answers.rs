//! The server's answers to each request, and the requests that came.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::sync::Notify;

/// One thing that the server does for an answer.
pub(crate) enum Step {
    /// Sends whole tokens, some number of times.
    Send(Vec<u8>, u64),
    /// Sends what it has so far and waits, as a server that works does; an attention ends it.
    Wait(Duration),
    /// Sends what it has so far and ends the connection.
    Close,
}

pub(crate) type Answer = Arc<[Step]>;

/// How a rule's text is looked for in a request's.
pub(crate) enum Match {
    Is,
    Starts,
    Contains,
}

/// The requests of one kind that have a text, and what becomes of them.
pub(crate) struct Rule {
    pub(crate) kind: String,
    pub(crate) text: String,
    pub(crate) how: Match,
    /// One request after the other; the last one stays.
    pub(crate) answers: VecDeque<Answer>,
}

/// A request as it came.
pub(crate) struct Request {
    pub(crate) connection: u64,
    pub(crate) kind: String,
    pub(crate) text: String,
    pub(crate) resets: bool,
    pub(crate) body: Vec<u8>,
}

#[derive(Default)]
struct Known {
    rules: Vec<Rule>,
    requests: Vec<Arc<Request>>,
    connections: u64,
}

/// The rules and the requests, which all connections share.
#[derive(Default)]
pub(crate) struct Answers {
    known: Mutex<Known>,
    pub(crate) came: Notify,
}

impl Answers {
    /// Gives a connection its number.
    pub(crate) fn connect(&self) -> u64 {
        let mut known = self.known();
        known.connections += 1;
        known.connections
    }

    /// Adds a rule, which goes before those that are there.
    pub(crate) fn add(&self, rule: Rule) {
        self.known().rules.insert(0, rule);
    }

    /// Forgets the requests, and with them the rules or not.
    pub(crate) fn clear(&self, is_all: bool) {
        let mut known = self.known();
        known.requests.clear();
        if is_all {
            known.rules.clear();
        }
    }

    /// Keeps a request, and returns what the rules have for it.
    pub(crate) fn record(
        &self,
        connection: u64,
        kind: &str,
        text: &str,
        resets: bool,
        body: Vec<u8>,
    ) -> Option<Answer> {
        let request = Request { connection, kind: kind.to_owned(), text: text.to_owned(), resets, body };
        let answer = {
            let mut known = self.known();
            let answer = known.rules.iter_mut().find(|rule| rule.fits(&request)).and_then(Rule::next);
            known.requests.push(Arc::new(request));
            answer
        };
        self.came.notify_waiters();
        answer
    }

    /// Returns the requests from some number on.
    pub(crate) fn since(&self, number: usize) -> Vec<Arc<Request>> {
        self.known().requests.get(number..).unwrap_or_default().to_vec()
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Rule {
    fn fits(&self, request: &Request) -> bool {
        self.kind == request.kind
            && match self.how {
                Match::Is => request.text == self.text,
                Match::Starts => request.text.starts_with(&self.text),
                Match::Contains => request.text.contains(&self.text),
            }
    }

    fn next(&mut self) -> Option<Answer> {
        if self.answers.len() > 1 { self.answers.pop_front() } else { self.answers.front().cloned() }
    }
}
