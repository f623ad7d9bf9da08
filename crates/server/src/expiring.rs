//! What clients hold by a handle: it is one user's, and goes when no one asks for it.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use longshore_core::{Error, Result, locked};
use ring::rand::{SecureRandom, SystemRandom};

/// The bytes of a handle, too many to be guessed.
const LENGTH: usize = 16;

/// Objects by their handles.
pub(crate) struct Expiring<T> {
    held: Mutex<HashMap<String, Held<T>>>,
    idle: Duration,
}

struct Held<T> {
    owner: String,
    object: T,
    used: Instant,
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
    pub(crate) fn new(idle: Duration) -> Self {
        Self { held: Mutex::default(), idle }
    }

    /// Keeps an object of `owner`'s, and gives its handle.
    pub(crate) fn keep(&self, owner: &str, object: T) -> Result<String> {
        let handle = random()?;
        let held = Held { owner: owner.to_owned(), object, used: Instant::now() };
        locked(&self.held).insert(handle.clone(), held);
        Ok(handle)
    }

    /// Does `work` with the object of a handle, quickly: others wait.
    pub(crate) fn with<R>(&self, owner: &str, handle: &str, work: impl FnOnce(&mut T) -> R) -> Option<R> {
        let mut held = locked(&self.held);
        let held = held.get_mut(handle).filter(|held| held.owner == owner)?;
        held.used = Instant::now();
        Some(work(&mut held.object))
    }

    /// Takes the object of a handle.
    pub(crate) fn take(&self, owner: &str, handle: &str) -> Option<T> {
        let mut held = locked(&self.held);
        if held.get(handle)?.owner != owner {
            return None;
        }
        held.remove(handle).map(|held| held.object)
    }

    /// The handles of those of `owner`'s that are wanted.
    pub(crate) fn find_all(&self, owner: &str, is_wanted: impl Fn(&T) -> bool) -> Vec<String> {
        let held = locked(&self.held);
        let wanted = held.iter().filter(|(_, held)| held.owner == owner && is_wanted(&held.object));
        wanted.map(|(handle, _)| handle.clone()).collect()
    }

    /// Takes those of `owner`'s that are wanted.
    pub(crate) fn take_where(&self, owner: &str, is_wanted: impl Fn(&T) -> bool) -> Vec<T> {
        let wanted = self.find_all(owner, is_wanted);
        wanted.iter().filter_map(|handle| self.take(owner, handle)).collect()
    }

    /// Takes what no one has asked for in a long time, but for what is in use.
    pub(crate) fn expired(&self, is_used: impl Fn(&T) -> bool) -> Vec<T> {
        let mut held = locked(&self.held);
        let old = held.iter().filter(|(_, held)| held.used.elapsed() >= self.idle && !is_used(&held.object));
        let old: Vec<String> = old.map(|(handle, _)| handle.clone()).collect();
        old.iter().filter_map(|handle| held.remove(handle)).map(|held| held.object).collect()
    }

    /// Takes everything.
    pub(crate) fn drain(&self) -> Vec<T> {
        locked(&self.held).drain().map(|(_, held)| held.object).collect()
    }

    pub(crate) fn len(&self) -> usize {
        locked(&self.held).len()
    }
}
