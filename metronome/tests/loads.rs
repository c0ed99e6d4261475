//! Loads offered to servers whose truth is known.

mod common;

use common::{call, load, pause, Measured, Server, HELLO};
use metronome::arrivals::Arrivals;
use metronome::columns::take_varint;
use metronome::schedule::Rate;
use metronome::sys::allowed_cpus;
use std::io::Read;
use std::net::TcpListener;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Arc;
use std::thread;
use std::time::Instant;

fn constant() -> Server {
    Server::start(|exchange| exchange.answer(HELLO))
}

/// How many requests were sent, none before it was due, and each is in the rows once.
fn whole(measured: &Measured, scheduled: u64) -> u64 {
    let sent = measured.sent(scheduled);
    assert_eq!(measured.rows.len() as u64, sent);
    for row in &measured.rows {
        assert!(row.due <= row.sent && row.sent <= row.first);
        assert!(row.first <= row.last && row.last <= row.read);
        assert!(row.pacing <= row.sent - row.due + 100);
        assert!(row.added <= row.latency() + 100);
    }
    sent
}

/// How many of so many requests have one of the places in each 20.
fn in_twenties(sent: u64, places: &[u64]) -> u64 {
    (0..sent)
        .filter(|number| places.contains(&(number % 20)))
        .count() as u64
}

#[test]
fn constant_server() {
    let server = constant();
    let mut plan = load(&server.url());
    plan.expected = Some(b"hello");
    plan.bytes = "5";
    let measured = plan.play();
    let sent = whole(&measured, 400);
    assert_eq!(measured.outcome("right"), sent);
    assert_eq!(server.requests(), sent);
    measured.agrees_with(&server);
    assert_eq!(measured.number(&["connects", "count"]), 8.0);
    let (counted, by_latency) = (
        measured.number(&["under_way", "counted"]),
        measured.number(&["under_way", "by_latency"]),
    );
    assert!((counted - by_latency).abs() <= by_latency * 0.05 + 0.1);
}

#[test]
fn slow_server() {
    let server = Server::start(|exchange| {
        pause(20);
        exchange.answer(HELLO)
    });
    let mut plan = load(&server.url());
    plan.connections = 40;
    let measured = plan.play();
    let sent = whole(&measured, 400);
    assert_eq!(measured.outcome("right"), sent);
    measured.agrees_with(&server);
    assert!(measured.rows.iter().all(|row| row.latency() >= 20_000_000));
}

/// A server that stops to answer between two times after its first request.
fn stall(from_ms: u64, until_ms: u64) -> (Server, Measured) {
    let begin: Arc<AtomicU64> = Arc::default();
    let server = Server::start(move |exchange| {
        let now = common::wall_clock();
        let _ = begin.compare_exchange(0, now, Ordering::SeqCst, Ordering::SeqCst);
        let since = (now - begin.load(Ordering::SeqCst)) / 1_000_000;
        if (from_ms..until_ms).contains(&since) {
            pause(until_ms - since);
        }
        exchange.answer(HELLO)
    });
    let measured = load(&server.url()).play();
    assert_eq!(measured.outcome("right"), measured.number(&["sent"]) as u64);
    measured.agrees_with(&server);
    // The server's clock starts with its first request, so after due time 0.
    for row in &measured.rows {
        let due = row.due / 1_000_000;
        if due > from_ms + 100 && due < until_ms - 50 {
            assert!(row.latency() >= (until_ms - due - 5) * 1_000_000, "{row:?}");
        }
    }
    (server, measured)
}

#[test]
fn stall_in_the_middle() {
    let (_, measured) = stall(300, 600);
    whole(&measured, 400);
    // The wait is the server's.
    let waited = measured
        .rows
        .iter()
        .filter(|row| row.latency() > 100_000_000);
    let (count, own) = waited.fold((0, 0), |(count, own), row| {
        (count + 1, own + u64::from(row.added > row.latency() / 2))
    });
    assert!(count >= 50, "{count}");
    assert!(own * 4 <= count, "{own} of {count}");
    // Nor is the shape of what was sent the generator's fault.
    assert!(measured.number(&["shape", "gap_error_us", "p99"]) < 20_000.0);
}

