//! Without its arguments the server says which they are. That there is a test has `cargo test` build the program, too.

use std::process::Command;

#[test]
fn it_says_what_it_wants() {
    let told = Command::new(env!("CARGO_BIN_EXE_tds-server")).output().expect("it runs");
    assert!(!told.status.success());
    let said = String::from_utf8_lossy(&told.stderr);
    assert!(said.contains("usage: tds-server CERTIFICATE KEY CONTROL OFF LOGIN ON STRICT"), "{said}");
}
