//! Loads that follow a log.

mod common;

use std::cell::RefCell;
use std::fs;
use std::io::Read;
use std::net::TcpStream;
use std::sync::{Arc, Mutex};

use common::{folder, load, Load, Server};
use metronome::plan::Plan;

thread_local! {
    static ASKED: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Keeps the request line and the headers of a request.
fn read_head(stream: &mut TcpStream) -> bool {
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    while !bytes.ends_with(b"\r\n\r\n") && !bytes.ends_with(b"\r\n\r\nx") {
        match stream.read(&mut buffer) {
            Ok(0) | Err(_) => return false,
            Ok(count) => bytes.extend_from_slice(&buffer[..count]),
        }
    }
    ASKED.with(|asked| *asked.borrow_mut() = String::from_utf8(bytes).unwrap());
    true
}

const KINDS: &str = r#"
    {"method": "POST", "path": "/notes", "body": "x", "answer": {"status": 201}},
    {"method": "GET", "path": "/", "headers": [["X-Of", "all"]]}"#;

fn replay(url: &str, header: &str, entries: &[(u64, u32)]) -> Load {
    let path = folder().join("log");
    let mut bytes = format!("{header}\n").into_bytes();
    for (time, request) in entries {
        bytes.extend_from_slice(&time.to_le_bytes());
        bytes.extend_from_slice(&request.to_le_bytes());
    }
    fs::write(&path, bytes).unwrap();
    let mut plan = load(url);
    plan.kinds = KINDS;
    plan.replay = path.to_str().unwrap().to_string();
    plan.connections = 1;
    plan
}

fn header(entries: usize) -> String {
    format!(
        r#"{{"format": "metronome replay/1", "entries": {entries}, "kinds": ["/a", "other"],
        "requests": [[0, 1, "GET", "/a", 2], [1, 0], [1, 1, "HEAD", "/b?c", 4],
        [1, 1, "GET", "/d", 0]]}}"#
    )
    .replace('\n', "")
}

#[test]
fn each_line_is_sent_once_in_order_when_it_is_due() {
    let asked: Arc<Mutex<Vec<String>>> = Arc::default();
    let texts = asked.clone();
    let server = Server::start_with(read_head, move |exchange| {
        let text = ASKED.with(|asked| asked.borrow().clone());
        let answer: &[u8] = match text.split(' ').nth(1).unwrap() {
            "/notes" => b"HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n",
            "/b?c" => b"HTTP/1.1 404 Not Found\r\nContent-Length: 5\r\n\r\n",
            "/d" => b"HTTP/1.1 304 Not Modified\r\n\r\n",
            // Of /a this is another class than the log's.
            _ if texts.lock().unwrap().len() % 8 == 0 => {
                b"HTTP/1.1 301 Moved\r\nContent-Length: 0\r\n\r\n"
            }
            _ => common::HELLO,
        };
        texts.lock().unwrap().push(text);
        exchange.answer(answer)
    });
    // Of each four entries two are due at once.
    let due = |number: u64| number / 2 * 5_000_000 + number % 4 / 3;
    let entries: Vec<(u64, u32)> = (0..200)
        .map(|number| (due(number), number as u32 % 4))
        .collect();
    let measured = replay(&server.url(), &header(200), &entries).play();
    let lines: Vec<String> = asked
        .lock()
        .unwrap()
        .iter()
        .map(|text| text.lines().next().unwrap().to_string())
        .collect();
    let cycle = ["GET /a", "POST /notes", "HEAD /b?c", "GET /d"];
    let sent = measured.sent(200) as usize;
    assert_eq!(lines.len(), sent);
    for (number, line) in lines.iter().enumerate() {
        assert_eq!(*line, format!("{} HTTP/1.1", cycle[number % 4]));
    }
    for text in asked.lock().unwrap().iter() {
        let of_log = !text.starts_with("POST");
        assert_eq!(text.contains("X-Of: all"), of_log, "{text}");
        assert_eq!(text.contains("Content-Length"), !of_log, "{text}");
    }
    assert_eq!(measured.rows.len(), sent);
    for (row, (due, request)) in measured.rows.iter().zip(&entries) {
        assert_eq!(row.due, (due + 50) / 100 * 100);
        assert_eq!(row.kind, u64::from(*request > 0));
        let wrong = *request == 0 && row.status == 301;
        assert_eq!(row.outcome, if wrong { 2 } else { 0 }, "{row:?}");
    }
    assert_eq!(measured.outcome("status") as usize, sent.div_ceil(8));
    let kinds: &Vec<tinyjson::JsonValue> = measured.json["kinds"].get().unwrap();
    let weights: Vec<f64> = kinds
        .iter()
        .map(|kind| *kind["weight"].get().unwrap())
        .collect();
    assert_eq!(weights, [50.0, 150.0]);
}

#[test]
fn a_shorter_load_is_the_beginning_of_the_log() {
    let server = Server::start(|exchange| exchange.answer(common::HELLO));
    let entries: Vec<(u64, u32)> = (0..200).map(|number| (number * 5_000_000, 0)).collect();
    let mut plan = replay(&server.url(), &header(200), &entries);
    plan.duration_s = 0.25;
    let sent = plan.play().sent(50);
    assert_eq!(server.requests(), sent);
}

#[test]
fn a_replay_that_cannot_be_is_refused() {
    let head = header(2);
    let cases = [
        (
            head.replace("replay/1", "replay/2"),
            0,
            "its first line is not of",
        ),
        (
            head.replace("\"/d\", 0", "\"/d\", 5"),
            0,
            "its first line is not of",
        ),
        (
            head.replace("[1, 0]", "[2, 0]"),
            0,
            "its first line is not of",
        ),
        (
            head.replace("\"entries\": 2", "\"entries\": 3"),
            0,
            "it cannot be read: ",
        ),
        (head.clone(), 9, "entry 1 has no request 9"),
        (
            head.replace("[1, 0]", "[1, 2]"),
            0,
            "request 1 is like no entry of kinds",
        ),
        (
            head.replace("[0, 1, \"GET\"", "[0, 0, \"GET\""),
            0,
            "request 0 has a body, or a malformed method or path",
        ),
        (
            head.replace("/a\", 2", "/a b\", 2"),
            0,
            "request 0 has a body, or a malformed",
        ),
    ];
    let refusal = |header: &str, entries: &[(u64, u32)]| {
        let plan = replay("http://127.0.0.1:1", header, entries);
        Plan::parse(&plan.plan()).err().unwrap()
    };
    for (header, request, error) in cases {
        let refused = refusal(&header, &[(0, 0), (5, request)]);
        assert!(refused.starts_with("schedule.replay"), "{refused}");
        assert!(refused.contains(error), "{refused}");
    }
    assert!(refusal(&head, &[(5, 0), (4, 0)]).ends_with("entry 1 is due before the last"));
    let late = [(2_000_000_000, 0), (2_000_000_000, 0)];
    assert!(refusal(&head, &late).ends_with("nothing in it is due before duration_s"));
}
