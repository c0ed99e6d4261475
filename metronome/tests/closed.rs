//! Closed loops in lanes, offered to servers whose truth is known.

mod common;

use std::net::TcpListener;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{mpsc, Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use common::{call, load, pause, wall_clock, Load, Measured, Server, HELLO};
use metronome::plan::Closed;
use metronome::slices::{Slice, Slices};
use metronome::sys::allowed_cpus;
use tinyjson::JsonValue;

const SLICES: &str = r#", "slice_s": 0.1"#;

/// One test at a time, as each measures how fast its servers are.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn closed(turns: &'static str, urls: &[String]) -> Load {
    let mut plan = load("");
    plan.lanes = ["base", "head", "control"]
        .into_iter()
        .zip(urls.iter().cloned())
        .collect();
    plan.turns = turns;
    plan.closed = true;
    plan.connections = 20;
    plan
}

/// Gives each answer a time of its own, one after the other, as a server of one thread that takes
/// so many microseconds a request and never sleeps too long.
fn serial(microseconds: u64) -> Server {
    let free = Arc::new(Mutex::new(Instant::now()));
    Server::start(move |exchange| {
        let until = {
            let mut free = free.lock().unwrap();
            *free = (*free).max(Instant::now()) + Duration::from_micros(microseconds);
            *free
        };
        thread::sleep(until.saturating_duration_since(Instant::now()));
        exchange.answer(HELLO)
    })
}

fn goodput(lane: &Measured) -> f64 {
    lane.number(&["closed", "goodput"])
}

/// Begin, length, right answers and draining of each slice. Their sums are the summary's.
fn slices(lane: &Measured) -> Vec<[f64; 4]> {
    let rows: &Vec<JsonValue> = lane.json["closed"]["by_slice"].get().unwrap();
    let rows: Vec<[f64; 4]> = rows
        .iter()
        .map(|row| [0, 1, 2, 3].map(|column| *row[column].get::<f64>().unwrap()))
        .collect();
    let sum = |column: usize| rows.iter().map(|row| row[column]).sum::<f64>();
    for (column, name) in [(1, "seconds"), (2, "right"), (3, "drained_s")] {
        assert!((sum(column) - lane.number(&["closed", name])).abs() < 1e-6);
    }
    assert_eq!(rows.len() as f64, lane.number(&["closed", "slices"]));
    assert!((goodput(lane) - sum(2) / sum(1)).abs() < 1e-3);
    rows
}

/// Goodput of the slice in the middle: a busy machine disturbs some.
fn median(lane: &Measured) -> f64 {
    let mut rates: Vec<f64> = slices(lane).iter().map(|row| row[2] / row[1]).collect();
    rates.sort_by(f64::total_cmp);
    rates[rates.len() / 2]
}

/// Each slice begins when the one before, of whatever lane, has drained.
fn follow(lanes: &[Measured]) {
    let mut all: Vec<[f64; 4]> = lanes.iter().flat_map(slices).collect();
    all.sort_by(|one, other| one[0].total_cmp(&other[0]));
    let length = lanes[0].number(&["closed", "slice_s"]);
    for pair in all.windows(2) {
        assert!(
            (pair[0][0] + length + pair[0][3] - pair[1][0]).abs() < 1e-6,
            "{pair:?}"
        );
    }
}

#[test]
fn slower_server_shows_as_much_slower() {
    let _alone = alone();
    for threads in 1..=allowed_cpus().len().min(2) {
        let servers = [serial(2000), serial(2100)];
        let urls = [servers[0].url(), servers[1].url()];
        let mut plan = closed(SLICES, &urls);
        plan.duration_s = 3.0;
        plan.threads = threads;
        let lanes = plan.play_lanes();
        follow(&lanes);
        for (lane, server) in lanes.iter().zip(&servers) {
            assert!(slices(lane).len() >= 5);
            assert_eq!(lane.outcome("right"), server.requests());
            assert_eq!(lane.number(&["connects", "count"]), 20.0);
            assert_eq!(lane.number(&["closed", "cut"]), 0.0);
        }
        // The servers cannot answer faster.
        assert!(goodput(&lanes[0]) < 502.0 && goodput(&lanes[1]) < 478.0);
        let [fast, slow] = [0, 1].map(|lane| median(&lanes[lane]));
        assert!((fast / slow - 1.05).abs() < 0.01, "{fast} {slow}");
    }
}

