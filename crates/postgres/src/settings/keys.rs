//! libpq's settings by name (PostgreSQL documentation, sections "Parameter Key Words" and "Environment Variables").

use longshore_source::settings::{Key, Keys};

pub(super) static KEYS: Keys = Keys {
    all: &[
        Key::new("host").variable("PGHOST"),
        Key::new("hostaddr").variable("PGHOSTADDR"),
        Key::new("port").variable("PGPORT"),
        Key::new("dbname").variable("PGDATABASE"),
        Key::new("user").variable("PGUSER"),
        Key::new("password").variable("PGPASSWORD"),
        Key::new("passfile").variable("PGPASSFILE"),
        Key::new("service").variable("PGSERVICE"),
        Key::new("servicefile").variable("PGSERVICEFILE"),
        Key::new("connect_timeout").variable("PGCONNECT_TIMEOUT"),
        Key::new("application_name").variable("PGAPPNAME"),
        Key::new("fallback_application_name"),
        Key::new("options").variable("PGOPTIONS"),
        // Not PGCLIENTENCODING: the encoding on the wire is nothing that a caller could see.
        Key::new("client_encoding"),
        Key::new("keepalives"),
        Key::new("keepalives_idle"),
        Key::new("keepalives_interval"),
        Key::new("keepalives_count"),
        Key::new("tcp_user_timeout"),
        // The switch is JDBC's; libpq takes ssl=true in a URL.
        Key::new("sslmode").variable("PGSSLMODE").switch("ssl", ["require", "disable"]),
        Key::new("sslnegotiation").variable("PGSSLNEGOTIATION"),
        Key::new("sslrootcert").variable("PGSSLROOTCERT"),
        Key::new("sslcert").variable("PGSSLCERT"),
        Key::new("sslkey").variable("PGSSLKEY"),
        Key::new("sslcertmode").variable("PGSSLCERTMODE"),
        Key::new("sslsni").variable("PGSSLSNI"),
        Key::new("ssl_min_protocol_version").variable("PGSSLMINPROTOCOLVERSION"),
        Key::new("ssl_max_protocol_version").variable("PGSSLMAXPROTOCOLVERSION"),
        Key::new("channel_binding").variable("PGCHANNELBINDING"),
        Key::new("require_auth").variable("PGREQUIREAUTH"),
        Key::new("target_session_attrs").variable("PGTARGETSESSIONATTRS"),
        Key::new("load_balance_hosts").variable("PGLOADBALANCEHOSTS"),
        Key::new("gssencmode").variable("PGGSSENCMODE"),
        Key::new("min_protocol_version").variable("PGMINPROTOCOLVERSION"),
        Key::new("max_protocol_version").variable("PGMAXPROTOCOLVERSION"),
        // A key file that needs the password is refused where it is read.
        Key::new("sslpassword").ignore(),
        Key::new("sslcompression").ignore(),
        Key::new("krbsrvname").ignore(),
        Key::new("gsslib").ignore(),
        Key::new("gssdelegation").ignore(),
        Key::new("sslcrl").variable("PGSSLCRL").refuse(),
        Key::new("sslcrldir").variable("PGSSLCRLDIR").refuse(),
        Key::new("requirepeer").variable("PGREQUIREPEER").refuse(),
        Key::new("replication")
            .or("sslkeylogfile scram-client-key scram-server-key oauth-issuer oauth-client-id oauth-client-secret \
                 oauth-scope oauth-ca-file")
            .refuse(),
        Key::new("authtype").ignore(),
    ],
    hint: "the settings are those of libpq: host, port, dbname, user, password, sslmode, ...; the server's own go into \
           options: -c search_path=...",
};

#[cfg(test)]
mod tests {
    use longshore_core::Kind;

    use super::*;

    #[test]
    fn names_the_closest_key() {
        for (name, meant) in [
            ("pasword", "password"),
            ("sslmod", "sslmode"),
            ("database", "host, port, dbname, user"),
            ("connect_timout", "connect_timeout"),
            ("search_path", "options: -c search_path="),
        ] {
            let error = KEYS.find(name).err().unwrap();
            assert!(error.to_string().contains(name) && error.hint().unwrap().contains(meant), "{error}");
        }
        assert!(!KEYS.find("entirely_else").err().unwrap().hint().unwrap().contains("did you mean"));
        assert_eq!(KEYS.find("requirepeer").err().unwrap().kind(), Kind::NotSupported);
    }
}
