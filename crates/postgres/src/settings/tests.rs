//! Table-driven tests of how settings come together.

use std::collections::BTreeMap;
use std::path::PathBuf;

use longshore_core::Secret;

use super::*;

fn environment(variables: &[(&str, &str)]) -> Environment {
    Environment {
        variables: variables.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect(),
        home: None,
        user: || Some("me".into()),
        socket_directories: Vec::new(),
    }
}

fn resolve(url: &str, keywords: &[(&str, &str)], variables: &[(&str, &str)]) -> Result<Settings> {
    let mut target = Target::from_url(url)?;
    target.keywords = keywords.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
    Settings::resolve(&target, &environment(variables))
}

fn password(settings: &Settings) -> Option<String> {
    settings.password.as_ref().map(|source| source.password().unwrap().reveal().to_owned())
}

fn peers(settings: &Settings) -> Vec<String> {
    settings.hosts.iter().map(Host::peer).collect()
}

fn error(url: &str, keywords: &[(&str, &str)], variables: &[(&str, &str)]) -> Error {
    let error = resolve(url, keywords, variables).unwrap_err();
    assert!(error.hint().is_some(), "no hint: {error}");
    error
}

#[test]
fn defaults_are_libpqs() {
    let settings = resolve("postgresql://", &[], &[]).unwrap();
    assert_eq!((settings.user.as_str(), settings.database.as_str()), ("me", "me"));
    assert_eq!(peers(&settings), ["localhost:5432"]);
    assert_eq!(settings.application_name, "longshore");
    assert_eq!(settings.encryption.mode, Mode::Prefer);
    assert_eq!((settings.channel_binding, settings.role), (BindingMode::Prefer, Role::Any));
    assert_eq!(settings.keepalive, Keepalive::default());
    assert_eq!(settings.connect_timeout, None);
}

#[test]
fn keywords_win_over_the_url_over_the_environment() {
    let variables = [("PGUSER", "env"), ("PGPASSWORD", "envword"), ("PGDATABASE", "envdb"), ("PGPORT", "1")];
    let settings = resolve("postgresql://h", &[], &variables).unwrap();
    assert_eq!((settings.user.as_str(), settings.database.as_str()), ("env", "envdb"));
    assert_eq!((peers(&settings), password(&settings).as_deref()), (vec!["h:1".into()], Some("envword")));
    let settings = resolve("postgresql://url:urlword@h:2/urldb", &[], &variables).unwrap();
    assert_eq!((settings.user.as_str(), settings.database.as_str()), ("url", "urldb"));
    assert_eq!((peers(&settings), password(&settings).as_deref()), (vec!["h:2".into()], Some("urlword")));
    let keywords = [("user", "key"), ("password", "aa#@/:"), ("dbname", "keydb"), ("port", "3")];
    let settings = resolve("postgresql://url:urlword@h:2/urldb", &keywords, &variables).unwrap();
    assert_eq!((settings.user.as_str(), settings.database.as_str()), ("key", "keydb"));
    assert_eq!((peers(&settings), password(&settings).as_deref()), (vec!["h:3".into()], Some("aa#@/:")));
}

#[test]
fn a_callable_wins_over_every_password() {
    let mut target = Target::from_url("postgresql://me:url@h").unwrap();
    target.password = Some(Arc::new(Secret::new("called")));
    let settings = Settings::resolve(&target, &environment(&[("PGPASSWORD", "env")])).unwrap();
    assert_eq!(password(&settings).as_deref(), Some("called"));
}

#[test]
fn keywords_alone_suffice() {
    let keywords = BTreeMap::from([("host".to_owned(), "a".to_owned()), ("user".to_owned(), "u".to_owned())]);
    let target = Target::from_keywords("postgresql", keywords);
    let settings = Settings::resolve(&target, &environment(&[])).unwrap();
    assert_eq!((peers(&settings), settings.database.as_str()), (vec!["a:5432".into()], "u"));
}

#[test]
fn hosts_come_in_lists() {
    for (url, keywords, expected) in [
        ("postgresql://a,b:2,[::1]:3", &[][..], &["a:5432", "b:2", "[::1]:3"][..]),
        ("postgresql://?host=a,b&port=7", &[], &["a:7", "b:7"]),
        ("postgresql://%2Frun%2Fpg:6", &[], &["/run/pg/.s.PGSQL.6"]),
        ("postgresql:///db?host=/run/pg", &[], &["/run/pg/.s.PGSQL.5432"]),
        ("redshift://a", &[], &["a:5439"]),
        ("cockroachdb://a", &[], &["a:26257"]),
        ("postgresql://name", &[("hostaddr", "127.0.0.1")], &["127.0.0.1:5432"]),
        ("postgresql://a,b", &[("hostaddr", "::1,10.0.0.1")], &["[::1]:5432", "10.0.0.1:5432"]),
    ] {
        assert_eq!(peers(&resolve(url, keywords, &[]).unwrap()), expected, "{url}");
    }
    let settings = resolve("postgresql://name", &[("hostaddr", "127.0.0.1")], &[]).unwrap();
    assert_eq!(settings.hosts[0].name, "name");
}

