//! SQL Server's cells, read from arbitrary bytes.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| longshore_mssql::fuzzing::cells(bytes));
