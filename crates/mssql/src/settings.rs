//! The settings of a connection: those of Microsoft's own clients, from the URL and keywords.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use longshore_core::{Error, PasswordSource, Result, Target};
use longshore_source::settings::{Key, Keys, Values, port};
use mssql_tds::connection::client_context::{ClientContext, TdsAuthenticationMethod, VectorVersion};
use mssql_tds::core::{EncryptionOptions, EncryptionSetting};
use mssql_tds::message::login_options::ApplicationIntent;

/// Who logs in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Authentication {
    /// A login of the server's own.
    Password,
    /// The holder of a token of Microsoft Entra.
    Token,
    /// The holder of a ticket of Kerberos.
    Integrated,
}

/// Everything about a connection. `Debug` shows no secret.
#[derive(Debug)]
pub(crate) struct Settings {
    host: String,
    port: Option<u16>,
    instance: Option<String>,
    user: Option<String>,
    /// The password, or the token.
    password: Option<Arc<dyn PasswordSource>>,
    authentication: Authentication,
    database: Option<String>,
    encrypt: EncryptionSetting,
    trust: bool,
    certificate: Option<PathBuf>,
    certificate_host: Option<String>,
    read_only: bool,
    program: String,
    workstation: Option<String>,
    login_timeout: Option<Duration>,
    multi_subnet: Option<bool>,
    packet_size: u16,
    spn: Option<String>,
}

impl Settings {
    /// The settings of `target`.
    pub(crate) fn resolve(target: &Target) -> Result<Self> {
        let values = Values::of(&KEYS, target, "database")?;
        let (host, named) = host(&values)?;
        let (authentication, password) = login(&values, target)?;
        let trust = values.flag("trust-server-certificate")?.unwrap_or(false);
        let certificate = values.path("certificate");
        if trust && certificate.is_some() {
            return Err(Error::interface("trust-server-certificate=true would not look at the certificate")
                .with_hint("leave one of trust-server-certificate and certificate out"));
        }
        let words = [
            ("on true yes mandatory required", EncryptionSetting::On),
            ("off false no optional", EncryptionSetting::PreferOff),
            ("strict", EncryptionSetting::Strict),
        ];
        let encrypt = values.choice("encrypt", &words)?.unwrap_or(EncryptionSetting::On);
        if trust && encrypt == EncryptionSetting::Strict {
            return Err(Error::interface(
                "encrypt=strict looks at the certificate, whatever trust-server-certificate says",
            )
            .with_hint("name the server's own certificate with certificate=..., or use encrypt=on"));
        }
        let intents = [("readwrite", false), ("readonly", true)];
        let settings = Self {
            host,
            port: values.text("port").map(port).transpose()?,
            instance: values.text("instance").map(str::to_owned).or(named),
            user: values.text("user").map(str::to_owned),
            password,
            authentication,
            database: values.text("database").map(str::to_owned),
            encrypt,
            trust,
            certificate,
            certificate_host: values.text("hostname-in-certificate").map(str::to_owned),
            read_only: values.choice("application-intent", &intents)?.unwrap_or(false),
            program: values.text("application-name").unwrap_or("longshore").to_owned(),
            workstation: values.text("workstation-id").map(str::to_owned),
            login_timeout: values.seconds("login-timeout")?,
            multi_subnet: values.flag("multi-subnet-failover")?,
            packet_size: packet_size(&values)?,
            spn: values.text("server-spn").map(str::to_owned),
        };
        if settings.authentication == Authentication::Password && settings.user.is_none() {
            return Err(Error::interface("the connection has no user").with_hint(
                "write it as mssql://user:password@host/database; access-token=... or authentication=integrated \
                 need none",
            ));
        }
        Ok(settings)
    }

    /// The server as errors name it.
    pub(crate) fn peer(&self) -> String {
        match (&self.instance, self.port) {
            (_, Some(port)) => format!("{}:{port}", self.host),
            (Some(instance), None) => format!("{}\\{instance}", self.host),
            (None, None) => format!("{}:{DEFAULT_PORT}", self.host),
        }
    }

    /// The server as the client wants it: a port says more than an instance's name.
    pub(crate) fn data_source(&self) -> String {
        match (&self.instance, self.port) {
            (Some(instance), None) => format!("tcp:{}\\{instance}", self.host),
            (_, port) => format!("tcp:{},{}", self.host, port.unwrap_or(DEFAULT_PORT)),
        }
    }

