//! Options of all types: each is told in every type that can say it.

use adbc_core::error::{Result, Status};
use adbc_core::options::OptionValue;

use crate::error::{not_supported, refusal};

/// The option of a name that is not known.
pub(crate) fn unknown(key: &str) -> adbc_core::error::Error {
    not_supported(format!("the option {key:?} is not known"))
}

/// An option that has no value to be told.
pub(crate) fn untold(key: &str) -> adbc_core::error::Error {
    refusal(Status::NotFound, format!("the option {key:?} has no value"))
}

/// A value that is not what the option takes.
pub(crate) fn wrong(key: &str, wanted: &str) -> adbc_core::error::Error {
    refusal(Status::InvalidArguments, format!("the option {key:?} is {wanted}"))
}

/// The text of a value.
pub(crate) fn text(key: &str, value: &OptionValue) -> Result<String> {
    match value {
        OptionValue::String(text) => Ok(text.clone()),
        OptionValue::Int(number) => Ok(number.to_string()),
        OptionValue::Double(number) => Ok(number.to_string()),
        OptionValue::Bytes(bytes) => {
            String::from_utf8(bytes.clone()).map_err(|_| wrong(key, "a text, and these bytes are not UTF-8"))
        }
        _ => Err(wrong(key, "a text")),
    }
}

/// "true" or "false".
pub(crate) fn flag(key: &str, value: &OptionValue) -> Result<bool> {
    match text(key, value)?.as_str() {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err(wrong(key, "\"true\" or \"false\"")),
    }
}

/// An integer, or its text.
pub(crate) fn integer(key: &str, value: &OptionValue) -> Result<i64> {
    text(key, value)?.parse().map_err(|_| wrong(key, "an integer"))
}

/// A number from 1.
pub(crate) fn count(key: &str, value: &OptionValue) -> Result<usize> {
    let number = usize::try_from(integer(key, value)?).ok().filter(|number| *number > 0);
    number.ok_or_else(|| wrong(key, "a number from 1"))
}

/// A number, or its text.
pub(crate) fn double(key: &str, value: &OptionValue) -> Result<f64> {
    text(key, value)?.parse().map_err(|_| wrong(key, "a number"))
}

/// The getters and the setter of an object that has `set(&mut self, key, value)` and `told(&self, key)`.
macro_rules! optionable {
    ($object:ty, $option:ty) => {
        impl adbc_core::Optionable for $object {
            type Option = $option;

            fn set_option(&mut self, key: $option, value: OptionValue) -> Result<()> {
                catch_panic(|| self.set(key.as_ref(), &value))
            }

            fn get_option_string(&self, key: $option) -> Result<String> {
                catch_panic(|| options::text(key.as_ref(), &self.option(key.as_ref())?))
            }

            fn get_option_bytes(&self, key: $option) -> Result<Vec<u8>> {
                catch_panic(|| {
                    options::text(key.as_ref(), &self.option(key.as_ref())?).map(String::into_bytes)
                })
            }

            fn get_option_int(&self, key: $option) -> Result<i64> {
                catch_panic(|| options::integer(key.as_ref(), &self.option(key.as_ref())?))
            }

            fn get_option_double(&self, key: $option) -> Result<f64> {
                catch_panic(|| options::double(key.as_ref(), &self.option(key.as_ref())?))
            }
        }
    };
}

pub(crate) use optionable;
