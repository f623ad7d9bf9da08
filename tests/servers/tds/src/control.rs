//! The tests' side: a line of JSON each way.
//!
//! | request | does |
//! |---|---|
//! | `{"answer": [[step, ...], ...], "kind": "batch", "text": "SELECT 1", "match": "is"}` | adds a rule; a step is `{"send": hex, "times": n}`, `{"wait": seconds}` or `{"close": true}` |
//! | `{"since": n, "until": "batch", "seconds": s}` | returns the requests from the n-th on, once one of that kind is among them, or after that time |
//! | `{"clear": "all"}`, `{"clear": "requests"}` | forgets rules and requests, or requests alone |

use std::{fmt::Write, io, sync::Arc, time::Duration};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
    time::{Instant, timeout_at},
};

use crate::{
    Failure,
    answers::{Answer, Answers, Match, Request, Rule, Step},
};

/// Serves the tests until the process ends.
pub(crate) async fn serve(listener: TcpListener, answers: Arc<Answers>) -> Result<(), Failure> {
    loop {
        let (stream, _) = listener.accept().await?;
        let answers = Arc::clone(&answers);
        tokio::spawn(async move {
            // A test that has gone is not a failure of the server's.
            let _ = talk(stream, &answers).await;
        });
    }
}

async fn talk(stream: TcpStream, answers: &Answers) -> io::Result<()> {
    let mut stream = BufReader::new(stream);
    let mut line = String::new();
    while stream.read_line(&mut line).await? != 0 {
        let reply =
            obey(&line, answers).await.unwrap_or_else(|failure| json!({"error": failure.to_string()}));
        stream.write_all(format!("{reply}\n").as_bytes()).await?;
        line.clear();
    }
    Ok(())
}

async fn obey(line: &str, answers: &Answers) -> Result<Value, Failure> {
    let command: Value = serde_json::from_str(line)?;
    if let Some(given) = command["answer"].as_array() {
        answers.add(Rule {
            kind: text(&command["kind"])?.to_owned(),
            text: text(&command["text"])?.to_owned(),
            how: matching(text(&command["match"])?)?,
            answers: given.iter().map(answer).collect::<Result<_, _>>()?,
        });
    } else if let Some(since) = command["since"].as_u64() {
        let until = command["until"].as_str();
        let deadline = Instant::now() + seconds(&command["seconds"]);
        return Ok(requests(answers, usize::try_from(since)?, until, deadline).await);
    } else if let Some(what) = command["clear"].as_str() {
        answers.clear(what == "all");
    } else {
        return Err("there is no such command".into());
    }
    Ok(json!({}))
}

async fn requests(answers: &Answers, since: usize, until: Option<&str>, deadline: Instant) -> Value {
    loop {
        let came = answers.came.notified();
        let found = answers.since(since);
        let complete = until.is_none_or(|kind| found.iter().any(|request| request.kind == kind));
        if complete || timeout_at(deadline, came).await.is_err() {
            return json!({"complete": complete, "requests": found.iter().map(|request| shown(request)).collect::<Vec<_>>()});
        }
    }
}

fn shown(request: &Request) -> Value {
    let mut body = String::with_capacity(2 * request.body.len());
    for byte in &request.body {
        let _ = write!(body, "{byte:02x}");
    }
    json!({
        "connection": request.connection,
        "kind": request.kind,
        "text": request.text,
        "resets": request.resets,
        "body": body,
    })
}

fn answer(steps: &Value) -> Result<Answer, Failure> {
    steps.as_array().ok_or("an answer is a list of steps")?.iter().map(step).collect()
}

fn step(step: &Value) -> Result<Step, Failure> {
    if let Some(tokens) = step["send"].as_str() {
        return Ok(Step::Send(bytes(tokens)?, step["times"].as_u64().unwrap_or(1)));
    }
    if !step["wait"].is_null() {
        return Ok(Step::Wait(seconds(&step["wait"])));
    }
    if step["close"].as_bool() == Some(true) {
        return Ok(Step::Close);
    }
    Err(format!("there is no such step: {step}").into())
}

fn bytes(hex: &str) -> Result<Vec<u8>, Failure> {
    if !hex.is_ascii() || !hex.len().is_multiple_of(2) {
        return Err("the bytes are not in hexadecimal".into());
    }
    (0..hex.len()).step_by(2).map(|at| Ok(u8::from_str_radix(&hex[at..at + 2], 16)?)).collect()
}

fn matching(how: &str) -> Result<Match, Failure> {
    match how {
        "is" => Ok(Match::Is),
        "starts" => Ok(Match::Starts),
        "contains" => Ok(Match::Contains),
        _ => Err(format!("a text is not looked for by {how}").into()),
    }
}

fn text(value: &Value) -> Result<&str, Failure> {
    value.as_str().ok_or_else(|| format!("{value} is not a text").into())
}

fn seconds(value: &Value) -> Duration {
    Duration::from_secs_f64(value.as_f64().unwrap_or(0.0))
}