    /// The settings that the client is to log in with, the password asked for now.
    pub(crate) fn context(&self) -> Result<ClientContext> {
        let mut context = ClientContext::with_data_source(&self.data_source());
        let secret = self.password.as_ref().map(|source| source.password()).transpose()?;
        let secret = secret.map(|secret| secret.reveal().to_owned()).unwrap_or_default();
        match self.authentication {
            Authentication::Password => {
                context.user_name = self.user.clone().unwrap_or_default();
                context.password = secret;
            }
            Authentication::Token => {
                context.tds_authentication_method = TdsAuthenticationMethod::AccessToken;
                context.access_token = Some(secret);
            }
            Authentication::Integrated => context.tds_authentication_method = TdsAuthenticationMethod::SSPI,
        }
        context.database = self.database.clone().unwrap_or_default();
        context.encryption_options = EncryptionOptions {
            mode: self.encrypt,
            trust_server_certificate: self.trust,
            host_name_in_cert: self.certificate_host.clone(),
            server_certificate: self.certificate.clone(),
        };
        if self.read_only {
            context.application_intent = ApplicationIntent::ReadOnly;
        }
        context.application_name.clone_from(&self.program);
        context.library_name = "longshore".into();
        if let Some(workstation) = &self.workstation {
            context.workstation_id.clone_from(workstation);
        }
        if let Some(timeout) = self.login_timeout {
            context.connect_timeout = u32::try_from(timeout.as_secs()).unwrap_or(u32::MAX);
        }
        context.multi_subnet_failover = self.multi_subnet;
        context.packet_size = self.packet_size;
        context.server_spn.clone_from(&self.spn);
        context.vector_version = VectorVersion::V1;
        // A session that came back by itself would have lost its settings and its transaction without a word.
        context.connect_retry_count = 0;
        Ok(context)
    }
}

const DEFAULT_PORT: u16 = 1433;

/// The bytes of a packet: the most that TLS does not part.
const PACKET: u16 = 16_000;

/// The host, and the instance that is named with it.
fn host(values: &Values) -> Result<(String, Option<String>)> {
    let text = values.text("host").unwrap_or("localhost");
    if text.contains(',') {
        return Err(Error::interface("the connection names several hosts, or a port behind a comma")
            .with_hint("name one host, and its port as port=1433 or behind a colon"));
    }
    Ok(match text.split_once('\\') {
        Some((host, instance)) => (host.to_owned(), Some(instance.to_owned())),
        None => (text.to_owned(), None),
    })
}

/// Who logs in, and with what secret.
fn login(values: &Values, target: &Target) -> Result<(Authentication, Option<Arc<dyn PasswordSource>>)> {
    let words = [
        ("password sql sqlpassword", Authentication::Password),
        ("token access-token entra activedirectoryaccesstoken", Authentication::Token),
        ("integrated kerberos sspi", Authentication::Integrated),
    ];
    let chosen = values.choice("authentication", &words)?;
    let Some(token) = values.text("access-token") else {
        return match chosen.unwrap_or(Authentication::Password) {
            Authentication::Token if values.password(target).is_none() => {
                Err(Error::interface("authentication=token has no token").with_hint(
                    "give access-token=..., or a callable as the password, which is asked at each connect",
                ))
            }
            authentication => Ok((authentication, values.password(target))),
        };
    };
    if chosen.is_some_and(|chosen| chosen != Authentication::Token) {
        return Err(Error::interface("access-token is not what authentication asks for")
            .with_hint("leave one of them out"));
    }
    Ok((Authentication::Token, Some(Arc::new(longshore_core::Secret::new(token)))))
}

fn packet_size(values: &Values) -> Result<u16> {
    let Some(size) = values.number("packet-size")? else { return Ok(PACKET) };
    u16::try_from(size).ok().filter(|size| (512..=32_768).contains(size)).ok_or_else(|| {
        Error::interface("packet-size is not from 512 to 32768").with_hint("leave it out: 16000 is used then")
    })
}

