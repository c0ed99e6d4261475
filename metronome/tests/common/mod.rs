//! A small server that logs by its own clock, and loads offered to it by the program itself.
#![allow(dead_code)]

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use metronome::columns::read_rows;
use metronome::plan::Plan;
use metronome::run;
use tinyjson::JsonValue;

pub const HELLO: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

/// Nanoseconds of Unix time.
pub fn wall_clock() -> u64 {
    let time = SystemTime::now().duration_since(UNIX_EPOCH);
    time.expect("after 1970").as_nanos() as u64
}

pub fn pause(milliseconds: u64) {
    thread::sleep(Duration::from_millis(milliseconds));
}

/// One request at the server, and the way to answer it.
pub struct Exchange<'a> {
    pub number: u64,
    pub stream: &'a mut TcpStream,
    log: &'a Mutex<Vec<(u64, u64)>>,
}

impl Exchange<'_> {
    /// Writes the last bytes of the answer, and logs when. Says whether the connection goes on.
    pub fn answer(&mut self, bytes: &[u8]) -> bool {
        let before = wall_clock();
        let written = self.stream.write_all(bytes).is_ok();
        self.log.lock().unwrap().push((before, wall_clock()));
        written
    }

    pub fn write(&mut self, bytes: &[u8]) {
        let _ = self.stream.write_all(bytes);
    }
}

pub struct Server {
    pub address: SocketAddr,
    /// Before and after the write of each answer.
    pub log: Arc<Mutex<Vec<(u64, u64)>>>,
    pub requests: Arc<AtomicU64>,
    pub connections: Arc<AtomicU64>,
}

impl Server {
    /// `handle` answers a request whose head was read, and says whether to read another.
    pub fn start(handle: impl Fn(&mut Exchange) -> bool + Send + Sync + 'static) -> Server {
        Server::start_with(read_request, handle)
    }

    pub fn start_with(
        read: fn(&mut TcpStream) -> bool,
        handle: impl Fn(&mut Exchange) -> bool + Send + Sync + 'static,
    ) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = Server {
            address: listener.local_addr().unwrap(),
            log: Arc::default(),
            requests: Arc::default(),
            connections: Arc::default(),
        };
        let (log, requests) = (server.log.clone(), server.requests.clone());
        let connections = server.connections.clone();
        let handle = Arc::new(handle);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = match stream {
                    Ok(stream) => stream,
                    Err(_) => return,
                };
                connections.fetch_add(1, Ordering::SeqCst);
                let _ = stream.set_nodelay(true);
                let (log, requests, handle) = (log.clone(), requests.clone(), handle.clone());
                thread::spawn(move || {
                    while read(&mut stream) {
                        let number = requests.fetch_add(1, Ordering::SeqCst);
                        let mut exchange = Exchange {
                            number,
                            stream: &mut stream,
                            log: &log,
                        };
                        if !handle(&mut exchange) {
                            return;
                        }
                    }
                });
            }
        });
        server
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub fn requests(&self) -> u64 {
        self.requests.load(Ordering::SeqCst)
    }
}

/// Reads a head without a body.
fn read_request(stream: &mut TcpStream) -> bool {
    let mut head = Vec::new();
    let mut buffer = [0; 4096];
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read(&mut buffer) {
            Ok(0) | Err(_) => return false,
            Ok(count) => head.extend_from_slice(&buffer[..count]),
        }
    }
    true
}

