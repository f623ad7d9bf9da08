//! The exchanges, with a server of a few lines on the other side.

use longshore_core::Kind;

use super::*;

const NO_METHODS: &Methods = &Methods::ANY;

fn credentials<'a>(
    password: Option<&'a Secret>,
    methods: &'a Methods,
    binding: BindingMode,
) -> Credentials<'a> {
    Credentials {
        user: "md5_user",
        password: password.map(|secret| secret as &dyn PasswordSource),
        complaint: None,
        methods,
        binding,
        encrypted: false,
        end_point: None,
    }
}

fn request(code: i32, rest: &[u8]) -> Vec<u8> {
    [&code.to_be_bytes()[..], rest].concat()
}

fn bytes_of(step: Result<Step>) -> Vec<u8> {
    match step.unwrap() {
        Step::Send(message) => {
            assert_eq!(message[0], b'p');
            assert_eq!(u32::from_be_bytes(*message[1..].first_chunk().unwrap()) as usize + 1, message.len());
            message[5..].to_vec()
        }
        Step::Wait | Step::Done => panic!("nothing was sent"),
    }
}

fn error_of(step: Result<Step>) -> Error {
    let Err(error) = step else { panic!("it worked") };
    assert!(error.hint().is_some() && !error.to_string().contains("hidden"), "{error}");
    error
}

const OFFER: &[u8] = b"SCRAM-SHA-256\0\0";
const OFFER_BOTH: &[u8] = b"SCRAM-SHA-256-PLUS\0SCRAM-SHA-256\0\0";

#[test]
fn trust_needs_nothing() {
    let mut exchange = Authentication::new(credentials(None, NO_METHODS, BindingMode::Prefer));
    assert!(matches!(exchange.answer(&request(request::OK, b"")), Ok(Step::Done)));
}

#[test]
fn passwords_in_clear_and_hashed() {
    let secret = Secret::new("password");
    let mut exchange = Authentication::new(credentials(Some(&secret), NO_METHODS, BindingMode::Prefer));
    assert_eq!(bytes_of(exchange.answer(&request(request::CLEARTEXT, b""))), b"password\0");
    assert!(matches!(exchange.answer(&request(request::OK, b"")), Ok(Step::Done)));
    let mut exchange = Authentication::new(credentials(Some(&secret), NO_METHODS, BindingMode::Prefer));
    let salt = [0x2a, 0x3d, 0x8f, 0xe0];
    assert_eq!(
        bytes_of(exchange.answer(&request(request::MD5, &salt))),
        b"md562af4dd09bbb41884907a838a3233294\0"
    );
    assert!(
        Authentication::new(credentials(Some(&secret), NO_METHODS, BindingMode::Prefer))
            .answer(&request(request::MD5, b"abc"))
            .is_err()
    );
}

#[test]
fn a_missing_password_is_told_with_its_remedy() {
    for secret in [None, Some(Secret::new(""))] {
        for (code, rest) in [(request::CLEARTEXT, &b""[..]), (request::MD5, b"salt"), (request::SASL, OFFER)]
        {
            let mut given = credentials(secret.as_ref(), NO_METHODS, BindingMode::Prefer);
            given.complaint = Some("the password file is ignored");
            let error = error_of(Authentication::new(given).answer(&request(code, rest)));
            assert!(error.hint().unwrap().contains("PGPASSWORD"), "{error}");
            assert!(error.detail().unwrap().contains("ignored"), "{error}");
        }
    }
}

#[test]
fn a_password_with_a_zero_byte_is_not_cut() {
    let secret = Secret::new("hid\0den");
    let mut exchange = Authentication::new(credentials(Some(&secret), NO_METHODS, BindingMode::Prefer));
    assert_eq!(error_of(exchange.answer(&request(request::CLEARTEXT, b""))).kind(), Kind::Interface);
}

#[test]
fn foreign_methods_are_named() {
    for (code, rest, name) in [
        (request::GSS, &b""[..], "Kerberos"),
        (request::SSPI, b"", "SSPI"),
        (request::SASL, b"OAUTHBEARER\0\0", "OAUTHBEARER"),
        (2, b"", "number 2"),
    ] {
        let error = error_of(
            Authentication::new(credentials(None, NO_METHODS, BindingMode::Prefer))
                .answer(&request(code, rest)),
        );
        assert!(error.kind() == Kind::NotSupported && error.to_string().contains(name), "{error}");
    }
}

#[test]
fn methods_that_are_not_allowed_get_no_answer() {
    let secret = Secret::new("hidden");
    let scram_only = Methods::only(&["scram-sha-256"]);
    for (code, rest) in
        [(request::OK, &b""[..]), (request::CLEARTEXT, b""), (request::MD5, b"salt"), (request::GSS, b"")]
    {
        let given = credentials(Some(&secret), &scram_only, BindingMode::Prefer);
        let error = error_of(Authentication::new(given).answer(&request(code, rest)));
        assert!(error.to_string().contains("require_auth"), "{error}");
    }
}