static KEYS: Keys = Keys {
    all: &[
        Key::new("host").or("hostname server data-source address addr"),
        Key::new("port"),
        Key::new("instance").or("instance-name"),
        Key::new("user").or("username uid user-id"),
        Key::new("password").or("pwd passwd").even_empty(),
        Key::new("database").or("dbname db initial-catalog database-name"),
        Key::new("authentication").switch("trusted-connection", ["integrated", "password"]),
        Key::new("access-token").or("token"),
        Key::new("encrypt").or("encryption"),
        Key::new("trust-server-certificate").or("trustservercertificate"),
        Key::new("certificate").or("server-certificate servercertificate"),
        Key::new("hostname-in-certificate").or("host-name-in-certificate hostnameincertificate"),
        Key::new("application-intent").or("applicationintent"),
        Key::new("application-name").or("app appname app-name program-name applicationname"),
        Key::new("workstation-id").or("wsid workstationid"),
        Key::new("login-timeout")
            .or("connect-timeout connection-timeout timeout logintimeout connecttimeout"),
        Key::new("multi-subnet-failover").or("multisubnetfailover"),
        Key::new("packet-size").or("packetsize"),
        Key::new("server-spn").or("serverspn"),
        // ODBC's name of its own library.
        Key::new("driver").ignore(),
        Key::new("mars-connection").or("mars multipleactiveresultsets").refuse(),
        Key::new("failover-partner").refuse(),
        Key::new("column-encryption").or("columnencryption").refuse(),
        Key::new("attach-db-filename").refuse(),
    ],
    hint: "the settings are those of Microsoft's clients: host, port, user, password, database, encrypt, ...",
};

#[cfg(test)]
mod tests {
    use super::*;

    fn resolve(rest: &str) -> Result<Settings> {
        Settings::resolve(&Target::from_url(&format!("mssql://{rest}"))?)
    }

    #[test]
    fn every_part_of_a_url_is_a_setting() {
        let rest =
            "me:hidden@db.example:1444/sales?encrypt=strict&ApplicationIntent=ReadOnly&app=x&login_timeout=3";
        let settings = resolve(rest).unwrap();
        assert!(!format!("{settings:?}").contains("hidden"));
        assert_eq!(
            (settings.peer(), settings.data_source()),
            ("db.example:1444".into(), "tcp:db.example,1444".into())
        );
        let context = settings.context().unwrap();
        assert_eq!((context.user_name.as_str(), context.password.as_str()), ("me", "hidden"));
        assert_eq!((context.database.as_str(), context.application_name.as_str()), ("sales", "x"));
        assert_eq!((context.connect_timeout, context.connect_retry_count), (3, 0));
        assert!(context.encryption_options.mode == EncryptionSetting::Strict);
        assert!(context.application_intent == ApplicationIntent::ReadOnly);
    }

    #[test]
    fn instances_are_named_with_the_host_or_alone() {
        assert_eq!(resolve("me@h%5CSALES").unwrap().data_source(), "tcp:h\\SALES");
        assert_eq!(resolve("me@h?instance=SALES").unwrap().data_source(), "tcp:h\\SALES");
        assert_eq!(resolve("me@h%5CSALES:1500").unwrap().data_source(), "tcp:h,1500");
        assert_eq!(resolve("me@h").unwrap().data_source(), "tcp:h,1433");
    }

    #[test]
    fn a_token_needs_no_user() {
        let context = resolve("h?access_token=hidden").unwrap().context().unwrap();
        assert!(context.tds_authentication_method == TdsAuthenticationMethod::AccessToken);
        assert_eq!((context.access_token.as_deref(), context.password.as_str()), (Some("hidden"), ""));
        let context = resolve(":hidden@h?authentication=token").unwrap().context().unwrap();
        assert_eq!(context.access_token.as_deref(), Some("hidden"));
        let context = resolve("h?trusted_connection=yes").unwrap().context().unwrap();
        assert!(context.tds_authentication_method == TdsAuthenticationMethod::SSPI);
    }

    #[test]
    fn what_would_not_happen_is_refused() {
        for rest in [
            "h",
            "me@a,1433",
            "me@h?encrypt=sometimes",
            "me@h?authentication=token",
            "me@h?access_token=hidden&authentication=password",
            "me@h?trust_server_certificate=yes&certificate=x.pem",
            "me@h?encrypt=strict&trust_server_certificate=yes",
            "me@h?mars_connection=yes",
            "me@h?packet_size=100",
            "me@h?pasword=x",
        ] {
            let error = resolve(rest).unwrap_err();
            assert!(error.hint().is_some() && !error.to_string().contains("hidden"), "{rest}: {error}");
        }
    }
}