/// A plan, of which tests change what they are about.
#[derive(Clone)]
pub struct Load {
    pub url: String,
    /// Names and addresses; empty for the one lane of `url`.
    pub lanes: Vec<(&'static str, String)>,
    /// Further keys of the schedule.
    pub turns: &'static str,
    /// The kinds of a mix in JSON; empty for the one kind that follows.
    pub kinds: &'static str,
    /// In place of a rate, as is the file of a replay; empty for none.
    pub closed: bool,
    pub replay: String,
    pub method: &'static str,
    pub body: String,
    pub status: &'static str,
    pub bytes: &'static str,
    pub expected: Option<&'static [u8]>,
    pub rate: f64,
    pub duration_s: f64,
    pub connections: usize,
    pub on_demand: bool,
    pub threads: usize,
    pub keepalive: bool,
    pub timeout_s: f64,
    pub keep_requests: bool,
    pub certificates: Option<PathBuf>,
}

/// 400 requests in a second, of which all are answered with `hello`.
pub fn load(url: &str) -> Load {
    Load {
        url: url.to_string(),
        lanes: Vec::new(),
        turns: "",
        kinds: "",
        closed: false,
        replay: String::new(),
        method: "GET",
        body: String::new(),
        status: "200",
        bytes: "null",
        expected: None,
        rate: 400.0,
        duration_s: 1.0,
        connections: 8,
        on_demand: false,
        threads: 1,
        keepalive: true,
        timeout_s: 10.0,
        keep_requests: true,
        certificates: None,
    }
}

/// A folder of a test's own.
pub fn folder() -> PathBuf {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let number = COUNT.fetch_add(1, Ordering::SeqCst);
    let name = format!("metronome-test-{}-{number}", std::process::id());
    let folder = std::env::temp_dir().join(name);
    fs::create_dir_all(&folder).unwrap();
    folder
}

pub struct Running {
    pub child: Child,
    folder: PathBuf,
    load: Load,
}

impl Load {
    pub fn plan(&self) -> String {
        let mut lanes: Vec<String> = self
            .lanes
            .iter()
            .map(|(name, url)| format!(r#"{{"name": "{name}", "url": "{url}"}}"#))
            .collect();
        if lanes.is_empty() {
            lanes.push(format!(r#"{{"url": "{}"}}"#, self.url));
        }
        let mut kinds = self.kinds.to_string();
        if kinds.is_empty() {
            kinds = format!(
                r#"{{"method": "{}", "path": "/x", "headers": [["Accept", "*/*"]], "body": "{}",
                "answer": {{"status": {}, "bytes": {}, "body": {}}}}}"#,
                self.method,
                self.body,
                self.status,
                self.bytes,
                if self.expected.is_some() {
                    "\"expected\""
                } else {
                    "null"
                },
            );
        }
        format!(
            r#"{{"format": "metronome plan/1", "output": "measured", "lanes": [{}],
            "kinds": [{}],
            "schedule": {{{}, "duration_s": {}{}}}, "connections": {}, "on_demand": {},
            "threads": {}, "keepalive": {}, "timeout_s": {}, "keep_requests": {}}}"#,
            lanes.join(", "),
            kinds,
            if self.closed {
                "\"closed\": true".to_string()
            } else if !self.replay.is_empty() {
                format!("\"replay\": \"{}\"", self.replay)
            } else {
                format!("\"rate\": {}", self.rate)
            },
            self.duration_s,
            self.turns,
            self.connections,
            self.on_demand,
            self.threads,
            self.keepalive,
            self.timeout_s,
            self.keep_requests
        )
    }

    pub fn start(&self) -> Running {
        let folder = folder();
        if let Some(body) = self.expected {
            fs::write(folder.join("expected"), body).unwrap();
        }
        let mut command = Command::new(env!("CARGO_BIN_EXE_metronome"));
        if let Some(path) = &self.certificates {
            command.env("SSL_CERT_FILE", path);
        }
        let child = command
            .arg(self.plan())
            .current_dir(&folder)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        Running {
            child,
            folder,
            load: self.clone(),
        }
    }

    pub fn play(&self) -> Measured {
        self.start().finish()
    }

    /// What was measured of each lane.
    pub fn play_lanes(&self) -> Vec<Measured> {
        self.start().finish_lanes()
    }

    /// Plays it in this process, with changes that no call can say.
    pub fn play_changed(&self, change: impl FnOnce(&mut Plan)) -> Measured {
        let folder = folder();
        let mut plan = Plan::parse(&self.plan()).unwrap();
        change(&mut plan);
        plan.output = folder.join("measured").to_str().unwrap().to_string();
        run::play(&plan).unwrap();
        Measured::read(&folder, self.rate)
    }
}

pub fn call(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_metronome"))
        .args(arguments)
        .current_dir(folder())
        .output()
        .unwrap()
}

/// A row with its times in nanoseconds from the start.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    pub outcome: u64,
    pub status: u64,
    pub bytes: u64,
    pub connection: u64,
    pub due: u64,
    pub sent: u64,
    pub first: u64,
    pub last: u64,
    pub read: u64,
    pub pacing: u64,
    pub added: u64,
    /// Number in the schedule.
    pub number: u64,
    /// Number of its kind.
    pub kind: u64,
    /// Its number among those of all visits.
    pub place: u64,
}

impl Row {
    pub fn latency(&self) -> u64 {
        self.last - self.due
    }
}

/// What the program measured.
pub struct Measured {
    pub json: JsonValue,
    pub rows: Vec<Row>,
    pub seconds: Vec<u8>,
    /// Unix time of due time 0 in nanoseconds.
    pub started: u64,
}

impl Running {
    pub fn finish(self) -> Measured {
        self.finish_lanes().remove(0)
    }

