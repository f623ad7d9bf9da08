//! The headers of every call: who calls, the caller's own, and the cookies that the server has set.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use longshore_core::{PasswordSource, Result, Secret, lock};
use tonic::metadata::{Ascii, MetadataKey, MetadataMap, MetadataValue};

const AUTHORIZATION: &str = "authorization";

/// The proof of who calls. `Debug` shows no secret.
#[derive(Clone, Debug)]
pub(crate) enum Login {
    /// Nothing, or the client's certificate.
    None,
    /// A user's name and password, which the server gives a token for.
    Basic { user: String, password: Arc<dyn PasswordSource> },
    /// A token, asked for again when the server takes it no longer.
    Token(Arc<dyn PasswordSource>),
}

/// The headers of all calls of a session.
pub(crate) struct Credentials {
    pub(crate) login: Login,
    headers: Vec<(MetadataKey<Ascii>, MetadataValue<Ascii>)>,
    keeps_cookies: bool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The value of `authorization`.
    authorization: Option<MetadataValue<Ascii>>,
    /// By name: the value, and until when.
    cookies: BTreeMap<String, (String, Option<SystemTime>)>,
}

impl Credentials {
    pub(crate) fn new(
        login: Login,
        headers: Vec<(MetadataKey<Ascii>, MetadataValue<Ascii>)>,
        keeps_cookies: bool,
    ) -> Self {
        Self { login, headers, keeps_cookies, state: Mutex::default() }
    }

    /// Puts the headers of a call into `metadata`.
    pub(crate) fn apply(&self, metadata: &mut MetadataMap) {
        for (name, value) in &self.headers {
            metadata.append(name.clone(), value.clone());
        }
        let state = lock(&self.state);
        if let Some(authorization) = &state.authorization {
            metadata.insert(AUTHORIZATION, authorization.clone());
        }
        let now = SystemTime::now();
        let cookies = state.cookies.iter().filter(|(_, (_, until))| until.is_none_or(|until| until > now));
        let cookies: Vec<String> = cookies.map(|(name, (value, _))| format!("{name}={value}")).collect();
        if !cookies.is_empty()
            && let Ok(cookies) = cookies.join("; ").parse()
        {
            metadata.insert("cookie", cookies);
        }
    }

    /// Keeps what the server's answer gives for later calls: a token, cookies.
    pub(crate) fn learn(&self, answer: &MetadataMap) {
        if let Some(told) = answer.get(AUTHORIZATION)
            && told.as_encoded_bytes().get(..7).is_some_and(|scheme| scheme.eq_ignore_ascii_case(b"bearer "))
        {
            lock(&self.state).authorization = Some(secret(told.clone()));
        }
        if !self.keeps_cookies {
            return;
        }
        for cookie in answer.get_all("set-cookie") {
            if let Ok(text) = cookie.to_str() {
                self.keep_cookie(text);
            }
        }
    }

    fn keep_cookie(&self, text: &str) {
        let mut parts = text.split(';').map(str::trim);
        let Some((name, value)) = parts.next().and_then(|pair| pair.split_once('=')) else { return };
        let (mut age, mut expires) = (None, None);
        for (key, value) in parts.filter_map(|part| part.split_once('=')) {
            if key.eq_ignore_ascii_case("max-age") {
                age = value.parse::<i64>().ok();
            } else if key.eq_ignore_ascii_case("expires") {
                expires = httpdate::parse_http_date(value).ok();
            }
        }
        let now = SystemTime::now();
        let until = match age.map(u64::try_from) {
            Some(Ok(seconds)) => now.checked_add(Duration::from_secs(seconds)),
            Some(Err(_)) => Some(now),
            None => expires,
        };
        let mut state = lock(&self.state);
        if until.is_some_and(|until| until <= now) {
            state.cookies.remove(name);
        } else {
            state.cookies.insert(name.to_owned(), (value.to_owned(), until));
        }
    }

    /// Has calls say who calls by a token.
    pub(crate) fn use_token(&self, token: &Secret) {
        let value = format!("Bearer {}", token.reveal()).parse().ok();
        lock(&self.state).authorization = value.map(secret);
    }

    /// Has each call say who calls by name and password.
    pub(crate) fn use_basic(&self, basic: MetadataValue<Ascii>) {
        lock(&self.state).authorization = Some(basic);
    }

    /// Whether a token is known.
    pub(crate) fn has_token(&self) -> bool {
        let is_bearer = |value: &MetadataValue<Ascii>| value.as_encoded_bytes().len() > 7;
        lock(&self.state).authorization.as_ref().is_some_and(is_bearer)
    }

    /// Forgets the token.
    pub(crate) fn forget(&self) {
        lock(&self.state).authorization = None;
    }
}

/// The header of a name and a password.
pub(crate) fn basic(user: &str, password: &dyn PasswordSource) -> Result<MetadataValue<Ascii>> {
    let password = password.password()?;
    let text = BASE64_STANDARD.encode(format!("{user}:{}", password.reveal()));
    let value = format!("Basic {text}").parse();
    value.map(secret).map_err(|_| longshore_core::Error::internal("base64 that is not a header's value"))
}

/// The value, which no log of a library shows.
fn secret(mut value: MetadataValue<Ascii>) -> MetadataValue<Ascii> {
    value.set_sensitive(true);
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answers(values: &[(&'static str, &str)]) -> MetadataMap {
        let mut answer = MetadataMap::new();
        for (name, value) in values {
            answer.append(*name, value.parse().unwrap());
        }
        answer
    }

    #[test]
    fn cookies_are_kept_until_their_time() {
        let credentials = Credentials::new(Login::None, Vec::new(), true);
        credentials.learn(&answers(&[
            ("set-cookie", "session=1; Path=/; HttpOnly"),
            ("set-cookie", "b=2; Max-Age=60"),
            ("set-cookie", "gone=3; Expires=Thu, 01 Jan 1970 00:00:00 GMT"),
        ]));
        credentials.learn(&answers(&[("set-cookie", "session=4")]));
        let mut metadata = MetadataMap::new();
        credentials.apply(&mut metadata);
        assert_eq!(metadata.get("cookie").unwrap(), "b=2; session=4");
        credentials
            .learn(&answers(&[("set-cookie", "session=; Max-Age=0"), ("set-cookie", "b=; max-age=-1")]));
        let mut metadata = MetadataMap::new();
        credentials.apply(&mut metadata);
        assert!(metadata.get("cookie").is_none());
    }

    #[test]
    fn a_token_is_the_newest() {
        let credentials = Credentials::new(Login::None, Vec::new(), true);
        credentials.use_token(&Secret::new("first"));
        credentials.learn(&answers(&[("authorization", "Bearer second")]));
        credentials.learn(&answers(&[("authorization", "Basic other")]));
        let mut metadata = MetadataMap::new();
        credentials.apply(&mut metadata);
        assert_eq!(metadata.get(AUTHORIZATION).unwrap(), "Bearer second");
        assert!(!format!("{metadata:?}").contains("second"));
    }
}
