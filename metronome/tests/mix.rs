//! Loads of several kinds of request.

mod common;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::io::Read;
use std::net::TcpStream;
use std::sync::{Arc, Mutex};

use common::{load, pause, Server};
use metronome::mix::Mix;
use metronome::plan::Plan;

const KINDS: &str = r#"
    {"name": "short", "weight": 14, "method": "GET", "path": "/a", "answer": {"bytes": 5}},
    {"name": "long", "weight": 5, "method": "GET", "path": "/b", "answer": {"bytes": 11}},
    {"name": "write", "weight": 1, "method": "POST", "path": "/c", "body": "x",
     "answer": {"status": 201}}"#;

thread_local! {
    /// The letter of the path of a connection's request.
    static ASKED: Cell<u8> = const { Cell::new(0) };
}

fn read_path(stream: &mut TcpStream) -> bool {
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    while !bytes.ends_with(b"\r\n\r\n") && !bytes.ends_with(b"\r\n\r\nx") {
        match stream.read(&mut buffer) {
            Ok(0) | Err(_) => return false,
            Ok(count) => bytes.extend_from_slice(&buffer[..count]),
        }
    }
    let slash = bytes.iter().position(|&byte| byte == b'/').unwrap();
    ASKED.with(|asked| asked.set(bytes[slash + 1]));
    true
}

#[test]
fn each_block_has_the_weights_and_the_seed_decides_their_order() {
    let weights = [70, 25, 5];
    let order = |seed| -> Vec<usize> {
        let mix = Mix::new(&weights, seed, 100_050);
        (0..100_050).map(|request| mix.request(request)).collect()
    };
    let kinds = order(7);
    assert_eq!(kinds, order(7));
    assert_ne!(kinds, order(8));
    for block in kinds[..100_000].chunks(100) {
        for (kind, weight) in weights.iter().enumerate() {
            let count = block.iter().filter(|&&other| other == kind).count() as u64;
            assert_eq!(count, *weight);
        }
    }
    // Each place of a block has a kind as often as chance has it: 250 of 1000, deviation 14.
    for place in 0..100 {
        let at = kinds[..100_000].iter().skip(place).step_by(100);
        let count = at.filter(|&&kind| kind == 1).count();
        assert!((180..320).contains(&count), "{place} {count}");
    }
    let mix = Mix::new(&weights, 7, 100_050);
    assert_eq!(mix.counts(3, 100_000), [70_000, 25_000, 5_000]);
}