#[test]
fn requests_out_of_turn_break_the_protocol() {
    let secret = Secret::new("hidden");
    for second in [request::CLEARTEXT, request::SASL_CONTINUE, request::SASL_FINAL] {
        let mut exchange = Authentication::new(credentials(Some(&secret), NO_METHODS, BindingMode::Prefer));
        bytes_of(exchange.answer(&request(request::CLEARTEXT, b"")));
        error_of(exchange.answer(&request(second, b"")));
    }
    let mut exchange = Authentication::new(credentials(Some(&secret), NO_METHODS, BindingMode::Prefer));
    assert!(exchange.answer(b"abc").is_err());
}

fn begin<'a>(secret: &'a Secret, binding: BindingMode, end_point: Option<&[u8]>) -> Authentication<'a> {
    let mut given = credentials(Some(secret), NO_METHODS, binding);
    given.encrypted = end_point.is_some();
    given.end_point = end_point.map(<[u8]>::to_vec);
    Authentication::new(given)
}

#[test]
fn channel_binding_is_as_wished() {
    let secret = Secret::new("hidden");
    let digest = Some(&[7; 32][..]);
    for (binding, end_point, offer, expected) in [
        (BindingMode::Prefer, None, OFFER, Some("SCRAM-SHA-256\0n,,")),
        (BindingMode::Prefer, digest, OFFER, Some("SCRAM-SHA-256\0y,,")),
        (BindingMode::Prefer, digest, OFFER_BOTH, Some("SCRAM-SHA-256-PLUS\0p=tls-server-end-point,,")),
        (BindingMode::Disable, digest, OFFER_BOTH, Some("SCRAM-SHA-256\0n,,")),
        (BindingMode::Require, digest, OFFER_BOTH, Some("SCRAM-SHA-256-PLUS\0p=tls-server-end-point,,")),
        (BindingMode::Require, digest, OFFER, None),
        (BindingMode::Require, None, OFFER, None),
        // Somebody has taken TLS away in between.
        (BindingMode::Prefer, None, OFFER_BOTH, None),
    ] {
        let step = begin(&secret, binding, end_point).answer(&request(request::SASL, offer));
        match expected {
            None => drop(error_of(step)),
            Some(expected) => {
                let (mechanism, flag) = expected.split_once('\0').unwrap();
                let message = bytes_of(step);
                let rest = message.strip_prefix(format!("{mechanism}\0").as_bytes()).unwrap();
                assert!(rest[4..].starts_with(format!("{flag}n=,r=").as_bytes()), "{expected}");
            }
        }
    }
}

#[test]
fn a_certificate_without_a_digest_binds_nothing() {
    let secret = Secret::new("hidden");
    for (binding, works) in [(BindingMode::Prefer, true), (BindingMode::Require, false)] {
        let mut exchange = begin(&secret, binding, Some(&[]));
        exchange.credentials.end_point = None;
        assert_eq!(exchange.answer(&request(request::SASL, OFFER_BOTH)).is_ok(), works);
    }
}

#[test]
fn methods_without_binding_are_refused_where_it_is_required() {
    let secret = Secret::new("hidden");
    for (code, rest) in [(request::OK, &b""[..]), (request::CLEARTEXT, b""), (request::MD5, b"salt")] {
        let error =
            error_of(begin(&secret, BindingMode::Require, Some(&[7; 32])).answer(&request(code, rest)));
        assert!(error.to_string().contains("channel_binding"), "{error}");
    }
}

#[test]
fn the_server_must_prove_itself() {
    let secret = Secret::new("hidden");
    let challenge = |first: &[u8]| {
        let text = String::from_utf8(first.to_vec()).unwrap();
        let nonce = text.split_once(",r=").unwrap().1.to_owned();
        request(request::SASL_CONTINUE, format!("r={nonce}more,s=c2FsdA==,i=4096").as_bytes())
    };
    // Content too early: after the offer, and after the challenge.
    let mut exchange = begin(&secret, BindingMode::Prefer, None);
    bytes_of(exchange.answer(&request(request::SASL, OFFER)));
    assert!(error_of(exchange.answer(&request(request::OK, b""))).to_string().contains("proof"));
    let mut exchange = begin(&secret, BindingMode::Prefer, None);
    let first = bytes_of(exchange.answer(&request(request::SASL, OFFER)));
    assert!(bytes_of(exchange.answer(&challenge(&first))).starts_with(b"c=biws,r="));
    assert!(error_of(exchange.answer(&request(request::OK, b""))).to_string().contains("proof"));
    // A proof that proves nothing, and an error in its place.
    for proof in ["v=AAAA", "v=", "e=other-error", ""] {
        let mut exchange = begin(&secret, BindingMode::Prefer, None);
        let first = bytes_of(exchange.answer(&request(request::SASL, OFFER)));
        bytes_of(exchange.answer(&challenge(&first)));
        let error = error_of(exchange.answer(&request(request::SASL_FINAL, proof.as_bytes())));
        assert!(error.to_string().contains("prove"), "{error}");
    }
    // Challenges of no use.
    for challenge in ["", "r=other,s=c2FsdA==,i=4096", "r=,s=,i=", "m=x", "\u{fffd}"] {
        let mut exchange = begin(&secret, BindingMode::Prefer, None);
        bytes_of(exchange.answer(&request(request::SASL, OFFER)));
        error_of(exchange.answer(&request(request::SASL_CONTINUE, challenge.as_bytes())));
    }
}
