//! The server's errors and the client's, as this library's.

use longshore_core::{Error, Kind};
use longshore_source::rows::VIOLATION;
use mssql_tds::error::{Error as ClientError, SqlErrorInfo};

/// The codes of errors that only say that another one has ended a statement.
const FOLLOWING: &[u32] = &[3621, 3609, 8180];

/// The error of a call of the client's.
pub(crate) fn of(error: ClientError) -> Error {
    match error {
        ClientError::SqlServerError { diagnostics } => server(&diagnostics.errors),
        ClientError::Io(error) => lost_connection(&error.to_string()),
        ClientError::ConnectionError(text) | ClientError::ConnectionClosed(text) => lost_connection(&text),
        ClientError::TimeoutError(reason) => Error::new(Kind::Timeout, format!("no answer in time: {reason}"))
            .with_hint("give a longer login-timeout, or look whether the server is busy"),
        ClientError::OperationCancelledError(_) => Error::new(Kind::Cancelled, "the statement was cancelled"),
        ClientError::UnimplementedFeature { feature, context } => {
            Error::not_supported(format!("the client has no {feature}: {context}"))
        }
        ClientError::ProtocolError(text) => Error::internal(format!("the server broke the protocol: {text}"))
            .with_sqlstate(VIOLATION),
        error if is_certificate(&error) => Error::operational(error.to_string()).with_sqlstate("08001").with_hint(
            "name the server's own certificate with certificate=..., or its name with hostname-in-certificate=...; \
             trust-server-certificate=true takes any, an attacker's, too",
        ),
        ClientError::UnsupportedEncoding { .. } | ClientError::TypeConversionError(_) => {
            Error::not_supported(error.to_string())
        }
        ClientError::Redirection { .. } | ClientError::Security(_) => {
            Error::operational(error.to_string()).with_sqlstate("08001")
        }
        error => Error::internal(format!("the client failed: {error}")),
    }
}

fn is_certificate(error: &ClientError) -> bool {
    matches!(
        error,
        ClientError::TlsError(_)
            | ClientError::TlsHandshakeError { .. }
            | ClientError::CertificateNotFound { .. }
            | ClientError::InvalidCertificateFormat { .. }
            | ClientError::CertificateExpired
            | ClientError::CertificateMismatch
            | ClientError::CertificateFileIoError { .. }
            | ClientError::NoServerCertificate
    )
}

/// The connection's end.
#[cold]
pub(crate) fn lost_connection(text: &str) -> Error {
    Error::operational(format!("the connection failed: {text}"))
        .with_sqlstate("08S01")
        .with_hint("look whether the server runs and is reached at this host and port")
}

/// The first of the server's `errors` that says what happened; the others are its detail.
fn server(errors: &[SqlErrorInfo]) -> Error {
    let Some(first) = errors.iter().find(|error| !FOLLOWING.contains(&error.number)).or(errors.first())
    else {
        return Error::internal("the server told of an error, and not which");
    };
    let error = server_error(first.number, first.class, &first.message);
    let others: Vec<&str> = errors
        .iter()
        .filter(|other| !std::ptr::eq(*other, first) && !FOLLOWING.contains(&other.number))
        .map(|other| other.message.as_str())
        .collect();
    if others.is_empty() { error } else { error.with_detail(others.join("\n")) }
}

/// The error of a statement that was not run.
pub(crate) fn of_number(number: u32, message: &str) -> Error {
    server_error(number, 16, message)
}

fn server_error(number: u32, class: i32, message: &str) -> Error {
    let state = sqlstate(number, class);
    let error = Error::new(kind(number, state), format!("{message} (error {number})")).with_sqlstate(state);
    let error = match i32::try_from(number) {
        Ok(number) => error.with_vendor_code(number),
        Err(_) => error,
    };
    hint(number).into_iter().fold(error, Error::with_hint)
}

/// The standard's state of an error number, as Microsoft's ODBC driver has it; the server itself tells none.
fn sqlstate(number: u32, class: i32) -> &'static str {
    match number {
        208 | 3701 | 4902 | 4924 => "42S02",
        207 | 1911 | 4922 => "42S22",
        2714 => "42S01",
        2705 => "42S21",
        1913 => "42S11",
        515 | 530 | 547 | 2601 | 2627 | 334 => "23000",
        2628 | 8152 => "22001",
        220 | 232 | 8115 | 1007 => "22003",
        241 | 242 | 295 | 8169 => "22007",
        245 | 8114 | 9803 | 235 | 293 => "22018",
        8134 => "22012",
        1205 | 3960 | 3961 | 3966 | 3998 | 3930 | 41302 | 41305 | 41325 => "40001",
        1222 => "HYT00",
        18452 | 18456 | 18470 | 18486 | 18487 | 18488 => "28000",
        4060 | 4064 | 911 => "08004",
        _ if class >= 20 => "08S01",
        _ if class <= 16 => "42000",
        _ => "HY000",
    }
}

fn kind(number: u32, state: &str) -> Kind {
    match (number, &state[..2]) {
        // Permissions, resources and what the engine cannot do.
        (229 | 230 | 262 | 300 | 297 | 3906 | 1105 | 701 | 3930 | 3952, _) => Kind::Operational,
        (40_515 | 40_517 | 195, _) => Kind::NotSupported,
        (_, "22") => Kind::Data,
        (_, "23") => Kind::Integrity,
        (_, "42") => Kind::Programming,
        _ => Kind::Operational,
    }
}

fn hint(number: u32) -> Option<&'static str> {
    Some(match number {
        1205 | 3960 => "repeat the transaction from its start",
        18456 => "look at user and password; the server's own log says which of them it was",
        4060 => "look at the database's name, and whether the login may use it",
        3952 | 3964 => "allow it once: ALTER DATABASE ... SET ALLOW_SNAPSHOT_ISOLATION ON",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use mssql_tds::error::SqlServerDiagnostics;

    use super::*;

    fn info(number: u32, class: i32, message: &str) -> SqlErrorInfo {
        SqlErrorInfo {
            message: message.into(),
            state: 1,
            class,
            number,
            server_name: None,
            proc_name: None,
            line_number: None,
        }
    }

    fn failure(errors: Vec<SqlErrorInfo>) -> Error {
        of(ClientError::SqlServerError { diagnostics: SqlServerDiagnostics::new(errors, Vec::new()) })
    }

    #[test]
    fn errors_keep_text_number_and_state() {
        let error =
            failure(vec![info(3621, 0, "The statement has been terminated."), info(2627, 14, "Violation")]);
        assert_eq!(error.message(), "Violation (error 2627)");
        assert_eq!(
            (error.kind(), error.sqlstate(), error.vendor_code()),
            (Kind::Integrity, Some("23000"), Some(2627))
        );
        for (number, class, kind, state) in [
            (208, 16, Kind::Programming, "42S02"),
            (18456, 14, Kind::Operational, "28000"),
            (8134, 16, Kind::Data, "22012"),
            (50_000, 16, Kind::Programming, "42000"),
            (50_000, 20, Kind::Operational, "08S01"),
            (229, 14, Kind::Operational, "42000"),
        ] {
            let error = failure(vec![info(number, class, "x")]);
            assert_eq!((error.kind(), error.sqlstate()), (kind, Some(state)), "{number}");
        }
        assert_eq!(failure(vec![info(245, 16, "a"), info(8114, 16, "b")]).detail(), Some("b"));
        assert_eq!(failure(Vec::new()).kind(), Kind::Internal);
    }
}
