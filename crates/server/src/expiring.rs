//! The objects that clients hold by a handle: it is one user's, and goes when no one asks for it.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use longshore_core::{CancelHandle, Error, Result, lock};
use ring::rand::{SecureRandom, SystemRandom};

/// The bytes of a handle, too many to be guessed.
const LENGTH: usize = 16;

/// Objects by their handles.
pub(crate) struct Expiring<T> {
    /// Those of each owner.
    held: Mutex<HashMap<String, HashMap<String, Entry<T>>>>,
    idle: Duration,
    /// The name for them, and how many of them a user may have.
    name: &'static str,
    most: usize,
}

struct Entry<T> {
    object: T,
    used: Instant,
    maker: Maker,
    /// When it goes unless someone asks for it: its maker's connection is gone.
    until: Option<Instant>,
}

/// The call that has made an object: a client that left the call was never told the handle.
pub(crate) struct Maker {
    pub(crate) cancel: CancelHandle,
    /// The call's name, where its client has given it one.
    pub(crate) name: Option<String>,
    /// The client's end of its connection.
    pub(crate) peer: Option<SocketAddr>,
}

/// A text that no one can guess.
pub(crate) fn random() -> Result<String> {
    let mut bytes = [0_u8; LENGTH];
    SystemRandom::new()
        .fill(&mut bytes)
        .map_err(|_| Error::operational("the system has no random numbers"))?;
    Ok(format!("{:032x}", u128::from_be_bytes(bytes)))
}

impl<T> Expiring<T> {
    pub(crate) fn new(idle: Duration, name: &'static str, most: usize) -> Self {
        Self { held: Mutex::default(), idle, name, most }
    }

    /// Keeps an object of `owner`'s that a call has made, and gives its handle.
    pub(crate) fn keep(&self, owner: &str, object: T, maker: Maker) -> Result<String> {
        self.keep_unless(owner, object, maker, |_| None)
    }

    /// The same, unless another of `owner`'s is a reason against it.
    pub(crate) fn keep_unless(
        &self,
        owner: &str,
        object: T,
        maker: Maker,
        against: impl Fn(&T) -> Option<Error>,
    ) -> Result<String> {
        let handle = random()?;
        let mut all = lock(&self.held);
        let own = all.entry(owner.to_owned()).or_default();
        if let Some(error) = own.values().find_map(|held| against(&held.object)) {
            return Err(error);
        }
        if own.len() >= self.most {
            return Err(Error::operational(format!("{} {} are open already", self.most, self.name))
                .with_sqlstate("53000")
                .with_hint("close those that are not needed any more"));
        }
        own.insert(handle.clone(), Entry { object, used: Instant::now(), maker, until: None });
        Ok(handle)
    }

    /// Does `work` with the object of a handle, quickly: others wait.
    pub(crate) fn with<R>(&self, owner: &str, handle: &str, work: impl FnOnce(&mut T) -> R) -> Option<R> {
        let mut held = lock(&self.held);
        let held = held.get_mut(owner)?.get_mut(handle)?;
        (held.used, held.until) = (Instant::now(), None);
        Some(work(&mut held.object))
    }

    /// The same by a connection, which it lasts as long as from now on.
    pub(crate) fn with_by<R>(
        &self,
        owner: &str,
        handle: &str,
        peer: Option<SocketAddr>,
        work: impl FnOnce(&T) -> R,
    ) -> Option<R> {
        let mut held = lock(&self.held);
        let held = held.get_mut(owner)?.get_mut(handle)?;
        (held.maker.peer, held.until) = (peer, None);
        Some(work(&held.object))
    }

    /// Takes the object of a handle.
    pub(crate) fn take(&self, owner: &str, handle: &str) -> Option<T> {
        lock(&self.held).get_mut(owner)?.remove(handle).map(|held| held.object)
    }

    /// The handles of those of `owner`'s that are wanted.
    pub(crate) fn find_all(&self, owner: &str, is_wanted: impl Fn(&T) -> bool) -> Vec<String> {
        let held = lock(&self.held);
        let wanted = held.get(owner).into_iter().flatten().filter(|(_, held)| is_wanted(&held.object));
        wanted.map(|(handle, _)| handle.clone()).collect()
    }