#[test]
fn stall_at_the_end() {
    let (_, measured) = stall(800, 1300);
    // All 8 connections wait until after the end, so the last requests are never sent.
    assert!(measured.number(&["unsent"]) >= 20.0);
    assert!(measured.number(&["unsent_own"]) <= measured.number(&["unsent"]) / 2.0);
    assert!(measured.rows.iter().any(|row| row.latency() > 400_000_000));
}

#[test]
fn too_few_connections() {
    let server = Server::start(|exchange| {
        pause(20);
        exchange.answer(HELLO)
    });
    let mut plan = load(&server.url());
    plan.connections = 2;
    let measured = plan.play();
    assert!(measured.number(&["unsent"]) >= 250.0);
    measured.agrees_with(&server);
    let mut latencies: Vec<u64> = measured.rows.iter().map(|row| row.latency()).collect();
    let mut added: Vec<u64> = measured.rows.iter().map(|row| row.added).collect();
    latencies.sort_unstable();
    added.sort_unstable();
    let middle = measured.rows.len() / 2;
    assert!(added[middle] * 4 < latencies[middle]);
}

#[test]
fn errors_and_wrong_bodies() {
    let server = Server::start(|exchange| match exchange.number % 20 {
        3 => exchange.answer(b"HTTP/1.1 500 Oh\r\nContent-Length: 0\r\n\r\n"),
        7 => exchange.answer(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhallo"),
        9 => exchange.answer(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nhell"),
        _ => exchange.answer(HELLO),
    });
    let mut plan = load(&server.url());
    plan.expected = Some(b"hello");
    let measured = plan.play();
    let sent = whole(&measured, 400);
    let status = in_twenties(sent, &[3]);
    assert_eq!(measured.outcome("status"), status);
    assert_eq!(measured.outcome("body"), in_twenties(sent, &[7, 9]));
    assert_eq!(
        measured.outcome("right"),
        sent - in_twenties(sent, &[3, 7, 9])
    );
    assert_eq!(measured.number(&["statuses", "500"]) as u64, status);
    assert_eq!(measured.number(&["connects", "count"]), 8.0);
    measured.agrees_with(&server);
    let shorter = measured.rows.iter().filter(|row| row.bytes == 4).count();
    assert_eq!(shorter as u64, in_twenties(sent, &[9]));
}

#[test]
fn resets_and_truncations() {
    let server = Server::start(|exchange| match exchange.number % 20 {
        7 => {
            exchange.write(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello");
            false
        }
        9 => {
            exchange.write(b"SMTP");
            true
        }
        11 => false,
        _ => exchange.answer(HELLO),
    });
    let measured = load(&server.url()).play();
    let sent = whole(&measured, 400);
    let failed = in_twenties(sent, &[7, 9, 11]);
    assert_eq!(measured.outcome("right"), sent - failed);
    assert_eq!(measured.outcome("read"), failed);
    for (failure, place) in [("truncated", 7), ("protocol", 9), ("closed", 11)] {
        assert_eq!(measured.failures(failure), in_twenties(sent, &[place]));
    }
    let text: &String = measured.json["first_protocol_error"].get().unwrap();
    assert!(text.contains("SMTP"), "{text}");
    assert!(measured.number(&["reopened"]) >= 50.0);
}

#[test]
fn reset_with_unread_request() {
    // The server looks at the request without reading it and closes.
    let server = Server::start_with(
        |stream| {
            let mut peeked = [0; 1];
            matches!(stream.peek(&mut peeked), Ok(1))
        },
        |_| false,
    );
    let mut plan = load(&server.url());
    plan.rate = 100.0;
    let measured = plan.play();
    let sent = whole(&measured, 100);
    assert_eq!(measured.failures("reset"), sent);
    assert_eq!(measured.outcome("read"), sent);
}

#[test]
fn refused() {
    let address = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    for keepalive in [true, false] {
        let mut plan = load(&format!("http://{address}"));
        plan.keepalive = keepalive;
        plan.duration_s = 0.25;
        let measured = plan.play();
        let sent = whole(&measured, 100);
        assert_eq!(measured.outcome("connect"), sent);
        assert_eq!(measured.failures("refused"), sent);
    }
}

#[test]
fn framings() {
    let chunked: &[&[u8]] = &[
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </x>\r\n",
        b"\r\nHTTP/1.1 200 OK\r\nTransfer-Enc",
        b"oding: chunked\r\n\r\n3;a=b\r\nhel\r",
        b"\n2\r\nlo\r\n0\r\nTrailer: x\r\n\r",
    ];
    let server = Server::start(move |exchange| match exchange.number % 3 {
        0 => {
            for piece in chunked {
                exchange.write(piece);
                pause(1);
            }
            exchange.answer(b"\n")
        }
        1 => {
            exchange
                .answer(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello");
            false
        }
        _ => {
            // Without a length: until the connection closes.
            exchange.answer(b"HTTP/1.1 200 OK\r\n\r\nhello");
            false
        }
    });
    let mut plan = load(&server.url());
    plan.rate = 300.0;
    plan.expected = Some(b"hello");
    let measured = plan.play();
    let sent = whole(&measured, 300);
    assert_eq!(
        measured.outcome("right"),
        sent,
        "{:?}",
        measured.json["failures"]
    );
    assert_eq!(measured.number(&["surplus"]), 0.0);
    assert!(measured.rows.iter().all(|row| row.bytes == 5));
}

#[test]
fn heads_without_bodies() {
    let server = Server::start(|exchange| {
        exchange.answer(b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n")
    });
    let mut plan = load(&server.url());
    plan.method = "HEAD";
    plan.bytes = "500";
    plan.duration_s = 0.25;
    let measured = plan.play();
    assert_eq!(measured.outcome("right"), measured.sent(100));
    assert_eq!(measured.number(&["connects", "count"]), 8.0);
    let server = Server::start(|exchange| exchange.answer(b"HTTP/1.1 204 No Content\r\n\r\n"));
    let mut plan = load(&server.url());
    plan.status = "null";
    plan.bytes = "0";
    plan.duration_s = 0.25;
    let measured = plan.play();
    assert_eq!(measured.outcome("right"), measured.sent(100));
    assert_eq!(measured.number(&["connects", "count"]), 8.0);
}

#[test]
fn surplus() {
    let server = Server::start(|exchange| {
        exchange.answer(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello, world")
    });
    let mut plan = load(&server.url());
    plan.duration_s = 0.25;
    let measured = plan.play();
    let sent = measured.sent(100);
    assert_eq!(measured.outcome("right"), sent);
    assert_eq!(measured.number(&["surplus"]) as u64, sent);
}

#[test]
fn connection_for_each_request() {
    let server = constant();
    let mut plan = load(&server.url());
    plan.keepalive = false;
    let measured = plan.play();
    let sent = whole(&measured, 400);
    assert_eq!(measured.outcome("right"), sent);
    assert_eq!(measured.number(&["connects", "count"]) as u64, sent);
    assert_eq!(server.connections.load(Ordering::SeqCst), sent);
    measured.agrees_with(&server);
}

#[test]
fn early_answer_to_a_large_body() {
    let server = Server::start_with(
        |stream| {
            let mut buffer = [0; 512];
            matches!(stream.read(&mut buffer), Ok(count) if count > 0)
        },
        |exchange| {
            exchange.answer(b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n");
            // The rest of the request stays unread while the client has the answer.
            pause(200);
            false
        },
    );
    let mut plan = load(&server.url());
    plan.method = "POST";
    // More than the buffers of both sockets take; an argument has at most 128 kB.
    plan.body = "x".repeat(120_000);
    plan.status = "413";
    plan.rate = 20.0;
    plan.connections = 20;
    let measured = plan.play();
    let sent = whole(&measured, 20);
    assert_eq!(measured.outcome("right"), sent);
}

#[test]
fn body_larger_than_all_buffers() {
    // One server reads all of a request, one answers after its beginning and reads no more.
    for reads in [true, false] {
        let server = Server::start_with(
            |stream| {
                let mut buffer = [0; 512];
                matches!(stream.read(&mut buffer), Ok(count) if count > 0)
            },
            move |exchange| {
                let mut buffer = [0; 65_536];
                while reads && !buffer.starts_with(b"!") {
                    match exchange.stream.read(&mut buffer[1..]) {
                        Ok(0) | Err(_) => return false,
                        // The body ends with an exclamation mark.
                        Ok(count) if buffer[count] == b'!' => buffer[0] = b'!',
                        Ok(_) => {}
                    }
                }
                exchange.answer(HELLO) && reads
            },
        );
        let mut plan = load(&server.url());
        plan.method = "POST";
        plan.body = "x".to_string();
        plan.rate = 20.0;
        let measured = plan.play_changed(|plan| {
            let body = vec![b'x'; 20_000_000];
            let head = String::from_utf8(plan.lanes[0].requests[0].clone()).unwrap();
            let request = &mut plan.lanes[0].requests[0];
            *request = head
                .replace(
                    "Content-Length: 1\r\n\r\nx",
                    "Content-Length: 20000001\r\n\r\n",
                )
                .into_bytes();
            request.extend_from_slice(&body);
            request.push(b'!');
        });
        // The server closes after an early answer, and its reset may be there before the answer.
        assert!(measured.number(&["sent"]) >= 3.0);
        let sent = measured.number(&["sent"]) as u64;
        if reads {
            assert_eq!(measured.outcome("right"), sent);
        } else {
            let lost = measured.failures("reset") + measured.failures("write");
            assert_eq!(measured.outcome("right") + lost, sent);
            assert!(measured.outcome("right") > 0);
        }
    }
}

#[test]
fn timeouts() {
    let server = Server::start(|_| {
        pause(5000);
        false
    });
    let mut plan = load(&server.url());
    plan.timeout_s = 0.2;
    plan.rate = 40.0;
    plan.connections = 20;
    let measured = plan.play();
    let sent = whole(&measured, 40);
    assert_eq!(measured.outcome("timeout"), sent);
    assert_eq!(measured.failures("timeout"), sent);
    for row in &measured.rows {
        assert!(row.last - row.sent >= 200_000_000);
    }
}

#[test]
fn two_threads_share_a_schedule() {
    let server = constant();
    let mut plan = load(&server.url());
    plan.threads = allowed_cpus().len().min(2);
    plan.rate = 2000.0;
    let measured = plan.play();
    let sent = whole(&measured, 2000);
    assert_eq!(measured.outcome("right"), sent);
    assert_eq!(server.requests(), sent);
    measured.agrees_with(&server);
}

#[test]
fn poisson_arrivals() {
    let server = constant();
    let mut plan = load(&server.url());
    plan.threads = allowed_cpus().len().min(2);
    plan.rate = 1000.0;
    plan.connections = 64;
    plan.turns = r#", "arrivals": {"smoothness": 1, "seed": 5}"#;
    let measured = plan.play();
    let sent = measured.sent(1000);
    assert_eq!(measured.outcome("right"), sent);
    let rate = Rate::new(1000.0, 1.0);
    let poisson = Arrivals::Gamma {
        smoothness: 1.0,
        seed: 5,
    };
    // The file has the due times that the seed gives.
    let dues = poisson.times(&rate, &[]).unwrap();
    let rounded = dues.iter().map(|due| (due + 50) / 100 * 100);
    assert!(rounded
        .take(sent as usize)
        .eq(measured.rows.iter().map(|row| row.due)));
    assert!(measured.rows.iter().all(|row| row.sent >= row.due));
    let error = measured.number(&["shape", "gap_error_us", "p50"]);
    assert!((0.0..1000.0).contains(&error), "{error}");
    measured.agrees_with(&server);
}

#[test]
fn stopped_generator() {
    let server = Server::start(|exchange| {
        pause(30);
        exchange.answer(HELLO)
    });
    let mut plan = load(&server.url());
    plan.duration_s = 1.5;
    plan.connections = 30;
    let running = plan.start();
    let signal = |name: &str| {
        let command = format!("kill -{name} {}", running.child.id());
        assert!(Command::new("sh")
            .arg("-c")
            .arg(command)
            .status()
            .unwrap()
            .success());
    };
    while server.requests() < 100 {
        pause(5);
    }
    signal("STOP");
    pause(500);
    signal("CONT");
    let measured = running.finish();
    assert_eq!(measured.outcome("right"), measured.number(&["sent"]) as u64);
    // The kernel had the answers while the process was stopped, and so their latencies are right.
    measured.agrees_with(&server);
    let late = measured
        .rows
        .iter()
        .filter(|row| row.read - row.last > 200_000_000);
    assert!(late.count() >= 1);
    assert!(measured.number(&["gaps", "causes", "outside", "longest_s"]) >= 0.4);
    let added = measured.rows.iter().map(|row| row.added).max().unwrap();
    let pacing = measured.rows.iter().map(|row| row.pacing).max().unwrap();
    assert!(added >= 400_000_000, "{added}");
    assert!(pacing >= 400_000_000, "{pacing}");
    // As it was late by hundreds of requests, the shape was not kept.
    assert!(measured.number(&["shape", "gap_error_us", "p99"]) >= 1000.0);
}

#[test]
fn histograms_by_second() {
    let server = Server::start(|exchange| match exchange.number % 10 {
        3 => exchange.answer(b"HTTP/1.1 500 Oh\r\nContent-Length: 0\r\n\r\n"),
        7 => false,
        _ => exchange.answer(HELLO),
    });
    let mut plan = load(&server.url());
    plan.keep_requests = false;
    plan.duration_s = 1.5;
    let measured = plan.play();
    assert!(measured.rows.is_empty());
    let end = measured
        .seconds
        .iter()
        .position(|&byte| byte == b'\n')
        .unwrap();
    let header: tinyjson::JsonValue = std::str::from_utf8(&measured.seconds[..end])
        .unwrap()
        .parse()
        .unwrap();
    assert_eq!(header["seconds"].get::<f64>(), Some(&2.0));
    let mut rest = &measured.seconds[end + 1..];
    let mut number = || take_varint(&mut rest).unwrap();
    let mut outcomes = [0; 7];
    let mut sent = 0;
    for due in [400, 200] {
        assert_eq!(number(), due);
        let due = due - number();
        sent += due;
        let counts: Vec<u64> = (0..7).map(|_| number()).collect();
        assert_eq!(counts.iter().sum::<u64>(), due);
        let answers: u64 = counts[..3].iter().sum();
        let (right, all) = (number(), number());
        assert!(right <= counts[0] && all <= answers && right <= all);
        let service = number();
        assert!(service >= answers);
        let sums: Vec<u64> = (0..5)
            .map(|_| {
                (0..number())
                    .map(|_| {
                        number();
                        number()
                    })
                    .sum()
            })
            .collect();
        assert_eq!(
            sums,
            [counts[0], counts[1] + counts[2], answers, due, answers]
        );
        for (total, count) in outcomes.iter_mut().zip(counts) {
            *total += count;
        }
    }
    assert_eq!(number(), 2);
    assert_eq!([number(), number(), number()], [200, 5, outcomes[0]]);
    number();
    assert_eq!([number(), number(), number()], [500, 0, outcomes[2]]);
    number();
    assert!(rest.is_empty());
    assert_eq!(sent, measured.sent(600));
    let tenths = |place| (0..sent).filter(|number| number % 10 == place).count() as u64;
    let (status, read) = (tenths(3), tenths(7));
    assert_eq!(outcomes, [sent - status - read, 0, status, 0, read, 0, 0]);
}

#[test]
fn closing_server_does_not_keep_the_thread_busy() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let accepted: Arc<AtomicU64> = Arc::default();
    let over: Arc<AtomicBool> = Arc::default();
    let (count, end) = (accepted.clone(), over.clone());
    thread::spawn(move || {
        for stream in listener.incoming() {
            drop(stream);
            count.fetch_add(1, Ordering::SeqCst);
            if end.load(Ordering::SeqCst) {
                return;
            }
        }
    });
    let mut plan = load(&format!("http://{address}"));
    plan.rate = 50.0;
    let measured = plan.play();
    over.store(true, Ordering::SeqCst);
    whole(&measured, 50);
    assert_eq!(measured.outcome("right"), 0);
    assert!(accepted.load(Ordering::SeqCst) < 500);
}

#[test]
fn hostile_answers_end_in_time() {
    let megabyte = {
        let mut bytes = b"HTTP/1.1 200 OK\r\n".to_vec();
        while bytes.len() < 1_000_000 {
            bytes.extend_from_slice(b"X-Header: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\r\n");
        }
        bytes
    };
    let server = Server::start(move |exchange| {
        let answers: [&[u8]; 8] = [
            &megabyte,
            b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\nhello",
            b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
            b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\nhello",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nhello",
            b"HTTP/1.1 101 Switching Protocols\r\n\r\n",
            b"\x00\xff\xfe\n\r\n\r\n",
        ];
        exchange.write(answers[(exchange.number % 8) as usize]);
        true
    });
    let mut plan = load(&server.url());
    plan.rate = 160.0;
    plan.timeout_s = 5.0;
    let began = Instant::now();
    let measured = plan.play();
    let sent = whole(&measured, 160);
    assert_eq!(measured.outcome("read"), sent);
    assert_eq!(
        measured.failures("protocol"),
        sent,
        "{:?}",
        measured.json["failures"]
    );
    assert!(began.elapsed().as_secs() < 5);
}

#[test]
fn calls() {
    let version = call(&["--version"]);
    assert_eq!(version.stdout, b"metronome 0.1.0\n");
    let plan = load("http://127.0.0.1:1").plan();
    let wrong = [
        (plan.replace("400", "0"), "rate"),
        (
            plan.replace("\"threads\": 1", "\"threads\": 99999"),
            "threads",
        ),
        (
            plan.replace("\"connections\": 8", "\"connections\": 0"),
            "connections",
        ),
        (plan.replace("*/*", "a\\r\\nb"), "headers"),
        (plan.replace("Accept", "Acc ept"), "headers"),
        (plan.replace("\"/x\"", "\"x\""), "path"),
        (plan.replace("http:", "ftp:"), "url"),
        (plan.replace(":1\"", ":1/path\""), "url"),
        (plan.replace(":1\"", ":99999\""), "url"),
        (plan.replace("\"measured\"", "\"../measured\""), "output"),
        (plan.replace("timeout_s", "timeout"), "timeout"),
        (plan.replace("plan/1", "plan/2"), "format"),
        (plan.replace("{\"status\"", "{\"state\""), "state"),
        (
            plan.replace("\"body\": null", "\"body\": \"absent\""),
            "absent",
        ),
        ("{".to_string(), "JSON"),
        ("--help".to_string(), "call"),
    ];
    for (plan, word) in wrong {
        let output = call(&[&plan]);
        let message = String::from_utf8_lossy(&output.stderr).to_string();
        assert_eq!(output.status.code(), Some(2), "{plan}");
        assert!(message.contains(word), "{message}");
        assert_eq!(message.lines().count(), 1, "{message}");
    }
    assert_eq!(call(&[]).status.code(), Some(2));
    assert_eq!(call(&["{}", "{}"]).status.code(), Some(2));
    let nowhere = load("http://name.invalid").plan();
    assert_eq!(call(&[&nowhere]).status.code(), Some(1));
}

/// How long requests that were never sent had waited at the end is that of their own due times, which
/// on a ramp are not a mean gap apart.
#[test]
fn unsent_on_a_ramp() {
    let server = Server::start(|exchange| {
        pause(20);
        exchange.answer(HELLO)
    });
    let mut plan = load(&server.url());
    plan.connections = 2;
    plan.turns = r#", "ramp": [[0, 790], [1, 10]]"#;
    let running = plan.start();
    let dues = metronome::plan::Plan::parse(&plan.plan()).unwrap().dues(0);
    let measured = running.finish();
    let sent = measured.number(&["sent"]) as u64;
    let own = measured.number(&["unsent_own"]) as u64;
    let waits = waits(&measured, &["unsent_waits_us"]);
    let expected: Vec<u64> = (sent + own..400)
        .rev()
        .map(|request| (1_000_000_000 - dues.due(request)) / 1000)
        .collect();
    assert!(expected.len() >= 250);
    assert_eq!(waits.len(), expected.len());
    for (wait, expected) in waits.iter().zip(&expected) {
        assert!(wait <= expected && expected - wait <= expected / 200 + 1);
    }
}

/// The waits of a list of pairs, as many of each as it says, ascending.
fn waits(measured: &Measured, keys: &[&str]) -> Vec<u64> {
    let mut value = &measured.json;
    for key in keys {
        value = &value[*key];
    }
    let pairs: &Vec<tinyjson::JsonValue> = value.get().unwrap();
    let number = |pair: &tinyjson::JsonValue, place: usize| *pair[place].get::<f64>().unwrap();
    pairs
        .iter()
        .flat_map(|pair| vec![number(pair, 0) as u64; number(pair, 1) as usize])
        .collect()
}

/// Statuses that are right, such as an expected 404, are no errors, with rows and without.
#[test]
fn an_error_that_is_right() {
    let server = Server::start(|exchange| match exchange.number % 20 {
        3 => exchange.answer(b"HTTP/1.1 500 Oh\r\nContent-Length: 0\r\n\r\n"),
        _ => exchange.answer(b"HTTP/1.1 404 No\r\nContent-Length: 5\r\n\r\nhello"),
    });
    let mut plan = load(&server.url());
    plan.status = "404";
    let measured = plan.play();
    let wrong = measured.outcome("status");
    let sent = measured.number(&["sent"]) as u64;
    // One in 20. A busy machine may stop the generator before its last requests.
    assert_eq!(measured.outcome("right") + wrong, sent);
    assert!(
        wrong > 0 && (20 * wrong).abs_diff(sent) < 20,
        "{wrong} of {sent}"
    );
    let statuses = measured.json["statuses"].stringify().unwrap();
    assert_eq!(statuses, format!(r#"{{"500":{wrong}}}"#));
}

/// What a generator that stopped at the end did not send, though its connections were free, waited for
/// it and not for the server.
#[test]
fn generator_stopped_to_the_end() {
    let server = constant();
    let mut plan = load(&server.url());
    plan.duration_s = 1.5;
    let running = plan.start();
    let signal = |name: &str| {
        let mut kill = Command::new("kill");
        kill.args([format!("-{name}"), running.child.id().to_string()]);
        assert!(kill.status().unwrap().success());
    };
    while server.requests() < 400 {
        pause(5);
    }
    signal("STOP");
    pause(700);
    signal("CONT");
    let measured = running.finish();
    let unsent = measured.number(&["unsent"]);
    assert!(unsent >= 100.0, "{unsent}");
    assert!(measured.number(&["unsent_own"]) >= unsent - 2.0);
}
