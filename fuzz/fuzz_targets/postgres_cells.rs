//! PostgreSQL's cells, decoded from arbitrary bytes in every type and format.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| longshore_postgres::fuzzing::cells(bytes));