#[test]
fn each_kind_has_its_request_and_its_right_answer() {
    let asked: Arc<Mutex<BTreeMap<u8, u64>>> = Arc::default();
    let counts = asked.clone();
    let server = Server::start_with(read_path, move |exchange| {
        let letter = ASKED.with(Cell::get);
        *counts.lock().unwrap().entry(letter).or_insert(0) += 1;
        if letter == b'b' {
            pause(5);
        }
        let answer: &[u8] = match letter {
            b'a' => b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
            // 11 bytes would be right.
            b'b' => b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
            _ => b"HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n",
        };
        exchange.answer(answer)
    });
    for further in ["", r#", "arrivals": {"smoothness": 1, "seed": 3}"#] {
        asked.lock().unwrap().clear();
        let mut plan = load(&server.url());
        plan.kinds = KINDS;
        let turns = format!(r#", "mix_seed": 3{further}"#);
        plan.turns = Box::leak(turns.into_boxed_str());
        let measured = plan.play();
        let sent = measured.sent(400);
        assert_eq!(measured.rows.len() as u64, sent);
        for (letter, count) in asked.lock().unwrap().iter() {
            let kind = u64::from(letter - b'a');
            let rows = measured.rows.iter().filter(|row| row.kind == kind);
            assert_eq!(rows.count() as u64, *count);
        }
        for block in measured.rows.chunks_exact(20) {
            let kind = |number| block.iter().filter(|row| row.kind == number).count();
            assert_eq!((kind(0), kind(1), kind(2)), (14, 5, 1));
        }
        for row in &measured.rows {
            assert_eq!(row.outcome, u64::from(row.kind == 1), "{row:?}");
            assert_eq!(row.status, if row.kind == 2 { 201 } else { 200 });
            assert!(row.kind != 1 || row.last - row.sent >= 5_000_000);
        }
        let kinds: &Vec<tinyjson::JsonValue> = measured.json["kinds"].get().unwrap();
        let scheduled = |kind: &tinyjson::JsonValue| *kind["scheduled"].get::<f64>().unwrap();
        let scheduled: Vec<f64> = kinds.iter().map(scheduled).collect();
        assert_eq!(scheduled, [280.0, 100.0, 20.0]);
    }
}

#[test]
fn the_lanes_of_a_closed_loop_have_the_weights() {
    let answers = |counts: Arc<Mutex<BTreeMap<u8, u64>>>| {
        Server::start_with(read_path, move |exchange| {
            let letter = ASKED.with(Cell::get);
            *counts.lock().unwrap().entry(letter).or_insert(0) += 1;
            exchange.answer(match letter {
                b'a' => b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
                b'b' => b"HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\nhello world",
                _ => b"HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n".as_slice(),
            })
        })
    };
    let asked: [Arc<Mutex<BTreeMap<u8, u64>>>; 2] = Default::default();
    let servers = asked.clone().map(answers);
    let mut plan = load("");
    plan.lanes = ["base", "head"]
        .into_iter()
        .zip(servers.iter().map(Server::url))
        .collect();
    plan.kinds = KINDS;
    plan.turns = r#", "slice_s": 0.1, "mix_seed": 3"#;
    plan.closed = true;
    for (lane, asked) in plan.play_lanes().iter().zip(&asked) {
        let asked: Vec<u64> = asked.lock().unwrap().values().copied().collect();
        let kinds: &Vec<tinyjson::JsonValue> = lane.json["kinds"].get().unwrap();
        let sent = |kind: &tinyjson::JsonValue| *kind["scheduled"].get::<f64>().unwrap() as u64;
        assert_eq!(kinds.iter().map(sent).collect::<Vec<u64>>(), asked);
        let sum: u64 = asked.iter().sum();
        assert_eq!(lane.outcome("right"), sum);
        assert!(sum > 200);
        for (count, weight) in asked.iter().zip([14, 5, 1]) {
            assert!(count.abs_diff(sum / 20 * weight) <= weight, "{asked:?}");
        }
    }
    // It begins again at its end.
    let mix = Mix::new(&[14, 5, 1], 3, 40);
    assert!((0..40).all(|place| mix.request(place) == mix.request(place + 80)));
}

#[test]
fn a_mix_that_cannot_be_is_refused() {
    let mut right = load("http://127.0.0.1:1");
    right.kinds = KINDS;
    right.turns = r#", "mix_seed": 3"#;
    let text = right.plan();
    let cases = [
        (
            text.replace(r#""weight": 1,"#, r#""weight": 0,"#),
            "kinds[2].weight is 0; it must be a number from 1 to 1000",
        ),
        (
            text.replace(r#""weight": 14"#, r#""weight": 999"#),
            "kinds have weights of 1005 together; they must be at most 1000",
        ),
        (
            text.replace(r#""keep_requests": true"#, r#""keep_requests": false"#),
            "kinds has 3 entries; it must have 1 unless a row is kept for each request",
        ),
        (
            text.replace(r#", "mix_seed": 3"#, ""),
            "schedule.mix_seed is missing",
        ),
        (
            text.replace(r#""bytes": 11"#, r#""bytes": -1"#),
            "kinds[1].answer.bytes is -1",
        ),
    ];
    for (plan, error) in cases {
        let refusal = Plan::parse(&plan).err().unwrap();
        assert!(refusal.starts_with(error), "{refusal}");
    }
}
