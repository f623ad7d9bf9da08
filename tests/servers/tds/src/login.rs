//! PRELOGIN, TLS and LOGIN7, of which `mssql-mock-tds` has the most.

use bytes::BytesMut;
use mssql_mock_tds::{
    create_test_identity,
    protocol::{
        FEATURE_EXT_ENHANCED_ROUTING, FEATURE_EXT_FEDAUTH, Login7AuthInfo, PACKET_HEADER_SIZE,
        build_done_token, build_fedauth_challenge_response, parse_fedauth_token, parse_login7_auth,
    },
};
use native_tls::Protocol;
use serde_json::json;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
};
use tokio_native_tls::TlsAcceptor;

use crate::{
    Failure,
    answers::Answers,
    session::{self, Session},
    wire::{Message, Wire},
    wrapped::Wrapped,
};

const PRELOGIN: u8 = 0x12;
const LOGIN7: u8 = 0x10;
const FEDAUTH_TOKEN: u8 = 0x08;
const ENCRYPTION: u8 = 0x01;
const ENCRYPT_NOT_SUPPORTED: u8 = 0x02;
const FEDAUTH_REQUIRED: u8 = 0x06;
/// The features that a server of 2025 grants to a client that asks, with its version of each.
const UTF8_SUPPORT: u8 = 0x0a;
const JSON_SUPPORT: u8 = 0x0d;
const VECTOR_SUPPORT: u8 = 0x0e;
const FEATURE_EXT_ACK: u8 = 0xae;
/// Code page 1252 by its sort order 52: `SQL_Latin1_General_CP1_CI_AS`.
const COLLATION: [u8; 5] = [0x09, 0x04, 0xd0, 0x00, 0x34];

/// How a port encrypts.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Encryption {
    Off,
    /// Of LOGIN7 alone, as a server does that neither side asks for more.
    Login,
    On,
    Strict,
}

/// The server's side of TLS.
pub(crate) struct Tls {
    wrapped: TlsAcceptor,
    strict: TlsAcceptor,
}

impl Tls {
    pub(crate) fn new(certificate: &[u8], key: &[u8]) -> Result<Self, Failure> {
        let identity = || create_test_identity(certificate, key).map_err(|error| error.to_string());
        let mut wrapped = native_tls::TlsAcceptor::builder(identity()?);
        // TLS 1.3's tickets come after the handshake, where TDS 7.4 wraps nothing any more.
        wrapped.max_protocol_version(Some(Protocol::Tlsv12));
        let mut strict = native_tls::TlsAcceptor::builder(identity()?);
        strict.accept_alpn(&[mssql_tds::core::TDS_8_ALPN_PROTOCOL]);
        Ok(Self { wrapped: wrapped.build()?.into(), strict: strict.build()?.into() })
    }
}

/// Shakes hands with a client, and serves it.
pub(crate) async fn welcome(
    stream: TcpStream,
    encryption: Encryption,
    tls: &Tls,
    answers: &Answers,
    connection: u64,
) -> Result<(), Failure> {
    stream.set_nodelay(true)?;
    if encryption == Encryption::Strict {
        let mut wire = Wire::new(tls.strict.accept(stream).await?);
        prelogin(&mut wire, encryption).await?;
        return log_in(wire, None, answers, connection).await;
    }
    let mut wire = Wire::new(stream);
    let encryption = prelogin(&mut wire, encryption).await?;
    if encryption == Encryption::Off {
        return log_in(wire, None, answers, connection).await;
    }
    let mut wire = Wire::new(tls.wrapped.accept(Wrapped::new(wire.stream)).await?);
    if encryption == Encryption::On {
        return log_in(wire, None, answers, connection).await;
    }
    let login = expect(&mut wire, LOGIN7).await?;
    // Past the handshake it hands bytes through.
    let plain = wire.stream.get_mut().get_mut().get_mut();
    log_in(Wire::new(plain), Some(login), answers, connection).await
}