    pub fn finish_lanes(self) -> Vec<Measured> {
        let output = self.child.wait_with_output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr).to_string();
        assert!(output.status.success(), "{error}");
        let lanes = self.load.lanes.iter();
        let mut folders: Vec<PathBuf> = lanes.map(|(name, _)| self.folder.join(name)).collect();
        if folders.is_empty() {
            folders.push(self.folder.clone());
        }
        let measured = folders
            .iter()
            .map(|folder| Measured::read(folder, self.load.rate))
            .collect();
        let _ = fs::remove_dir_all(self.folder);
        measured
    }
}

impl Measured {
    fn read(folder: &Path, rate: f64) -> Measured {
        let text = fs::read_to_string(folder.join("measured.json")).unwrap();
        let json: JsonValue = text.parse().unwrap();
        let bytes = fs::read(folder.join("measured.requests")).unwrap_or_default();
        let seconds = fs::read(folder.join("measured.seconds")).unwrap_or_default();
        let mut rows = Vec::new();
        if !bytes.is_empty() {
            let read = read_rows(&bytes).unwrap();
            let several = text.contains("\"lane\"");
            for (position, row) in read.iter().enumerate() {
                let number = if several { row[11] } else { position as u64 };
                let due = (number as f64 * 1e9 / rate).round() as u64;
                let rounded = if ["\"arrivals\": {", "\"replay\": true", "\"visits\": {"]
                    .iter()
                    .any(|mark| text.contains(mark))
                {
                    row[11] * 100
                } else {
                    (due + 50) / 100 * 100
                };
                let issued = rounded + row[4] * 100;
                let sent = issued + row[5] * 100;
                let first = sent + row[6] * 100;
                let last = first + row[7] * 100;
                rows.push(Row {
                    outcome: row[0],
                    status: row[1],
                    bytes: row[2],
                    connection: row[3],
                    due: rounded,
                    sent,
                    first,
                    last,
                    read: last + row[8] * 100,
                    pacing: row[9] * 100,
                    added: row[10] * 100,
                    number,
                    kind: row[12],
                    place: row[13],
                });
            }
        }
        // A number would lose the nanoseconds.
        let line = text
            .lines()
            .find(|line| line.contains("\"started\""))
            .unwrap();
        let digits: String = line.chars().filter(char::is_ascii_digit).collect();
        let _ = fs::remove_dir_all(folder);
        Measured {
            json,
            rows,
            seconds,
            started: digits.parse().unwrap(),
        }
    }

    /// A number of the summary, by the keys that lead to it.
    pub fn number(&self, keys: &[&str]) -> f64 {
        let mut value = &self.json;
        for key in keys {
            value = &value[*key];
        }
        *value.get::<f64>().unwrap_or_else(|| panic!("{keys:?}"))
    }

    pub fn outcome(&self, name: &str) -> u64 {
        self.number(&["outcomes", name]) as u64
    }

    /// How many of the scheduled requests were sent: all, but for the last ones where the machine stood
    /// still when the load ended.
    pub fn sent(&self, scheduled: u64) -> u64 {
        assert_eq!(self.number(&["scheduled"]) as u64, scheduled);
        let sent = self.number(&["sent"]) as u64;
        assert_eq!(self.number(&["unsent"]) as u64, scheduled - sent);
        assert!(sent >= scheduled * 3 / 4, "{sent} of {scheduled}");
        sent
    }

    /// How many failures of a kind there were.
    pub fn failures(&self, kind: &str) -> u64 {
        let failures: &std::collections::HashMap<String, JsonValue> =
            self.json["failures"].get().unwrap();
        failures
            .get(kind)
            .and_then(|count| count.get::<f64>())
            .map_or(0, |count| *count as u64)
    }

    /// The measured answers, in the order of their ends, lie between the times before and after the
    /// server's writes, but for the clocks' tolerance.
    pub fn agrees_with(&self, server: &Server) {
        let mut measured: Vec<u64> = self
            .rows
            .iter()
            .filter(|row| row.outcome < 3)
            .map(|row| self.started + row.last)
            .collect();
        measured.sort_unstable();
        let log = || server.log.lock().unwrap().clone();
        // The last answer may be here before it is in the log.
        for _ in 0..100 {
            if log().len() < measured.len() {
                pause(10);
            }
        }
        let mut log = log();
        assert_eq!(measured.len(), log.len());
        let tolerance = 1_000_000;
        let mut befores: Vec<u64> = log.iter().map(|entry| entry.0).collect();
        befores.sort_unstable();
        log.sort_unstable_by_key(|entry| entry.1);
        for (measured, (before, (_, after))) in measured.iter().zip(befores.iter().zip(&log)) {
            assert!(measured + tolerance >= *before, "{measured} {before}");
            assert!(*measured <= after + tolerance, "{measured} {after}");
        }
    }
}

/// Random numbers of a seed, the same in every run.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(2) + 1)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }
}
