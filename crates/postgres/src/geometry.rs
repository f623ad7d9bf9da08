//! PostGIS's geometry and geography as `geoarrow.wkb`: ISO's well-known binary, with the SRID in the field's metadata.
//!
//! PostGIS sends EWKB, which has the SRID in each value, and marks dimensions by bits that are not ISO's numbers.

use std::sync::Arc;

use arrow_array::builder::BinaryBuilder;
use arrow_array::cast::AsArray;
use arrow_array::types::{BinaryType, LargeBinaryType};
use arrow_array::{Array, ArrayRef};
use arrow_schema::{DataType, Field, FieldRef};
use longshore_core::{EXTENSION, EXTENSION_METADATA, Error, Result};
use longshore_values::text::unhex;
use longshore_values::{Decoder, Derived, Misfit, fault, large_bytes};
use serde_json::{Value as Json, json};

use crate::decode::Part;
use crate::types::{Class, Format, Type};

/// The name of the extension type.
pub(crate) const EXTENSION_NAME: &str = "geoarrow.wkb";

const HAS_Z: u32 = 1 << 31;
const HAS_M: u32 = 1 << 30;
const HAS_SRID: u32 = 1 << 29;

/// The SRID of a geography that declares none.
const LONGITUDE_LATITUDE: i32 = 4326;

/// Types within types deeper than this are damaged: PostGIS has 200 at most.
const DEPTH: usize = 256;

/// The SRID of a modifier; 0 where it has none (PostGIS, `TYPMOD_GET_SRID`).
fn srid_of_modifier(modifier: i32) -> i32 {
    if modifier < 0 { 0 } else { ((modifier & 0x0fff_ff00) - (modifier & 0x1000_0000)) >> 8 }
}

/// The SRID that a column declares for all its values.
pub(crate) fn declared_srid(native: &Type) -> Option<i32> {
    let declared = srid_of_modifier(native.modifier);
    if declared == 0 && is_geography(native) {
        Some(LONGITUDE_LATITUDE)
    } else {
        Some(declared).filter(|srid| *srid != 0)
    }
}

fn is_geography(native: &Type) -> bool {
    native.name.ends_with("geography")
}

/// The text that a modifier declares, as PostGIS shows it: `(PointZ,4326)`.
pub(crate) fn declaration(modifier: i32) -> String {
    const NAMES: &str = "Geometry Point LineString Polygon MultiPoint MultiLineString MultiPolygon GeometryCollection \
                         CircularString CompoundCurve CurvePolygon MultiCurve MultiSurface PolyhedralSurface Triangle Tin";
    let kind = usize::try_from(modifier >> 2 & 0x3f).ok().and_then(|kind| NAMES.split(' ').nth(kind));
    let kind = kind.unwrap_or("Geometry");
    let z = if modifier & 2 == 0 { "" } else { "Z" };
    let m = if modifier & 1 == 0 { "" } else { "M" };
    match srid_of_modifier(modifier) {
        0 => format!("({kind}{z}{m})"),
        srid => format!("({kind}{z}{m},{srid})"),
    }
}

/// The metadata of GeoArrow for a column of `native`, as far as it is known before the rows.
pub(crate) fn extension_metadata(native: &Type) -> Option<String> {
    metadata(declared_srid(native).unwrap_or_default(), is_geography(native))
}

fn metadata(srid: i32, is_spherical: bool) -> Option<String> {
    let mut object = serde_json::Map::new();
    if srid != 0 {
        object.insert("crs".to_owned(), json!(srid.to_string()));
        object.insert("crs_type".to_owned(), json!("srid"));
    }
    if is_spherical {
        object.insert("edges".to_owned(), json!("spherical"));
    }
    (!object.is_empty()).then(|| Json::Object(object).to_string())
}

/// The decoder into `arrow`: a binary column with the SRID that `native` declares, or a large one of EWKB, deferred until
/// all rows tell theirs.
pub(crate) fn decoder(native: &Type, format: Format, arrow: &DataType) -> Box<dyn Decoder> {
    let declared = declared_srid(native).unwrap_or_default();
    match (arrow, format) {
        (DataType::LargeBinary, Format::Binary) => large_bytes(),
        (DataType::LargeBinary, Format::Text) => Derived::<LargeBinaryType, _>::boxed(|cell, into| {
            into.extend(ewkb_of_text(cell)?);
            Ok(())
        }),
        (_, Format::Binary) => {
            Derived::<BinaryType, _>::boxed(move |cell, into| column_wkb(cell, declared, into))
        }
        (_, Format::Text) => Derived::<BinaryType, _>::boxed(move |cell, into| {
            column_wkb(&ewkb_of_text(cell)?, declared, into)
        }),
    }
}