/// Answers PRELOGIN, and returns what both sides agree on: a client that cannot encrypt need not, unless it must.
async fn prelogin<S: AsyncRead + AsyncWrite + Unpin>(
    wire: &mut Wire<S>,
    encryption: Encryption,
) -> Result<Encryption, Failure> {
    let asked = expect(wire, PRELOGIN).await?.body;
    let cannot = option(&asked, ENCRYPTION).and_then(|value| value.first()) == Some(&ENCRYPT_NOT_SUPPORTED);
    let encryption = if encryption == Encryption::Login && cannot { Encryption::Off } else { encryption };
    let told = match encryption {
        Encryption::Off => ENCRYPT_NOT_SUPPORTED,
        Encryption::Login => 0x00,
        Encryption::On | Encryption::Strict => 0x01,
    };
    wire.send(&prelogin_options(told, option(&asked, FEDAUTH_REQUIRED).is_some())).await?;
    wire.end().await?;
    Ok(encryption)
}

/// An option's value in PRELOGIN, whose directory has five bytes for each: the option, an offset and a length.
fn option(asked: &[u8], wanted: u8) -> Option<&[u8]> {
    let entry =
        asked.chunks_exact(5).take_while(|entry| entry[0] != 0xff).find(|entry| entry[0] == wanted)?;
    let number = |at: usize| usize::from(u16::from_be_bytes([entry[at], entry[at + 1]]));
    asked.get(number(1)..number(1) + number(3))
}

/// Version 17, the encryption, the instance's name that is right, no thread, no MARS, and Entra's tokens for a client that asks
/// about them: to others, of which Microsoft's ODBC driver is one, the answer without a question is an error.
fn prelogin_options(encryption: u8, asks_for_tokens: bool) -> Vec<u8> {
    let mut options: Vec<(u8, &[u8])> = vec![
        (0, &[17, 0, 0x03, 0xe8, 0, 0]),
        (1, std::slice::from_ref(&encryption)),
        (2, &[0]),
        (3, &[]),
        (4, &[0]),
    ];
    if asks_for_tokens {
        options.push((FEDAUTH_REQUIRED, &[1]));
    }
    let (mut directory, mut data) = (Vec::new(), Vec::new());
    let start = 5 * options.len() + 1;
    for (option, value) in options {
        let number = |number: usize| u16::try_from(number).unwrap_or_default().to_be_bytes();
        directory.push(option);
        directory.extend(number(start + data.len()));
        directory.extend(number(value.len()));
        data.extend(value);
    }
    directory.push(0xff);
    [directory, data].concat()
}

async fn expect<S: AsyncRead + AsyncWrite + Unpin>(wire: &mut Wire<S>, kind: u8) -> Result<Message, Failure> {
    let message = wire.receive().await?.ok_or("the client left during its login")?;
    if message.kind != kind {
        return Err(
            format!("the login has a message of type {:#x} in place of {kind:#x}", message.kind).into()
        );
    }
    Ok(message)
}

async fn log_in<S: AsyncRead + AsyncWrite + Unpin>(
    mut wire: Wire<S>,
    login: Option<Message>,
    answers: &Answers,
    connection: u64,
) -> Result<(), Failure> {
    let login = match login {
        Some(login) => login,
        None => expect(&mut wire, LOGIN7).await?,
    };
    let client = parse_login7_auth(&login.body);
    let token = fedauth_token(&mut wire, &client).await?;
    let said = json!({
        "user": field(&login.body, 40),
        "application": field(&login.body, 48),
        "server": client.server_name,
        "database": client.database,
        "features": client.feature_ids,
        "token": token.map(|bytes| utf16(&bytes)),
        "read_only": login.body.get(26).is_some_and(|flags| flags & 0x20 != 0),
    });
    let answer = answers.record(connection, "login", &said.to_string(), false, login.body.clone());
    let mut session = Session::new(wire, answers, connection);
    if let Some(answer) = answer {
        return session.answer(&answer).await;
    }
    let size =
        login.body.get(8..12).map_or(0, |size| u32::from_le_bytes([size[0], size[1], size[2], size[3]]));
    let size = if (512..=32767).contains(&size) { size } else { 4096 };
    session.wire.send(&welcome_tokens(&login.body, &client, size)).await?;
    session.wire.end().await?;
    session.wire.packet_size = usize::try_from(size)?;
    session.run().await
}