#[test]
fn lane_that_stalls_delays_the_other_no_longer_than_it_drains() {
    let _alone = alone();
    for (drain, stall, ends_in_time) in [("2", 300, true), ("0.1", 700, false)] {
        let begin: Arc<AtomicU64> = Arc::default();
        let stalled = Server::start(move |exchange| {
            pause(2);
            let now = wall_clock();
            let _ = begin.compare_exchange(0, now, Ordering::SeqCst, Ordering::SeqCst);
            // Of two first requests, the later one may set the begin.
            let since = now.saturating_sub(begin.load(Ordering::SeqCst)) / 1_000_000;
            if (50..50 + stall).contains(&since) {
                pause(50 + stall - since);
            }
            exchange.answer(HELLO)
        });
        let steady = serial(2000);
        let mut plan = closed(SLICES, &[stalled.url(), steady.url()]);
        let drain = format!(r#", "slice_s": 0.1, "drain_s": {drain}"#);
        plan.turns = Box::leak(drain.into_boxed_str());
        plan.duration_s = 2.0;
        let lanes = plan.play_lanes();
        follow(&lanes);
        let (all, of_other) = (slices(&lanes[0]), slices(&lanes[1]));
        let cut = lanes[0].number(&["closed", "cut"]);
        assert_eq!(lanes[0].outcome("right"), stalled.requests());
        if ends_in_time {
            assert_eq!(cut, 0.0);
            // The stall's time is the lane's: it answers once more at the end of the stall.
            assert!((0.33..0.7).contains(&all[0][1]), "{all:?}");
            assert!((0.23..0.7).contains(&all[0][3]), "{all:?}");
        } else {
            assert!(cut >= 1.0);
            // Its next slice passes without an answer, and without waiting for the old ones.
            assert!((0.2..0.25).contains(&all[0][1]), "{all:?}");
            assert_eq!(all[1][2], 0.0);
            assert!(of_other[0][0] < 0.25, "{of_other:?}");
        }
        assert!(median(&lanes[1]) > 300.0, "{:?}", slices(&lanes[1]));
    }
}

#[test]
fn errors_are_no_goodput() {
    let _alone = alone();
    let servers = [
        serial(2000),
        Server::start(move |exchange| {
            pause(2);
            exchange.answer(if exchange.number % 20 == 19 {
                b"HTTP/1.1 500 Oh\r\nContent-Length: 0\r\n\r\n"
            } else {
                HELLO
            })
        }),
    ];
    let mut plan = closed(SLICES, &[servers[0].url(), servers[1].url()]);
    plan.duration_s = 2.0;
    let lanes = plan.play_lanes();
    let requests = servers[1].requests();
    assert!(requests > 100);
    let (wrong, right) = (lanes[1].outcome("status"), lanes[1].outcome("right"));
    assert_eq!((wrong, right), (requests / 20, requests - requests / 20));
    assert_eq!(lanes[1].number(&["statuses", "500"]) as u64, wrong);
    assert_eq!(lanes[0].outcome("right"), servers[0].requests());
    // One of 20 connections is a straggler, which does not count.
    let counted = lanes[1].number(&["closed", "right"]);
    let slices = lanes[1].number(&["closed", "slices"]);
    assert!(counted <= right as f64 && counted >= right as f64 - slices);
}

/// Works half of its time on all requests that have come before it answers the first of them, as an
/// event loop does. It takes so many microseconds a request.
fn event_loop(microseconds: u64) -> Server {
    let half = Duration::from_micros(microseconds / 2);
    let (sender, receiver) = mpsc::channel::<mpsc::Sender<()>>();
    thread::spawn(move || {
        let mut free = Instant::now();
        let work = |free: &mut Instant, halves: usize| {
            *free += half * halves as u32;
            thread::sleep(free.saturating_duration_since(Instant::now()));
        };
        loop {
            let mut batch: Vec<mpsc::Sender<()>> = receiver.try_iter().collect();
            if batch.is_empty() {
                match receiver.recv() {
                    Ok(reply) => batch.push(reply),
                    Err(_) => return,
                }
                free = Instant::now();
            }
            work(&mut free, batch.len());
            for reply in batch {
                work(&mut free, 1);
                let _ = reply.send(());
            }
        }
    });
    let sender = Mutex::new(sender);
    Server::start(move |exchange| {
        let (reply, answer) = mpsc::channel();
        sender.lock().unwrap().send(reply).unwrap();
        answer.recv().is_ok() && exchange.answer(HELLO)
    })
}

#[test]
fn work_on_requests_before_their_answers_counts_with_these() {
    let _alone = alone();
    let servers = [event_loop(2000), event_loop(2100)];
    let mut plan = closed(
        r#", "slice_s": 0.07"#,
        &[servers[0].url(), servers[1].url()],
    );
    plan.duration_s = 3.0;
    let lanes = plan.play_lanes();
    let [fast, slow] = [0, 1].map(|lane| median(&lanes[lane]));
    assert!((fast / slow - 1.05).abs() < 0.015, "{fast} {slow}");
    assert!((450.0..505.0).contains(&fast), "{fast}");
}

#[test]
fn lane_that_fails_leaves_the_other_unharmed() {
    let _alone = alone();
    let refused = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let resetting = Server::start_with(
        |stream| matches!(stream.peek(&mut [0; 1]), Ok(1)),
        |_| false,
    );
    let silent = Server::start(|_| {
        pause(60_000);
        false
    });
    for (url, outcome, failure, most) in [
        // Connections that cannot be opened rest.
        (format!("http://{refused}"), "connect", "refused", 1500),
        (resetting.url(), "read", "reset", 1_000_000),
        (silent.url(), "timeout", "timeout", 80),
    ] {
        let steady = serial(2000);
        let mut plan = closed(r#", "slice_s": 0.1, "drain_s": 0.1"#, &[url, steady.url()]);
        plan.timeout_s = 1.0;
        plan.duration_s = 2.0;
        let lanes = plan.play_lanes();
        let failed = lanes[0].number(&["sent"]) as u64;
        assert!((20..=most).contains(&failed), "{failed} {failure}");
        // Of those that are reset, some are so while they are written.
        let written = lanes[0].outcome("write");
        assert_eq!(lanes[0].outcome(outcome) + written, failed);
        assert_eq!(lanes[0].failures(failure) + written, failed);
        assert!(written == 0 || failure == "reset");
        assert_eq!(goodput(&lanes[0]), 0.0);
        assert!(slices(&lanes[0]).len() >= 2);
        assert_eq!(lanes[1].outcome("right"), steady.requests());
        assert_eq!(lanes[1].number(&["sent"]) as u64, steady.requests());
        assert!(median(&lanes[1]) > 300.0, "{:?}", slices(&lanes[1]));
        follow(&lanes);
    }
}

#[test]
fn one_lane_has_its_files_in_the_folder_itself() {
    let _alone = alone();
    let server = Server::start(|exchange| exchange.answer(HELLO));
    let mut plan = load(&server.url());
    plan.closed = true;
    plan.keepalive = false;
    let measured = plan.play();
    assert!((2..=20).contains(&slices(&measured).len()));
    assert_eq!(measured.outcome("right"), server.requests());
    assert_eq!(measured.number(&["sent"]), measured.number(&["scheduled"]));
    assert!(measured
        .seconds
        .starts_with(b"{\"format\":\"metronome seconds/1\""));
    assert!(measured.rows.is_empty());
}

#[test]
fn slices_follow_the_answers() {
    let settings = Closed {
        slice_s: 1e-6,
        drain_s: 5e-7,
    };
    let slices = Slices::new(&settings, 2, 6_200);
    assert_eq!(slices.advance(0), Some(1000));
    assert!(slices.take(0, 0) && slices.take(0, 999));
    assert!(!slices.take(1, 0) && !slices.take(0, 1000));
    assert_eq!((slices.begin(0, 999), slices.begin(1, 0)), (Some(0), None));
    slices.give_back(0);
    assert!(slices.advance(1100) > Some(1100));
    slices.give_back(999);
    assert_eq!(slices.advance(1200), Some(2200));
    // One that has not ended is left to its own slice.
    assert!(slices.take(1, 1200) && !slices.take(0, 1200));
    assert!(slices.advance(2699) > Some(2699));
    assert_eq!(slices.advance(2700), Some(3700));
    assert!(slices.take(1, 2700));
    slices.give_back(1200);
    assert!(slices.advance(3700) > Some(3700));
    slices.give_back(2700);
    assert_eq!(slices.advance(3800), Some(4800));
    // A third round has no room.
    assert_eq!(slices.advance(4800), None);
    assert_eq!(slices.advance(4900), None);
    assert!(!slices.take(0, 4900));
    let slice = |lane, begin, over, cut| Slice {
        lane,
        begin,
        end: begin + 1000,
        over,
        cut,
    };
    assert_eq!(
        slices.all(),
        [
            slice(0, 0, 1200, false),
            slice(1, 1200, 2700, true),
            slice(1, 2700, 3800, false),
            slice(0, 3800, 4800, false)
        ]
    );
}

#[test]
fn plans_of_closed_loops() {
    let plan = load("http://127.0.0.1:1").plan();
    for (schedule, message) in [
        (
            r#""rate": 400, "closed": true"#,
            r#"schedule has the key "rate"; it knows closed"#,
        ),
        (
            r#""closed": false"#,
            "schedule.closed is false; it must be true, or a rate in its place",
        ),
        (
            r#""slice_s": 0.1"#,
            r#"schedule has the key "slice_s"; it knows rate, duration_s"#,
        ),
        (
            r#""closed": true, "slice_s": 2"#,
            "schedule.duration_s is 1; it must be from 2 to",
        ),
        (
            r#""closed": true, "slice_s": 0"#,
            "schedule.slice_s is 0; it must be a number from 0.001",
        ),
    ] {
        let output = call(&[&plan.replace(r#""rate": 400"#, schedule)]);
        let error = String::from_utf8_lossy(&output.stderr).to_string();
        assert_eq!(output.status.code(), Some(2), "{error}");
        assert!(error.contains(message), "{error}");
    }
    let neither = plan.replace(r#""rate": 400, "#, "");
    let output = call(&[&neither]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("schedule.rate is missing"));
}