fn ewkb_of_text(cell: &[u8]) -> Result<Vec<u8>, Misfit> {
    unhex(cell).ok_or_else(damage)
}

/// The WKB of a column that declares the SRID, or has none.
fn column_wkb(ewkb: &[u8], declared: i32, into: &mut Vec<u8>) -> Result<(), Misfit> {
    match wkb(ewkb, into)? {
        srid if srid == declared => Ok(()),
        srid => Err(Misfit::with_hint(
            format!("its SRID is {srid}, which the column does not declare"),
            format!(
                "declare it in the query, \"<column>\"::geometry(Geometry,{srid}), so that the schema has it; or ask for \
                 schema={{\"<column>\": \"string\"}}"
            ),
        )),
    }
}

#[cold]
fn damage() -> Misfit {
    Misfit::with_hint("the server sent a damaged geometry", "ask for schema={\"<column>\": \"string\"}")
}

/// Appends the WKB of an EWKB, and gives its SRID; 0 where it has none.
fn wkb(ewkb: &[u8], into: &mut Vec<u8>) -> Result<i32, Misfit> {
    let mut reader = Reader { rest: ewkb, into, is_little: false };
    let srid = reader.geometry(0)?;
    if reader.rest.is_empty() { Ok(srid) } else { Err(damage()) }
}

/// Copies a geometry part by part.
struct Reader<'a, 'b> {
    rest: &'a [u8],
    into: &'b mut Vec<u8>,
    is_little: bool,
}

impl<'a> Reader<'a, '_> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], Misfit> {
        let (taken, rest) = self.rest.split_at_checked(count).ok_or_else(damage)?;
        self.rest = rest;
        Ok(taken)
    }

    fn word(&mut self) -> Result<u32, Misfit> {
        let word = self.take(4)?.try_into().map_err(|_| damage())?;
        Ok(if self.is_little { u32::from_le_bytes(word) } else { u32::from_be_bytes(word) })
    }

    fn put(&mut self, word: u32) {
        self.into.extend(if self.is_little { word.to_le_bytes() } else { word.to_be_bytes() });
    }

    /// A count, which is copied.
    fn count(&mut self) -> Result<usize, Misfit> {
        let count = self.word()?;
        self.put(count);
        usize::try_from(count).map_err(|_| damage())
    }

    fn points(&mut self, count: usize, dimensions: usize) -> Result<(), Misfit> {
        let bytes = count.checked_mul(8 * dimensions).ok_or_else(damage)?;
        let points = self.take(bytes)?;
        self.into.extend_from_slice(points);
        Ok(())
    }

    fn line(&mut self, dimensions: usize) -> Result<(), Misfit> {
        let count = self.count()?;
        self.points(count, dimensions)
    }

    /// A geometry, and those within it; gives its SRID.
    fn geometry(&mut self, depth: usize) -> Result<i32, Misfit> {
        let order = self.take(1)?;
        self.is_little = order == [1];
        self.into.extend_from_slice(order);
        let word = self.word()?;
        let srid = if word & HAS_SRID == 0 { 0 } else { self.word()?.cast_signed() };
        let kind = word & 0x0fff_ffff;
        let (z, m) = (u32::from(word & HAS_Z != 0), u32::from(word & HAS_M != 0));
        self.put(kind + 1000 * z + 2000 * m);
        let dimensions = if z + m == 2 {
            4
        } else if z + m == 1 {
            3
        } else {
            2
        };
        match kind {
            1 => self.points(1, dimensions)?,
            // Lines and circular strings.
            2 | 8 => self.line(dimensions)?,
            // Polygons and triangles: rings.
            3 | 17 => {
                for _ in 0..self.count()? {
                    self.line(dimensions)?;
                }
            }
            // All that is made of geometries.
            4..=7 | 9..=12 | 15 | 16 if depth < DEPTH => {
                for _ in 0..self.count()? {
                    self.geometry(depth + 1)?;
                }
            }
            _ => return Err(damage()),
        }
        Ok(srid)
    }
}