    /// Takes what a call of `owner`'s has made.
    pub(crate) fn take_made(&self, owner: &str, call: &str) -> Vec<T> {
        self.take_own(owner, |held| held.maker.name.as_deref() == Some(call))
    }

    /// Takes those of `owner`'s that are wanted.
    pub(crate) fn take_where(&self, owner: &str, is_wanted: impl Fn(&T) -> bool) -> Vec<T> {
        self.take_own(owner, |held| is_wanted(&held.object))
    }

    /// Takes what has come by a connection.
    pub(crate) fn take_of(&self, peer: SocketAddr) -> Vec<T> {
        self.take_held(|held| held.maker.peer == Some(peer))
    }

    /// Has what has come by a connection that is gone wait no longer than `time` for others.
    pub(crate) fn hurry(&self, peer: SocketAddr, time: Duration) {
        let mut all = lock(&self.held);
        for held in
            all.values_mut().flat_map(HashMap::values_mut).filter(|held| held.maker.peer == Some(peer))
        {
            held.until = Some(Instant::now() + time);
        }
    }

    /// Takes what no one has asked for in a long time, but for what is in use, and what no one can ask for.
    pub(crate) fn take_expired(&self, is_used: impl Fn(&T) -> bool) -> Vec<T> {
        self.take_held(|held| {
            let is_late =
                held.used.elapsed() >= self.idle || held.until.is_some_and(|at| at <= Instant::now());
            held.maker.cancel.is_cancelled() || (is_late && !is_used(&held.object))
        })
    }

    fn take_held(&self, is_wanted: impl Fn(&Entry<T>) -> bool) -> Vec<T> {
        lock(&self.held).values_mut().flat_map(|own| take_entries(own, &is_wanted)).collect()
    }

    fn take_own(&self, owner: &str, is_wanted: impl Fn(&Entry<T>) -> bool) -> Vec<T> {
        lock(&self.held).get_mut(owner).map(|own| take_entries(own, is_wanted)).unwrap_or_default()
    }

    /// Takes everything.
    pub(crate) fn drain(&self) -> Vec<T> {
        self.take_held(|_| true)
    }

    pub(crate) fn len(&self) -> usize {
        self.count(|_| true)
    }

    /// How many are wanted, whosever they are.
    pub(crate) fn count(&self, is_wanted: impl Fn(&T) -> bool) -> usize {
        lock(&self.held).values().flat_map(HashMap::values).filter(|held| is_wanted(&held.object)).count()
    }
}

fn take_entries<T>(own: &mut HashMap<String, Entry<T>>, is_wanted: impl Fn(&Entry<T>) -> bool) -> Vec<T> {
    own.extract_if(|_, held| is_wanted(held)).map(|(_, held)| held.object).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_has_so_many_and_others_have_their_own() {
        let held = Expiring::new(Duration::from_secs(60), "prepared statements", 100);
        let keep = |owner: &str| {
            held.keep(owner, (), Maker { cancel: CancelHandle::default(), name: None, peer: None })
        };
        let handles: Vec<String> = (0..100).map(|_| keep("ada").unwrap()).collect();
        let refused = keep("ada").unwrap_err();
        assert_eq!(refused.sqlstate(), Some("53000"));
        assert_eq!(refused.message(), "100 prepared statements are open already");
        let others = keep("grace").unwrap();
        assert!(held.take("ada", &others).is_none());
        assert!(held.take("ada", &handles[0]).is_some());
        assert!(keep("ada").is_ok());
        assert_eq!(held.len(), 101);
    }

    #[test]
    fn what_another_is_a_reason_against_is_not_kept() {
        let held = Expiring::new(Duration::from_secs(60), "results", 100);
        let keep = |owner: &str, name: &'static str| {
            let maker = Maker { cancel: CancelHandle::default(), name: None, peer: None };
            let against = |other: &&str| (*other == name).then(|| Error::programming("twice"));
            held.keep_unless(owner, name, maker, against)
        };
        assert!(keep("ada", "c").is_ok());
        assert_eq!(keep("ada", "c").unwrap_err().message(), "twice");
        assert!(keep("ada", "d").is_ok());
        assert!(keep("grace", "c").is_ok());
    }
}
