//! The settings that a URL or keywords say of a server: where it is, who calls, and how.

use std::sync::Arc;
use std::time::Duration;

use longshore_core::{Error, PasswordSource, Result, Secret, Target};
use longshore_source::settings::{Key, Keys, Url, Values, port};
use longshore_source::sql::{Dialect, POSTGRESQL, SQLITE};
use longshore_wire::{Identity, Tls, Verification};
use tonic::codec::CompressionEncoding;
use tonic::metadata::{Ascii, MetadataKey, MetadataValue};

use crate::credentials::{Credentials, Login};
use crate::link::Address;

/// The schemes, of which one is encrypted.
pub(crate) const SCHEMES: [&str; 3] = ["grpc", "grpc+tcp", "grpc+tls"];

const ENCRYPTED: &str = "grpc+tls";

/// The port of Longshore's own server.
const PORT: u16 = 31_337;

/// The beginnings of a name that is a header of each call; ADBC's drivers write the second.
const HEADERS: [&str; 2] = ["header.", "adbc.flight.sql.rpc.call_header."];

/// The largest message by default: a server sends batches of any size.
const MESSAGE: usize = 1 << 30;

static KEYS: Keys = Keys {
    all: &[
        Key::new("host"),
        Key::new("port"),
        Key::new("user").or("username"),
        Key::new("password"),
        Key::new("token").or("bearer-token"),
        Key::new("catalog").or("database adbc.connection.catalog"),
        Key::new("schema").or("adbc.connection.db-schema"),
        Key::new("tls_ca").or("ssl-ca sslrootcert"),
        Key::new("tls_cert").or("ssl-cert sslcert"),
        Key::new("tls_key").or("ssl-key sslkey"),
        Key::new("tls_host").or("adbc.flight.sql.client-option.tls-override-hostname"),
        Key::new("tls_verify").switch("adbc.flight.sql.client-option.tls-skip-verify", ["false", "true"]),
        Key::new("authority").or("adbc.flight.sql.client-option.authority"),
        Key::new("cookies").or("adbc.flight.sql.rpc.with-cookie-middleware"),
        Key::new("connect_timeout"),
        Key::new("call_timeout"),
        Key::new("compression"),
        Key::new("max_message_size").or("adbc.flight.sql.client-option.with-max-msg-size"),
        Key::new("poll"),
        Key::new("placeholders"),
    ],
    hint: "docs/guide/flight.md lists the settings; header.<name> is a header of each call",
};

/// How a server's database writes parameters by place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Places {
    /// `?`
    #[default]
    Questions,
    /// `$1`
    Numbers,
}

impl Places {
    /// The scanner that knows them.
    pub(crate) fn dialect(self) -> Dialect {
        match self {
            Self::Questions => SQLITE,
            Self::Numbers => POSTGRESQL,
        }
    }
}

/// A server and how it is spoken to. `Debug` shows no secret.
pub(crate) struct Settings {
    pub(crate) address: Address,
    /// The name by which requests call the server, where that is not its host and port.
    pub(crate) authority: Option<String>,
    /// The catalogue and the schema of names without one.
    pub(crate) catalog: Option<String>,
    pub(crate) schema: Option<String>,
    pub(crate) connect_timeout: Option<Duration>,
    /// The most that one call, or the wait for one message of a stream, may take.
    pub(crate) call_timeout: Option<Duration>,
    /// How requests are compressed.
    pub(crate) compression: Option<CompressionEncoding>,
    pub(crate) max_message_size: usize,
    /// Whether results are polled for.
    pub(crate) polls: bool,
    pub(crate) places: Places,
    own_tls: Tls,
}

type Headers = Vec<(MetadataKey<Ascii>, MetadataValue<Ascii>)>;