/// The batches' EWKB as WKB, and the field with the SRID that all of them have.
pub(crate) fn finalise(part: &Part<'_>, arrays: &[ArrayRef]) -> Result<(FieldRef, Vec<ArrayRef>)> {
    let (mut common, mut before, mut finalised) = (None, 0, Vec::with_capacity(arrays.len()));
    for array in arrays {
        part.options.budget.grow(array.get_array_memory_size())?;
        let cells = array.as_binary::<i64>();
        let mut column = BinaryBuilder::with_capacity(cells.len(), cells.value_data().len());
        let mut scratch = Vec::new();
        for (row, cell) in cells.iter().enumerate() {
            let Some(cell) = cell else {
                column.append_null();
                continue;
            };
            scratch.clear();
            let srid = wkb(cell, &mut scratch).and_then(|srid| same(&mut common, srid));
            if let Some(fault) = srid.err().and_then(|misfit| fault(row, misfit)) {
                let row = before + fault.row as u64;
                return Err(fault.into_error(part.place(Some(row))));
            }
            column.append_value(&scratch);
        }
        before += array.len() as u64;
        finalised.push(Arc::new(column.finish()) as ArrayRef);
    }
    let field = part.with_type(DataType::Binary);
    let mut all = field.metadata().clone();
    all.extend(metadata(common.unwrap_or_default(), false).map(|text| (EXTENSION_METADATA.to_owned(), text)));
    Ok((Arc::new(field.as_ref().clone().with_metadata(all)), finalised))
}

/// Refuses a second SRID.
fn same(common: &mut Option<i32>, srid: i32) -> Result<(), Misfit> {
    match *common.get_or_insert(srid) {
        known if known == srid => Ok(()),
        known => Err(Misfit::with_hint(
            format!("its SRID is {srid}, and that of the rows before it {known}: a column has one"),
            "ST_Transform in the query gives all of them one; schema={\"<column>\": \"string\"} keeps them, as the \
             hexadecimal digits of EWKB",
        )),
    }
}

/// `native` as the column of `field`'s values: with their SRID where it declares none itself.
pub(crate) fn with_srid(native: Type, field: &Field) -> Result<Type> {
    if !native.is(Class::Geometry) {
        return Ok(native);
    }
    match (srid_of_field(field)?, srid_of_modifier(native.modifier)) {
        (Some(srid), 0) => Ok(native.with_modifier(srid << 8)),
        (Some(srid), declared) if srid != declared => Err(Error::data(format!(
            "the data's SRID is {srid}, the column's {declared}"
        ))
        .with_hint("transform the data to the column's reference system, or take the crs off its metadata")),
        _ => Ok(native),
    }
}

/// The SRID that a field's metadata tells.
pub(crate) fn srid_of_field(field: &Field) -> Result<Option<i32>> {
    let of = |key: &str| field.metadata().get(key).map(String::as_str);
    if of(EXTENSION) != Some(EXTENSION_NAME) {
        return Ok(None);
    }
    let metadata =
        serde_json::from_str(of(EXTENSION_METADATA).filter(|text| !text.is_empty()).unwrap_or("{}"));
    let crs = metadata.map(|metadata: Json| metadata["crs"].clone());
    match &crs {
        Ok(Json::Null) => return Ok(None),
        Ok(Json::String(text)) => {
            let code = text.strip_prefix("EPSG:").unwrap_or(text);
            if let Some(srid) = code.parse().ok().filter(|srid| (1..1 << 20).contains(srid)) {
                return Ok(Some(srid));
            }
        }
        Ok(object) if object["id"]["authority"] == "EPSG" => {
            if let Some(srid) =
                object["id"]["code"].to_string().parse().ok().filter(|srid| (1..1 << 20).contains(srid))
            {
                return Ok(Some(srid));
            }
        }
        _ => {}
    }
    Err(Error::data("the metadata's crs has no number that would be an SRID")
        .with_hint("give the column's metadata {\"crs\": \"4326\", \"crs_type\": \"srid\"}, or no crs"))
}