#[test]
fn timings_and_switches() {
    let keywords = [
        ("connect_timeout", "7"),
        ("keepalives_idle", "10"),
        ("keepalives_interval", "0"),
        ("keepalives_count", "3"),
        ("tcp_user_timeout", "1500"),
        ("application_name", "mine"),
        ("options", "-c a=b"),
        ("target_session_attrs", "prefer-standby"),
        ("load_balance_hosts", "random"),
        ("channel_binding", "require"),
    ];
    let settings = resolve("postgresql://h", &keywords, &[("PGTZ", "UTC")]).unwrap();
    assert_eq!(settings.connect_timeout, Some(Duration::from_secs(7)));
    let keepalive = Keepalive {
        enabled: true,
        idle: Some(Duration::from_secs(10)),
        interval: None,
        count: Some(3),
        user_timeout: Some(Duration::from_millis(1500)),
    };
    assert_eq!(settings.keepalive, keepalive);
    assert_eq!((settings.application_name.as_str(), settings.options.as_deref()), ("mine", Some("-c a=b")));
    assert_eq!((settings.role, settings.shuffle), (Role::PreferStandby, true));
    assert_eq!(
        (settings.channel_binding, settings.time_zone.as_deref()),
        (BindingMode::Require, Some("UTC"))
    );
    let off = resolve("postgresql://h?keepalives=0&connect_timeout=0", &[], &[]).unwrap();
    assert_eq!((off.keepalive.enabled, off.connect_timeout), (false, None));
    let named = resolve("postgresql://h?fallback_application_name=fall", &[], &[]).unwrap();
    assert_eq!(named.application_name, "fall");
}

#[test]
fn ssl_modes() {
    use longshore_wire::Verification::{Authority, Full, None as Unverified};
    for (query, mode, verification) in [
        ("sslmode=disable", Mode::Disable, Unverified),
        ("sslmode=allow", Mode::Allow, Unverified),
        ("sslmode=prefer", Mode::Prefer, Unverified),
        ("sslmode=require", Mode::Require, Unverified),
        ("ssl=true", Mode::Require, Unverified),
        ("sslmode=require&sslrootcert=/r", Mode::Require, Authority),
        ("sslmode=verify-ca&sslrootcert=/r", Mode::Require, Authority),
        ("sslmode=verify-full&sslrootcert=/r", Mode::Require, Full),
        ("sslmode=verify-full", Mode::Require, Full),
        ("sslrootcert=system", Mode::Require, Full),
    ] {
        let settings = resolve(&format!("postgresql://h?{query}"), &[], &[]).unwrap();
        assert_eq!(
            (settings.encryption.mode, settings.encryption.tls.verification),
            (mode, verification),
            "{query}"
        );
    }
    let settings = resolve("postgresql://h?sslmode=require&sslnegotiation=direct", &[], &[]).unwrap();
    assert!(settings.encryption.direct);
    assert_eq!(settings.encryption.tls.protocols, [b"postgresql".to_vec()]);
}

#[test]
fn wrong_settings_say_so() {
    for (url, keywords, expected) in [
        ("postgresql://h?sslmod=x", &[][..], "sslmod"),
        ("postgresql://h", &[("pasword", "hidden")][..], "pasword"),
        ("postgresql://h?sslmode=yes", &[], "sslmode"),
        ("postgresql://h?ssl=maybe", &[], "ssl"),
        ("postgresql://h?connect_timeout=soon", &[], "connect_timeout"),
        ("postgresql://h:hidden", &[], "port"),
        ("postgresql://h:0", &[], "port"),
        ("postgresql://h:65536", &[], "port"),
        ("postgresql://a,b?port=1,2,3", &[], "list 3 of port but 2 of host"),
        ("postgresql://a,b", &[("hostaddr", "::1")], "list 2 of host but 1 of hostaddr"),
        ("postgresql://a", &[("hostaddr", "name")], "hostaddr"),
        ("postgresql://h?client_encoding=LATIN1", &[], "client_encoding"),
        ("postgresql://h?gssencmode=require", &[], "gssencmode"),
        ("postgresql://h?min_protocol_version=3.2", &[], "min_protocol_version"),
        ("postgresql://h?sslmode=verify-ca", &[], "root certificate"),
        ("postgresql://h?sslmode=require&sslrootcert=system", &[], "sslrootcert"),
        ("postgresql://h?sslnegotiation=direct", &[], "sslnegotiation"),
        ("postgresql://h?sslcert=/c", &[], "no key"),
        ("postgresql://h?ssl_max_protocol_version=TLSv1.1", &[], "1.2"),
        ("postgresql://h?require_auth=md5,!password", &[], "require_auth"),
        ("postgresql://h?require_auth=magic", &[], "require_auth"),
        ("postgresql://h?target_session_attrs=fast", &[], "target_session_attrs"),
        ("postgresql://h?service=nowhere-to-be-found", &[], "nowhere-to-be-found"),
        ("postgresql://h", &[("password", "hid\0den")], "zero byte"),
    ] {
        let text = error(url, keywords, &[]).to_string();
        assert!(text.contains(expected) && !text.contains("hidden"), "{url}: {text}");
    }
    let text = error("postgresql://h", &[], &[("PGSSLMODE", "x")]).to_string();
    assert!(text.contains("sslmode"), "{text}");
}

