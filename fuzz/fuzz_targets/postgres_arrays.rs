//! PostgreSQL's rows next to asyncpg, from arbitrary bytes into every kind of field.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| longshore_numpy_records::fuzzing::stream(bytes));
