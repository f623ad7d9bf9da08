//! A server that speaks TDS to its clients, and to the tests that tell it what to answer.
//!
//! `tds-server CERTIFICATE KEY PORT...` listens on five ports: for the tests, for clients without encryption, with that of the
//! login alone, with that of all, and with TLS first, as TDS 8 has it. The handshake is that of `mssql-mock-tds`;
//! what follows it are the tokens that `control` was given.

mod answers;
mod control;
mod login;
mod session;
mod wire;
mod wrapped;

use std::{env, error::Error, fs, sync::Arc};

use answers::Answers;
use login::{Encryption, Tls};
use tokio::net::TcpListener;

type Failure = Box<dyn Error + Send + Sync>;

const ENCRYPTIONS: [Encryption; 4] = [Encryption::Off, Encryption::Login, Encryption::On, Encryption::Strict];

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [certificate, key, control, ports @ ..] = arguments.as_slice() else {
        return Err("usage: tds-server CERTIFICATE KEY CONTROL OFF LOGIN ON STRICT".into());
    };
    let tls = Arc::new(Tls::new(&fs::read(certificate)?, &fs::read(key)?)?);
    let answers = Arc::new(Answers::default());
    for (port, encryption) in ports.iter().zip(ENCRYPTIONS) {
        let listener = listen(port).await?;
        tokio::spawn(accept(listener, encryption, Arc::clone(&tls), Arc::clone(&answers)));
    }
    // The last to listen: who reaches it finds the others there.
    control::serve(listen(control).await?, answers).await
}

async fn listen(port: &str) -> Result<TcpListener, Failure> {
    Ok(TcpListener::bind(("127.0.0.1", port.parse()?)).await?)
}

async fn accept(listener: TcpListener, encryption: Encryption, tls: Arc<Tls>, answers: Arc<Answers>) {
    while let Ok((stream, _)) = listener.accept().await {
        let (tls, answers) = (Arc::clone(&tls), Arc::clone(&answers));
        tokio::spawn(async move {
            let connection = answers.connect();
            let end = login::welcome(stream, encryption, &tls, &answers, connection).await;
            let reason = end.err().map_or_else(String::new, |failure| failure.to_string());
            answers.record(connection, "closed", &reason, false, Vec::new());
        });
    }
}