/// The type of a new table's column for `field`.
pub(crate) fn type_of(field: &Field) -> Result<String> {
    let is_spherical =
        field.metadata().get(EXTENSION_METADATA).is_some_and(|text| text.contains("\"spherical\""));
    let name = if is_spherical { "geography" } else { "geometry" };
    Ok(srid_of_field(field)?.map_or_else(|| name.to_owned(), |srid| format!("{name}(Geometry,{srid})")))
}

/// A geometry's bytes as a column of `native` takes them: with its SRID.
pub(crate) fn ewkb(native: &Type, bytes: &[u8]) -> Result<Vec<u8>, Misfit> {
    let srid = srid_of_modifier(native.modifier);
    let no_wkb = || {
        Misfit::with_hint("the bytes are not a geometry", "give well-known binary (WKB), or text: POINT(1 2)")
    };
    let ([order, a, b, c, d], rest) = bytes.split_first_chunk::<5>().ok_or_else(no_wkb)?;
    let (word, is_little) = match order {
        0 => (u32::from_be_bytes([*a, *b, *c, *d]), false),
        1 => (u32::from_le_bytes([*a, *b, *c, *d]), true),
        _ => return Err(no_wkb()),
    };
    // The server compares an SRID of the value's own with the column's.
    if srid == 0 || word & HAS_SRID != 0 {
        return Ok(bytes.to_vec());
    }
    let mut out = Vec::with_capacity(bytes.len() + 4);
    out.push(*order);
    for word in [word | HAS_SRID, srid.cast_unsigned()] {
        out.extend(if is_little { word.to_le_bytes() } else { word.to_be_bytes() });
    }
    out.extend_from_slice(rest);
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(digits: &str) -> Result<(String, i32), Misfit> {
        let mut out = Vec::new();
        let srid = wkb(&unhex(digits.as_bytes()).unwrap(), &mut out)?;
        Ok((longshore_values::text::hex(&out), srid))
    }

    #[test]
    fn the_srid_goes_and_dimensions_are_iso() {
        let point = "000000000000f03f0000000000000040";
        assert_eq!(read(&format!("0101000020e6100000{point}")), Ok((format!("0101000000{point}"), 4326)));
        assert_eq!(read(&format!("0101000000{point}")), Ok((format!("0101000000{point}"), 0)));
        let z = format!("{point}0000000000000840");
        let nested = format!("01070000a0e610000001000000 0101000080{z}").replace(' ', "");
        assert_eq!(read(&nested), Ok((format!("01ef030000 01000000 01e9030000{z}").replace(' ', ""), 4326)));
    }

    #[test]
    fn what_is_damaged_is_refused() {
        for bad in [
            "",
            "01",
            "0101000000",
            "010200000002000000",
            "01ff000000",
            "0102000000ffffffff",
            "010200000000000000ff",
        ] {
            assert!(read(bad).is_err(), "{bad}");
        }
        assert!(read(&"010700000001000000".repeat(1000)).is_err());
    }

    #[test]
    fn modifiers_declare_type_and_srid() {
        assert_eq!(declaration(4326 << 8 | 1 << 2), "(Point,4326)");
        assert_eq!(declaration(4326 << 8 | 2), "(GeometryZ,4326)");
        assert_eq!(declaration(1 << 2 | 3), "(PointZM)");
    }

    #[test]
    fn a_crs_is_an_srid() {
        let of = |metadata: &str| {
            let pairs = [(EXTENSION, EXTENSION_NAME), (EXTENSION_METADATA, metadata)];
            let pairs = pairs.map(|(key, value)| (key.to_owned(), value.to_owned()));
            srid_of_field(
                &Field::new("g", DataType::Binary, true)
                    .with_metadata(std::collections::HashMap::from(pairs)),
            )
        };
        for told in [
            r#"{"crs": "4326"}"#,
            r#"{"crs": "EPSG:4326"}"#,
            r#"{"crs": {"id": {"authority": "EPSG", "code": 4326}}}"#,
        ] {
            assert_eq!(of(told).unwrap(), Some(4326), "{told}");
        }
        assert_eq!(of("").unwrap(), None);
        assert_eq!(of("{}").unwrap(), None);
        for bad in
            [r#"{"crs": "OGC:CRS84"}"#, r#"{"crs": {"id": {"authority": "OGC", "code": "CRS84"}}}"#, "{"]
        {
            assert!(of(bad).is_err(), "{bad}");
        }
    }
}
