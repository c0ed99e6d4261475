//! Loads of visitors, who carry values from answers into their next requests.

mod common;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::net::TcpStream;
use std::sync::{Arc, Mutex};

use common::{load, Exchange, Load, Measured, Server};
use metronome::plan::Plan;
use metronome::values::{json_value, Kept, Source, Template};
use tinyjson::JsonValue;

const KINDS: &str = r#"
    {"name": "login", "weight": 1, "method": "POST", "path": "/login", "body": "x"},
    {"name": "add", "weight": 2, "method": "POST", "path": "/cart/{token}?all",
     "headers": [["Content-Type", "application/json"], ["X-Token", "{token}"]],
     "body": "{\"token\": \"{token}\", \"note\": \"{note}\"}"}"#;
const STEPS: &str = r#", "think_seed": 3, "session": [
    {"kind": 0, "take": [["token", "$.user.tokens[1]"], ["note", "X-Note"]]},
    {"kind": 1, "think_s": 0.05},
    {"kind": 1, "think_mean_s": 0.05}]"#;
/// Visitors come in the first half.
const RAMP: &str = r#", "ramp": [[0, 1], [1, 1], [1, 0], [2, 0]]"#;

thread_local! {
    static TEXT: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Reads a request with a body of the length that it says.
fn read_text(stream: &mut TcpStream) -> bool {
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let text = String::from_utf8_lossy(&bytes).to_string();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.split("Content-Length: ").nth(1).unwrap();
            let length: usize = length.split("\r\n").next().unwrap().parse().unwrap();
            if body.len() >= length {
                assert_eq!(body.len(), length, "{text}");
                TEXT.with(|kept| *kept.borrow_mut() = text);
                return true;
            }
        }
        match stream.read(&mut buffer) {
            Ok(0) | Err(_) => return false,
            Ok(count) => bytes.extend_from_slice(&buffer[..count]),
        }
    }
}

fn answer(exchange: &mut Exchange, status: &str, fields: &str, body: &str) -> bool {
    let length = body.len();
    let text = format!("HTTP/1.1 {status}\r\n{fields}Content-Length: {length}\r\n\r\n{body}");
    exchange.answer(text.as_bytes())
}

