//! Parameters as literals, for a client that sends statements as texts alone.

use longshore_core::{Result, Value};
use longshore_source::sql::Kind;
use longshore_values::Misfit;
use longshore_values::decimal::Text;
use longshore_values::text::hex;

use crate::dialect::{literal, tokens};
use crate::encode::{self, kind};
use crate::packet::{Reader, protocol_error};
use crate::temporal::{Civil, Zone, binary_time, write_time};

/// The statement with its parameters in their places, as literals of the types in which they would be bound.
pub(crate) fn inline(text: &str, values: &[&Value], zone: Zone, escapes: bool) -> Result<String> {
    let tokens = tokens(text, escapes);
    let places: Vec<_> = tokens.iter().filter(|token| token.kind == Kind::Parameter).collect();
    encode::check_count(places.len(), values.len())?;
    let (mut inlined, mut end) = (String::with_capacity(text.len()), 0);
    for (index, (place, value)) in places.into_iter().zip(values).enumerate() {
        let literal = of(value, zone).map_err(|error| error.within(format!("parameter {}", index + 1)))?;
        inlined.push_str(&text[end..place.start]);
        inlined.push_str(&literal);
        end = place.end();
    }
    inlined.push_str(&text[end..]);
    Ok(inlined)
}

/// A value as a literal, which stands for itself between any other words.
fn of(value: &Value, zone: Zone) -> Result<String> {
    let mut bound = Vec::new();
    let kind = encode::put(value, zone, &mut bound)?;
    Ok(match value {
        Value::Bool(value) => u8::from(*value).to_string(),
        Value::Int(value) => format!("({value})"),
        Value::Float(value) => format!("({value:e})"),
        Value::Decimal(text) => decimal(text),
        Value::Bytes(bytes) => format!(" _binary x'{}'", hex(bytes)),
        _ => match kind {
            kind::TEXT => format!(" {}", literal(&Reader::new(&bound).text()?)),
            kind::DATE => {
                temporal("DATE", &bound, |cell, into| Civil::binary(cell).map(|it| it.write(false, into)))?
            }
            kind::DATETIME => temporal("TIMESTAMP", &bound, |cell, into| {
                Civil::binary(cell).map(|it| it.write(true, into))
            })?,
            kind::TIME => {
                temporal("TIME", &bound, |cell, into| binary_time(cell).map(|it| write_time(it, into)))?
            }
            kind::NULL => " NULL".to_owned(),
            _ => return Err(protocol_error("a parameter of its own")),
        },
    })
}

/// A decimal literal has no exponent: with one, it is a float.
fn decimal(text: &str) -> String {
    let has_exponent = text.bytes().any(|byte| byte.eq_ignore_ascii_case(&b'e'));
    match Text::parse(text).filter(|_| has_exponent).map(|text| text.extent()) {
        Some((decimals, whole)) => {
            format!(" CAST('{text}' AS DECIMAL({}, {decimals}))", (decimals + whole).max(1))
        }
        None => format!("({text})"),
    }
}

fn temporal(
    word: &str,
    bound: &[u8],
    render: impl Fn(&[u8], &mut Vec<u8>) -> Result<(), Misfit>,
) -> Result<String> {
    let mut text = Vec::new();
    render(Reader::new(bound).counted_bytes()?, &mut text)
        .map_err(|_| protocol_error("a parameter of its own"))?;
    Ok(format!(" {word}'{}'", String::from_utf8_lossy(&text)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_stand_in_their_places() {
        let values = [
            Value::Int(-1),
            Value::Text("it's".into()),
            Value::Null,
            Value::Float(-0.0),
            Value::Decimal("1e-3".into()),
            Value::Bytes(b"?".to_vec()),
            Value::Timestamp(1),
            Value::Interval(0, -1, -1_000_000),
        ];
        let values: Vec<&Value> = values.iter().collect();
        let text = "SELECT 1-?,'?',?,?,?,?,?,?,?";
        assert_eq!(
            inline(text, &values, Zone::UTC, true).unwrap(),
            "SELECT 1-(-1),'?', _utf8mb4 x'69742773', NULL,(-0e0), CAST('1e-3' AS DECIMAL(3, 3)), _binary x'3f', \
             TIMESTAMP'1970-01-01 00:00:00.000001', TIME'-24:00:01'"
        );
        assert!(inline("SELECT ?", &values, Zone::UTC, true).is_err());
    }
}
