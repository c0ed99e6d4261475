//! Loads over TLS: the same records, from a server that was verified.
#![cfg(feature = "tls")]

mod common;

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;

use common::{folder, load, Measured};
use openssl::asn1::Asn1Time;
use openssl::bn::BigNum;
use openssl::ec::{EcGroup, EcKey};
use openssl::hash::MessageDigest;
use openssl::nid::Nid;
use openssl::pkey::PKey;
use openssl::ssl::{ShutdownResult, SslAcceptor, SslMethod};
use openssl::x509::extension::SubjectAlternativeName;
use openssl::x509::{X509NameBuilder, X509};

const LARGE: usize = 300_000;

/// How a server ends its connections.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ending {
    Never,
    /// After each answer, which has no length, saying so or not.
    Announced,
    Abrupt,
}

/// Starts a server whose certificate is for a name and an address; returns its port and the
/// certificate's file.
fn start(name: &str, address: &str, ending: Ending) -> (u16, PathBuf) {
    let group = EcGroup::from_curve_name(Nid::X9_62_PRIME256V1).unwrap();
    let key = PKey::from_ec_key(EcKey::generate(&group).unwrap()).unwrap();
    let mut subject = X509NameBuilder::new().unwrap();
    subject.append_entry_by_text("CN", "a test").unwrap();
    let subject = subject.build();
    let mut builder = X509::builder().unwrap();
    builder.set_version(2).unwrap();
    let serial = BigNum::from_u32(1).unwrap().to_asn1_integer().unwrap();
    builder.set_serial_number(&serial).unwrap();
    builder.set_subject_name(&subject).unwrap();
    builder.set_issuer_name(&subject).unwrap();
    builder.set_pubkey(&key).unwrap();
    let yesterday = Asn1Time::from_unix(common::wall_clock() as i64 / 1_000_000_000 - 86_400);
    builder.set_not_before(&yesterday.unwrap()).unwrap();
    let tomorrow = Asn1Time::days_from_now(1).unwrap();
    builder.set_not_after(&tomorrow).unwrap();
    let names = SubjectAlternativeName::new()
        .dns(name)
        .ip(address)
        .build(&builder.x509v3_context(None, None))
        .unwrap();
    builder.append_extension(names).unwrap();
    builder.sign(&key, MessageDigest::sha256()).unwrap();
    let certificate = builder.build();
    let path = folder().join("certificate.pem");
    fs::write(&path, certificate.to_pem().unwrap()).unwrap();
    let mut acceptor = SslAcceptor::mozilla_intermediate_v5(SslMethod::tls()).unwrap();
    acceptor.set_private_key(&key).unwrap();
    acceptor.set_certificate(&certificate).unwrap();
    let acceptor = Arc::new(acceptor.build());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let acceptor = acceptor.clone();
            thread::spawn(move || {
                let mut stream = match acceptor.accept(stream.unwrap()) {
                    Ok(stream) => stream,
                    Err(_) => return,
                };
                let mut buffer = [0; 4096];
                while matches!(stream.read(&mut buffer), Ok(count) if count > 0) {
                    let mut answer = if ending == Ending::Never {
                        format!("HTTP/1.1 200 OK\r\nContent-Length: {LARGE}\r\n\r\n").into_bytes()
                    } else {
                        b"HTTP/1.1 200 OK\r\n\r\n".to_vec()
                    };
                    answer.resize(answer.len() + LARGE, b'x');
                    stream.write_all(&answer).unwrap();
                    if ending == Ending::Announced {
                        let _ = stream.shutdown().map(|state| state == ShutdownResult::Sent);
                    }
                    if ending != Ending::Never {
                        return;
                    }
                }
            });
        }
    });
    (port, path)
}

fn play(host: &str, port: u16, certificates: Option<PathBuf>) -> Measured {
    let mut plan = load(&format!("https://{host}:{port}"));
    plan.bytes = "300000";
    plan.rate = 50.0;
    plan.certificates = certificates;
    plan.play()
}

#[test]
fn verified_server() {
    let (port, path) = start("localhost", "127.0.0.1", Ending::Never);
    for host in ["localhost", "127.0.0.1"] {
        let measured = play(host, port, Some(path.clone()));
        assert_eq!(
            measured.outcome("right"),
            measured.sent(50),
            "{:?}",
            measured.json["failures"]
        );
        assert_eq!(measured.number(&["connects", "count"]), 8.0);
        assert_eq!(measured.number(&["stamps_missing"]), 0.0);
        assert_eq!(measured.number(&["surplus"]), 0.0);
    }
}

#[test]
fn server_with_another_name() {
    let (port, path) = start("example.org", "127.0.0.2", Ending::Never);
    for host in ["localhost", "127.0.0.1"] {
        let measured = play(host, port, Some(path.clone()));
        assert_eq!(measured.outcome("connect"), measured.sent(50));
        assert_eq!(measured.failures("tls"), measured.sent(50));
        let text: &String = measured.json["first_protocol_error"].get().unwrap();
        assert!(text.contains("mismatch"), "{text}");
    }
}

#[test]
fn unknown_certificate() {
    let (port, _) = start("localhost", "127.0.0.1", Ending::Never);
    let measured = play("127.0.0.1", port, None);
    assert_eq!(measured.outcome("connect"), measured.sent(50));
    assert_eq!(measured.failures("tls"), measured.sent(50));
}

#[test]
fn answers_until_close() {
    let (port, path) = start("localhost", "127.0.0.1", Ending::Announced);
    let measured = play("127.0.0.1", port, Some(path));
    assert_eq!(
        measured.outcome("right"),
        measured.sent(50),
        "{:?}",
        measured.json["failures"]
    );
    // Who cuts the connection must not be able to shorten an answer.
    let (port, path) = start("localhost", "127.0.0.1", Ending::Abrupt);
    let measured = play("127.0.0.1", port, Some(path));
    assert_eq!(measured.outcome("right"), 0);
    assert_eq!(measured.failures("truncated"), measured.sent(50));
}

#[test]
fn server_without_tls() {
    let server = common::Server::start_with(
        |stream| matches!(stream.read(&mut [0; 4096]), Ok(count) if count > 0),
        |exchange| exchange.answer(common::HELLO),
    );
    let measured = play("127.0.0.1", server.address.port(), None);
    assert_eq!(measured.outcome("connect"), measured.sent(50));
    assert_eq!(measured.failures("tls"), measured.sent(50));
}