async fn fedauth_token<S: AsyncRead + AsyncWrite + Unpin>(
    wire: &mut Wire<S>,
    client: &Login7AuthInfo,
) -> Result<Option<Vec<u8>>, Failure> {
    if !client.has_fedauth || client.access_token_bytes.is_some() {
        return Ok(client.access_token_bytes.clone());
    }
    let challenge =
        build_fedauth_challenge_response("https://login.example/tenant", "https://database.example/");
    wire.send(&challenge[PACKET_HEADER_SIZE..]).await?;
    wire.end().await?;
    Ok(Some(parse_fedauth_token(&expect(wire, FEDAUTH_TOKEN).await?.body)?))
}

fn welcome_tokens(login: &[u8], client: &Login7AuthInfo, packet_size: u32) -> Vec<u8> {
    let database = client.database.as_deref().unwrap_or("master");
    let mut tokens = environment(1, &length_and_text(database), &length_and_text("master"));
    tokens.extend(environment(7, &[&[5], COLLATION.as_slice()].concat(), &[0]));
    tokens.extend(login_ack(login));
    tokens.extend(environment(4, &length_and_text(&packet_size.to_string()), &length_and_text("4096")));
    tokens.extend(feature_acks(&client.feature_ids));
    tokens.extend_from_slice(&build_done_token(0));
    tokens
}

/// The version that the client asked for: it says it with the low byte first, the server with the high.
fn login_ack(login: &[u8]) -> Vec<u8> {
    let mut body = vec![1];
    body.extend(login.get(4..8).unwrap_or(&[4, 0, 0, 0x74]).iter().rev());
    body.extend(length_and_text("Microsoft SQL Server"));
    body.extend([17, 0, 0x03, 0xe8]);
    token(0xad, &body)
}

fn feature_acks(features: &[u8]) -> Vec<u8> {
    let mut acks = Vec::new();
    for feature in features {
        let data: &[u8] = match *feature {
            FEATURE_EXT_FEDAUTH => &[],
            UTF8_SUPPORT | JSON_SUPPORT | VECTOR_SUPPORT => &[1],
            FEATURE_EXT_ENHANCED_ROUTING => &[0],
            _ => continue,
        };
        acks.push(*feature);
        acks.extend(u32::try_from(data.len()).unwrap_or_default().to_le_bytes());
        acks.extend(data);
    }
    if acks.is_empty() {
        return acks;
    }
    [&[FEATURE_EXT_ACK], acks.as_slice(), &[0xff]].concat()
}

/// ENVCHANGE: what a session has from now on, and what it had.
pub(crate) fn environment(what: u8, new: &[u8], old: &[u8]) -> Vec<u8> {
    token(0xe3, &[&[what], new, old].concat())
}

fn token(kind: u8, body: &[u8]) -> Vec<u8> {
    let length = u16::try_from(body.len()).expect("a token of the login is short").to_le_bytes();
    [&[kind], length.as_slice(), body].concat()
}

fn length_and_text(text: &str) -> Vec<u8> {
    let units: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let length = u8::try_from(units.len() / 2).expect("a name is short");
    [&[length], units.as_slice()].concat()
}

/// The text that an offset and a length at `at` in LOGIN7 point to.
fn field(login: &[u8], at: usize) -> Option<String> {
    let number = |at: usize| Some(usize::from(u16::from_le_bytes([*login.get(at)?, *login.get(at + 1)?])));
    let (offset, length) = (number(at)?, number(at + 2)?);
    Some(session::utf16(login.get(offset..offset + 2 * length)?))
}

fn utf16(bytes: &[u8]) -> String {
    session::utf16(BytesMut::from(bytes).as_ref())
}