#[test]
fn required_methods() {
    for (list, method, allowed) in [
        ("", "md5", true),
        ("md5", "md5", true),
        ("md5", "password", false),
        ("scram-sha-256, md5", "md5", true),
        ("!password", "password", false),
        ("!password,!md5", "scram-sha-256", true),
        ("none", "md5", false),
        ("!none", "none", false),
    ] {
        assert_eq!(methods(list).unwrap().allow(method), allowed, "{list} {method}");
    }
}

/// A directory of this test's own, gone with it.
struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("longshore-{name}-{}", std::process::id()));
        std::fs::create_dir_all(path.join(".postgresql")).unwrap();
        Self(path)
    }

    fn write(&self, name: &str, text: &str) -> String {
        let path = self.0.join(name);
        std::fs::write(&path, text).unwrap();
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        }
        path.to_str().unwrap().to_owned()
    }

    fn resolve(&self, url: &str, variables: &[(&str, &str)]) -> Result<Settings> {
        let mut environment = environment(variables);
        environment.home = Some(self.0.clone());
        environment.socket_directories = vec![self.0.clone()];
        Settings::resolve(&Target::from_url(url)?, &environment)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn files_of_the_home_directory_count() {
    let home = Directory::new("home");
    home.write(".pgpass", "localhost:5432:db:me:local\nfar:*:*:*:other\n");
    let own = |settings: &Settings| -> Vec<Option<String>> {
        settings
            .hosts
            .iter()
            .map(|host| host.password.as_ref().map(|secret| secret.reveal().to_owned()))
            .collect()
    };
    let settings = home.resolve("postgresql://localhost,far,none/db", &[]).unwrap();
    assert_eq!(own(&settings), [Some("local".into()), Some("other".into()), None]);
    assert!(settings.password.is_none() && settings.complaint.is_none());
    assert!(!format!("{settings:?}").contains("other\""), "{settings:?}");

    let settings = home.resolve("postgresql://me:given@localhost/db", &[]).unwrap();
    assert_eq!((password(&settings).as_deref(), own(&settings)), (Some("given"), vec![None]));

    // A server's socket is there: it is the default host, and the password file knows it as localhost.
    home.write(".s.PGSQL.5432", "");
    let settings = home.resolve("postgresql:///db", &[]).unwrap();
    assert!(matches!(&settings.hosts[0].place, Place::Unix(path) if path.starts_with(&home.0)));
    assert_eq!(own(&settings), [Some("local".into())]);

    let other = home.write("other", "*:*:*:*:elsewhere\n");
    let settings = home.resolve("postgresql://h", &[("PGPASSFILE", &other)]).unwrap();
    assert_eq!(own(&settings), [Some("elsewhere".into())]);

    let (root, certificate, key) =
        (".postgresql/root.crt", ".postgresql/postgresql.crt", ".postgresql/postgresql.key");
    home.write(certificate, "");
    home.resolve("postgresql://h", &[]).unwrap_err();
    home.write(key, "");
    home.write(root, "");
    let settings = home.resolve("postgresql://h?sslmode=verify-full", &[]).unwrap();
    let tls = &settings.encryption.tls;
    assert_eq!(tls.roots, Some(home.0.join(root)));
    let identity = tls.identity.as_ref().unwrap();
    assert_eq!((&identity.certificate, &identity.key), (&home.0.join(certificate), &home.0.join(key)));
    let settings = home.resolve("postgresql://h?sslcertmode=disable", &[]).unwrap();
    assert!(settings.encryption.tls.identity.is_none());
}

#[test]
fn a_service_stands_between_url_and_environment() {
    let home = Directory::new("service");
    home.write(".pg_service.conf", "[mine]\nhost=served\nport=7\nuser=servant\npassword=word\n");
    let settings =
        home.resolve("postgresql://?service=mine&port=8", &[("PGHOST", "env"), ("PGUSER", "env")]).unwrap();
    assert_eq!((peers(&settings), settings.user.as_str()), (vec!["served:8".into()], "servant"));
    assert_eq!(password(&settings).as_deref(), Some("word"));
    let settings = home.resolve("postgresql://", &[("PGSERVICE", "mine")]).unwrap();
    assert_eq!(peers(&settings), ["served:7"]);
    let file = home.write("services", "[other]\nhost=x\n");
    let settings =
        home.resolve("postgresql://", &[("PGSERVICE", "other"), ("PGSERVICEFILE", &file)]).unwrap();
    assert_eq!(peers(&settings), ["x:5432"]);
}

#[test]
fn debug_shows_no_secret() {
    let settings = resolve("postgresql://u:hidden@h", &[], &[]).unwrap();
    assert!(!format!("{settings:?}").contains("hidden"));
}