/// Gives tokens and cookies, and refuses requests that have not both of the same visit. It forgets each
/// token whose number `forgets`, and leaves out those that `hides`.
fn shop(forgets: fn(u64) -> bool, hides: fn(u64) -> bool) -> (Server, Arc<Mutex<Vec<u64>>>) {
    let known: Arc<Mutex<BTreeSet<u64>>> = Arc::default();
    let asked: Arc<Mutex<Vec<u64>>> = Arc::default();
    let (counts, counted) = (Mutex::new(0), asked.clone());
    let server = Server::start_with(read_text, move |exchange| {
        let text = TEXT.with(|kept| kept.borrow().clone());
        if text.starts_with("POST /login ") {
            let mut count = counts.lock().unwrap();
            let token = *count;
            *count += 1;
            if !forgets(token) {
                known.lock().unwrap().insert(token);
            }
            if hides(token) {
                return answer(exchange, "200 OK", "", r#"{"user": {"tokens": [0]}}"#);
            }
            let fields =
                format!("Set-Cookie: sid={token}; Path=/; HttpOnly\r\nx-note: say \"{token}\"\r\n");
            let body = format!(r#"{{"user": {{"a": [{{}}, "]"], "tokens": ["x", "t{token}"]}}}}"#);
            return answer(exchange, "200 OK", &fields, &body);
        }
        let token = text["POST /cart/t".len()..]
            .split('?')
            .next()
            .unwrap()
            .to_string();
        let right = format!(
            "\r\nX-Token: t{token}\r\nCookie: sid={token}\r\nContent-Length: {}\r\n\r\n\
             {{\"token\": \"t{token}\", \"note\": \"say \\\"{token}\\\"\"}}",
            34 + 2 * token.len()
        );
        assert!(text.ends_with(&right), "{text} instead of {right}");
        let number = token.parse().unwrap();
        if !known.lock().unwrap().contains(&number) {
            return answer(exchange, "401 Unauthorized", "", "");
        }
        counted.lock().unwrap().push(number);
        let again = format!("Set-Cookie: sid={token}; Path=/cart\r\n");
        answer(exchange, "201 Created", &again, "")
    });
    (server, asked)
}

fn session(server: &Server, threads: usize) -> Load {
    let mut plan = load(&server.url());
    plan.kinds = KINDS;
    plan.turns = Box::leak(format!("{STEPS}{RAMP}").into_boxed_str());
    plan.duration_s = 2.0;
    plan.rate = 100.0;
    plan.connections = 4;
    plan.threads = threads;
    plan
}

fn number(value: &JsonValue) -> f64 {
    *value.get().unwrap()
}

fn visits(measured: &Measured) -> (u64, u64, u64, Vec<[u64; 2]>) {
    let visits = &measured.json["visits"];
    let whole = |key: &str| number(&visits[key]) as u64;
    let broken: &Vec<JsonValue> = visits["broken"].get().unwrap();
    let broken = broken
        .iter()
        .map(|step| [number(&step[0]) as u64, number(&step[1]) as u64]);
    (
        whole("scheduled"),
        whole("started"),
        whole("completed"),
        broken.collect(),
    )
}

#[test]
fn visitors_carry_values_and_cookies_and_think() {
    for threads in [1, 2] {
        let (server, asked) = shop(|_| false, |_| false);
        let measured = session(&server, threads).play();
        assert_eq!(visits(&measured), (200, 200, 200, vec![[0, 0]; 3]));
        assert_eq!(number(&measured.json["scheduled"]), 600.0);
        assert_eq!(number(&measured.json["unsent"]), 0.0);
        let mut asked = asked.lock().unwrap().clone();
        asked.sort_unstable();
        let twice: Vec<u64> = (0..200).flat_map(|token| [token, token]).collect();
        assert_eq!(asked, twice);
        let by_place: BTreeMap<u64, _> = measured.rows.iter().map(|row| (row.place, row)).collect();
        assert_eq!(by_place.len(), 600);
        let mut thought = 0;
        for visit in 0..200 {
            let rows = [0, 1, 2].map(|step| by_place[&(visit * 3 + step)]);
            assert_eq!(rows.map(|row| row.kind), [0, 1, 1]);
            // The first half has all visitors, evenly.
            assert_eq!(rows[0].due, visit * 5_000_000);
            // The file has tenths of microseconds.
            assert!((rows[1].due - rows[0].last).abs_diff(50_000_000) <= 200);
            thought += rows[2].due - rows[1].last;
        }
        // A mean of 200 with an exponential distribution, deviation 3.5 ms.
        assert!(
            (38_000_000..62_000_000).contains(&(thought / 200)),
            "{thought}"
        );
    }
}

#[test]
fn visits_that_break_are_counted_with_their_steps() {
    // Of 200 visits the server forgets 20 and gives 40 others no token.
    let (server, _) = shop(|token| token % 10 == 3, |token| token % 5 == 1);
    let measured = session(&server, 1).play();
    let broken = vec![[0, 40], [20, 0], [0, 0]];
    assert_eq!(visits(&measured), (200, 200, 140, broken));
    assert_eq!(measured.rows.len(), 200 + 160 + 140);
    let wrong = measured.rows.iter().filter(|row| row.outcome == 2);
    assert!(wrong
        .clone()
        .all(|row| row.status == 401 && row.place % 3 == 1));
    assert_eq!(wrong.count(), 20);
    let kinds: &Vec<JsonValue> = measured.json["kinds"].get().unwrap();
    let scheduled: Vec<f64> = kinds
        .iter()
        .map(|kind| number(&kind["scheduled"]))
        .collect();
    assert_eq!(scheduled, [200.0, 300.0]);
}

#[test]
fn visits_that_the_end_cuts_are_neither_completed_nor_broken() {
    let (server, _) = shop(|_| false, |_| false);
    let mut plan = session(&server, 1);
    let steps = STEPS.replace(r#""think_s": 0.05"#, r#""think_s": 0.5"#);
    plan.turns = Box::leak(
        steps
            .replace(r#""think_mean_s": 0.05"#, "\"think_s\": 0")
            .into_boxed_str(),
    );
    plan.duration_s = 1.0;
    let measured = plan.play();
    // Those of the last half second still think.
    let (scheduled, started, completed, broken) = visits(&measured);
    assert_eq!((scheduled, started, broken), (100, 100, vec![[0, 0]; 3]));
    // A machine that stands still when the load ends leaves some more.
    assert!((25..=50).contains(&completed), "{completed}");
    let scheduled = number(&measured.json["scheduled"]) as u64;
    assert!((100 + 2 * completed..=200).contains(&scheduled));
}

#[test]
fn a_value_is_taken_from_its_place() {
    let body = br#" {"a\u0062": {"x": [1, {"y": "}\"]"}, -1.50e3, true, null, "caf\u00e9"], "z": 12345678901234567890}}"#;
    let at = |path: &str| match Source::parse(path) {
        Some(Source::Json(keys)) => json_value(body, &keys),
        other => panic!("{other:?}"),
    };
    assert_eq!(at("$.ab.x[0]").as_deref(), Some("1"));
    assert_eq!(at("$.ab.x[1].y").as_deref(), Some("}\"]"));
    assert_eq!(at("$.ab.x[2]").as_deref(), Some("-1.50e3"));
    assert_eq!(at("$.ab.x[3]").as_deref(), Some("true"));
    assert_eq!(at("$.ab.x[5]").as_deref(), Some("café"));
    assert_eq!(at("$.ab.z").as_deref(), Some("12345678901234567890"));
    for path in [
        "$",
        "$.ab",
        "$.b",
        "$.ab.x[4]",
        "$.ab.x[6]",
        "$.ab.x.y",
        "$[0]",
    ] {
        assert_eq!(at(path), None, "{path}");
    }
    for body in [
        "",
        "{",
        "[\"",
        "{\"ab\"",
        "{\"ab\": \"\\",
        "]",
        "{\"ab\": }",
    ] {
        let keys = match Source::parse("$.ab") {
            Some(Source::Json(keys)) => keys,
            other => panic!("{other:?}"),
        };
        assert_eq!(json_value(body.as_bytes(), &keys), None, "{body}");
    }
    for path in ["$a", "$.", "$.a..b", "$[", "$[x]", "$[-1]"] {
        assert_eq!(Source::parse(path), None, "{path}");
    }
    let header = Source::parse("X-Id").unwrap();
    let mut kept = Kept::of([&header].into_iter());
    for (name, value) in [
        ("x-id", "7"),
        ("SET-COOKIE", "a=b=c; Path=/"),
        ("Set-Cookie", "=no"),
    ] {
        kept.add_header(name, value.as_bytes());
    }
    assert_eq!(kept.value(&header).as_deref(), Some("7"));
    let cookies: Vec<(String, String)> = kept.cookies().collect();
    assert_eq!(cookies, [("a".to_string(), "b=c".to_string())]);
}

#[test]
fn a_value_is_written_as_its_place_asks() {
    let text = |kind: &str, value: &str| {
        let request = format!(
            "POST /a/{{v}}/{{w}} HTTP/1.1\r\nX: {{v}}\r\nContent-Type: {kind}\r\n\
             Content-Length: 3\r\n\r\n{{v}}"
        );
        let template = Template::new(request.as_bytes(), &["v".to_string()]);
        let bytes = template.text(&[value.to_string()], &[])?;
        Some(String::from_utf8(bytes.to_vec()).unwrap())
    };
    for (kind, value, path, header, body) in [
        (
            "application/json",
            "é \"\\\u{1}",
            "%C3%A9%20\"\\%01",
            "",
            "",
        ),
        (
            "application/json",
            "é \"\\",
            "%C3%A9%20\"\\",
            "é \"\\",
            "é \\\"\\\\",
        ),
        (
            "application/x-www-form-urlencoded",
            "a/b c&é",
            "a/b%20c&%C3%A9",
            "a/b c&é",
            "a%2Fb%20c%26%C3%A9",
        ),
        ("text/plain", "a b", "a%20b", "a b", "a b"),
    ] {
        let right = format!(
            "POST /a/{path}/{{w}} HTTP/1.1\r\nX: {header}\r\nContent-Type: {kind}\r\n\
             Content-Length: {}\r\n\r\n{body}",
            body.len()
        );
        // A header cannot have a control character.
        let right = Some(right).filter(|_| !value.contains('\u{1}'));
        assert_eq!(text(kind, value), right);
    }
}

#[test]
fn a_session_that_cannot_be_is_refused() {
    let (server, _) = shop(|_| false, |_| false);
    let text = session(&server, 1).plan();
    let cases = [
        (
            text.replace(r#""think_s": 0.05"#, r#""think_s": -1"#),
            "schedule.session[1].think_s is -1; it must be a number from 0 to 3600",
        ),
        (
            text.replace(r#"{"kind": 0"#, r#"{"kind": 2"#),
            "schedule.session[0].kind is 2; it must be a number from 0 to 1",
        ),
        (
            text.replace("$.user.tokens[1]", "$user"),
            r#"schedule.session[0].take is ["token","$user"]; it must be a list of pairs [name, JSON path or header]"#,
        ),
        (
            text.replace(r#""think_seed": 3, "#, ""),
            "schedule.think_seed is missing",
        ),
        (
            text.replace(r#""keep_requests": true"#, r#""keep_requests": false"#),
            "schedule.session is of 600 requests; a row must be kept of each, of at most 20000000",
        ),
    ];
    for (text, message) in cases {
        assert_eq!(Plan::parse(&text).err().as_deref(), Some(message));
    }
}
