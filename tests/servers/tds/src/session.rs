//! A client's requests after its login, answered one by one.

use mssql_mock_tds::{
    TerminalError,
    protocol::{
        PACKET_HEADER_SIZE, build_attention_ack_packet, build_done_token, build_terminal_error_tokens,
        build_transaction_manager_response, parse_transaction_manager_request,
    },
};
use tokio::{
    io::{AsyncRead, AsyncWrite, AsyncWriteExt},
    time::sleep,
};

use crate::{
    Failure,
    answers::{Answer, Answers, Step},
    login::environment,
    wire::{Message, Wire},
};

const BATCH: u8 = 0x01;
const RPC: u8 = 0x03;
const ATTENTION: u8 = 0x06;
const BULK: u8 = 0x07;
const TRANSACTION: u8 = 0x0e;
/// By their numbers.
const PROCEDURES: [&str; 16] = [
    "",
    "sp_cursor",
    "sp_cursoropen",
    "sp_cursorprepare",
    "sp_cursorexecute",
    "sp_cursorprepexec",
    "sp_cursorunprepare",
    "sp_cursorfetch",
    "sp_cursoroption",
    "sp_cursorclose",
    "sp_executesql",
    "sp_prepare",
    "sp_execute",
    "sp_prepexec",
    "sp_prepexecrpc",
    "sp_unprepare",
];
const RESET_DONE: u8 = 18;

/// A connection past its login.
pub(crate) struct Session<'a, S> {
    pub(crate) wire: Wire<S>,
    answers: &'a Answers,
    connection: u64,
}

impl<'a, S: AsyncRead + AsyncWrite + Unpin> Session<'a, S> {
    pub(crate) fn new(wire: Wire<S>, answers: &'a Answers, connection: u64) -> Self {
        Self { wire, answers, connection }
    }

    /// Answers until the client leaves.
    pub(crate) async fn run(&mut self) -> Result<(), Failure> {
        while let Some(message) = self.wire.receive().await? {
            self.request(message).await?;
        }
        Ok(())
    }

    async fn request(&mut self, message: Message) -> Result<(), Failure> {
        let Message { kind, resets, body } = message;
        let (name, text) = match kind {
            BATCH => ("batch", utf16(after_headers(&body))),
            RPC => ("rpc", call(after_headers(&body))),
            TRANSACTION => {
                ("transaction", parse_transaction_manager_request(&body).unwrap_or_default().to_string())
            }
            BULK => ("bulk", String::new()),
            ATTENTION => return self.acknowledge().await,
            _ => return Err(format!("a request of type {kind:#x} is unknown").into()),
        };
        let transaction = parse_transaction_manager_request(&body).unwrap_or_default();
        let answer = self.answers.record(self.connection, name, &text, resets, body);
        if resets {
            self.wire.send(&environment(RESET_DONE, &[0], &[0])).await?;
        }
        if let Some(answer) = answer {
            return self.answer(&answer).await;
        }
        let tokens = if kind == TRANSACTION {
            build_transaction_manager_response(transaction)
        } else {
            let what = format!("the tests have no answer to this {name}: {text}");
            build_terminal_error_tokens(&TerminalError::new(50000, 16, what.get(..2000).unwrap_or(&what)))
        };
        self.wire.send(&tokens).await?;
        Ok(self.wire.end().await?)
    }

    /// Does the steps of an answer, unless the client wants no more of it.
    pub(crate) async fn answer(&mut self, answer: &Answer) -> Result<(), Failure> {
        for step in answer.iter() {
            match step {
                Step::Send(tokens, times) => {
                    for _ in 0..*times {
                        self.wire.send(tokens).await?;
                        if self.wire.received().await?.is_some_and(|message| message.kind == ATTENTION) {
                            return self.attention().await;
                        }
                    }
                }
                Step::Wait(time) => {
                    self.wire.flush().await?;
                    tokio::select! {
                        message = self.wire.receive() => match message? {
                            Some(Message { kind: ATTENTION, .. }) => return self.attention().await,
                            Some(_) => return Err("a request came before the answer to the last".into()),
                            None => return Ok(()),
                        },
                        () = sleep(*time) => {}
                    }
                }
                Step::Close => {
                    self.wire.flush().await?;
                    self.wire.stream.shutdown().await?;
                    return Err("the answer ends the connection".into());
                }
            }
        }
        Ok(self.wire.end().await?)
    }

    /// Ends the answer, and tells in a message of its own that it was cut short: Microsoft's clients wait for both.
    async fn attention(&mut self) -> Result<(), Failure> {
        self.wire.send(&build_done_token(0)).await?;
        self.wire.end().await?;
        self.acknowledge().await
    }

    async fn acknowledge(&mut self) -> Result<(), Failure> {
        self.answers.record(self.connection, "attention", "", false, Vec::new());
        self.wire.send(&build_attention_ack_packet()[PACKET_HEADER_SIZE..]).await?;
        Ok(self.wire.end().await?)
    }
}

/// The request proper, after the headers of the stream, whose length comes first.
fn after_headers(body: &[u8]) -> &[u8] {
    let length = body.first_chunk().map_or(0, |length| u32::from_le_bytes(*length));
    body.get(usize::try_from(length).unwrap_or(usize::MAX)..).unwrap_or_default()
}

pub(crate) fn utf16(bytes: &[u8]) -> String {
    let units: Vec<u16> = bytes.chunks_exact(2).map(|unit| u16::from_le_bytes([unit[0], unit[1]])).collect();
    String::from_utf16_lossy(&units)
}

/// The name of a procedure that is called by its number, and each text that the call holds, at whichever byte it begins.
fn call(bytes: &[u8]) -> String {
    let name = match bytes {
        [0xff, 0xff, number, 0, ..] => PROCEDURES.get(usize::from(*number)).copied().unwrap_or_default(),
        _ => "",
    };
    name.to_owned() + &utf16(bytes) + &utf16(bytes.get(1..).unwrap_or_default())
}
