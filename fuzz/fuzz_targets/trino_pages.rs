//! Trino's answers and pages, read from arbitrary bytes.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| longshore_trino::fuzzing::pages(bytes));