impl Settings {
    /// The settings of `target`, and what goes with every call.
    pub(crate) fn of(target: &Target) -> Result<(Self, Credentials)> {
        let (values, headers) = gather(target)?;
        let own_tls = encryption(&values)?;
        if values.text("host").is_some_and(|host| host.contains(',')) {
            return Err(Error::interface("a Flight SQL server is one host")
                .with_hint("the server itself names the locations of a result"));
        }
        let address = Address {
            host: values.text("host").unwrap_or("localhost").to_owned(),
            port: values.text("port").map_or(Ok(PORT), port)?,
            tls: (target.scheme() == ENCRYPTED).then(|| own_tls.clone()),
            tls_host: values.text("tls_host").map(str::to_owned),
        };
        let compression = [
            ("none", None),
            ("gzip", Some(CompressionEncoding::Gzip)),
            ("zstd", Some(CompressionEncoding::Zstd)),
        ];
        let places = [("?", Places::Questions), ("$1", Places::Numbers)];
        let size = values.number("max_message_size")?.and_then(|size| usize::try_from(size).ok());
        let login = login(&values, target)?;
        let settings = Self {
            address,
            authority: values.text("authority").map(str::to_owned),
            catalog: values.text("catalog").map(str::to_owned),
            schema: values.text("schema").map(str::to_owned),
            connect_timeout: values.seconds("connect_timeout")?,
            call_timeout: values.seconds("call_timeout")?,
            compression: values.choice("compression", &compression)?.flatten(),
            max_message_size: size.unwrap_or(MESSAGE),
            polls: values.flag("poll")?.unwrap_or(false),
            places: values.choice("placeholders", &places)?.unwrap_or_default(),
            own_tls,
        };
        let credentials = Credentials::new(login, headers, values.flag("cookies")?.unwrap_or(true));
        Ok((settings, credentials))
    }

    /// How another server is spoken to that is encrypted.
    pub(crate) fn encryption(&self) -> Tls {
        self.own_tls.clone()
    }
}

/// All settings, and apart from them the headers, whose names are anyone's.
fn gather(target: &Target) -> Result<(Values, Headers)> {
    let mut values = Values::new(&KEYS);
    let mut headers = Headers::new();
    // Keywords win over the URL.
    let keywords = target.keywords.clone().into_iter();
    let parts = if target.rest().is_empty() { Url::default() } else { Url::parse(target.rest())? };
    for (name, value) in keywords.chain(parts.settings("catalog")) {
        let header = HEADERS.iter().find_map(|start| name.strip_prefix(start));
        match header {
            Some(header) if headers.iter().any(|(known, _)| known.as_str().eq_ignore_ascii_case(header)) => {}
            Some(header) => headers.push(pair(header, &value)?),
            None => values.set(&name, &value)?,
        }
    }
    Ok((values, headers))
}

fn pair(name: &str, value: &str) -> Result<(MetadataKey<Ascii>, MetadataValue<Ascii>)> {
    let wrong = |what: &str| {
        Error::interface(format!("a header's {what} is not one of HTTP"))
            .with_hint("write header.<name>=<value> in ASCII, percent-encoded in a URL")
    };
    let name = MetadataKey::from_bytes(name.to_ascii_lowercase().as_bytes()).map_err(|_| wrong("name"))?;
    let mut value: MetadataValue<Ascii> = value.parse().map_err(|_| wrong("value"))?;
    value.set_sensitive(true);
    Ok((name, value))
}

fn login(values: &Values, target: &Target) -> Result<Login> {
    let password = values.password(target);
    Ok(match (values.text("token"), values.text("user"), password) {
        (Some(_), Some(_), _) => {
            return Err(Error::interface(
                "a caller proves itself by a token or by name and password, not both",
            )
            .with_hint("leave one out"));
        }
        (Some(token), None, _) => Login::Token(Arc::new(Secret::new(token))),
        (None, Some(user), password) => {
            let nothing = || Arc::new(Secret::new("")) as Arc<dyn PasswordSource>;
            Login::Basic { user: user.to_owned(), password: password.unwrap_or_else(nothing) }
        }
        // A callable without a user gives a token.
        (None, None, Some(token)) if target.password.is_some() => Login::Token(token),
        (None, None, Some(_)) => {
            return Err(
                Error::interface("a password needs a user").with_hint("give user=, or a token as token=")
            );
        }
        (None, None, None) => Login::None,
    })
}

fn encryption(values: &Values) -> Result<Tls> {
    let identity = match (values.path("tls_cert"), values.path("tls_key")) {
        (Some(certificate), Some(key)) => Some(Identity { certificate, key }),
        (None, None) => None,
        _ => {
            return Err(Error::interface(
                "the client's certificate needs its key, and the key its certificate",
            )
            .with_hint("give tls_cert= and tls_key="));
        }
    };
    let is_verified = values.flag("tls_verify")?.unwrap_or(true);
    Ok(Tls {
        verification: if is_verified { Verification::Full } else { Verification::None },
        roots: values.path("tls_ca"),
        identity,
        protocols: vec![b"h2".to_vec()],
        ..Tls::default()
    })
}
