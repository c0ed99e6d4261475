//! Loads of several lanes, offered to servers whose truth is known.

mod common;

use std::net::TcpListener;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use common::{call, load, pause, wall_clock, Load, Measured, Random, Server, HELLO};
use metronome::columns::take_varint;
use metronome::sys::allowed_cpus;
use metronome::turns::{balanced_order, Part, Turns};

const SLICES: &str = r#", "sliced_s": 1, "by_request_s": 0"#;

fn lanes(turns: &'static str, urls: &[String]) -> Load {
    let mut plan = load("");
    plan.lanes = ["base", "head", "control"]
        .into_iter()
        .zip(urls.iter().cloned())
        .collect();
    plan.turns = turns;
    plan
}

fn constant() -> Server {
    Server::start(|exchange| exchange.answer(HELLO))
}

/// A quantile of the rows' values, by nearest rank.
fn quantile<'a>(
    rows: impl IntoIterator<Item = &'a common::Row>,
    fraction: f64,
    value: fn(&common::Row) -> u64,
) -> u64 {
    let mut values: Vec<u64> = rows.into_iter().map(value).collect();
    values.sort_unstable();
    values[(values.len() as f64 * fraction) as usize]
}

#[test]
fn orders_balance_neighbours() {
    assert_eq!(balanced_order(2), [0, 1, 1, 0, 0, 1, 1, 0]);
    for lanes in 1..=16 {
        let order = balanced_order(lanes);
        for round in order.chunks(lanes) {
            let mut sorted = round.to_vec();
            sorted.sort_unstable();
            assert_eq!(sorted, (0..lanes).collect::<Vec<usize>>());
        }
        let mut followed = vec![0; lanes * lanes];
        for (place, &lane) in order.iter().enumerate() {
            followed[lane * lanes + order[(place + 1) % order.len()]] += 1;
        }
        assert_eq!(followed, vec![2; lanes * lanes], "{order:?}");
    }
}

/// The lane and part of each of the first requests.
fn all_turns(turns: &Turns, lanes: usize, scheduled: u64) -> Vec<(usize, Part)> {
    let mut all = vec![None; scheduled as usize];
    for lane in 0..lanes {
        let mut before = None;
        for request in 0..turns.count(lane, scheduled) {
            let (number, part) = turns.turn(lane, request);
            assert!(before < Some(number));
            before = Some(number);
            assert_eq!(all[number as usize], None);
            all[number as usize] = Some((lane, part));
        }
    }
    all.into_iter().map(|turn| turn.unwrap()).collect()
}

#[test]
fn each_request_has_one_lane() {
    let mut random = Random::new(9);
    for _ in 0..300 {
        let lanes = 2 + random.below(6) as usize;
        let slice = 1 + random.below(30);
        let begin = random.below(slice);
        let (sliced, single) = (random.below(20), random.below(20) + 1);
        let turns = Turns::new(lanes, slice, begin, sliced, single);
        let all = all_turns(&turns, lanes, 1 + random.below(5000));
        let in_both = ((sliced * slice + single) * lanes as u64) as usize;
        for part in all.chunks(in_both) {
            let (slices, singles) =
                part.split_at(part.len().min(in_both - single as usize * lanes));
            for slice in slices.chunks(slice as usize) {
                for (at, turn) in slice.iter().enumerate() {
                    let begins = (at as u64) < begin;
                    let part = if begins {
                        Part::SliceBegin
                    } else {
                        Part::Slice
                    };
                    assert_eq!(*turn, (slice[0].0, part));
                }
            }
            for round in singles.chunks_exact(lanes) {
                assert!((0..lanes).all(|lane| round.contains(&(lane, Part::ByRequest))));
            }
        }
    }
}

#[test]
fn single_requests_balance_neighbours_and_are_in_step_with_nothing() {
    for lanes in [2, 3, 6] {
        let turns = Turns::new(lanes, 1, 0, 0, 1);
        let all = all_turns(&turns, lanes, 60_000);
        let share = |pairs: Vec<(usize, usize)>| {
            let mut counts = vec![0; lanes * lanes];
            for (lane, other) in &pairs {
                counts[lane * lanes + other] += 1;
            }
            let between = (0..lanes * lanes).filter(|pair| pair / lanes != pair % lanes);
            let counts: Vec<usize> = between.map(|pair| counts[pair]).collect();
            let mean = counts.iter().sum::<usize>() as f64 / counts.len() as f64;
            for count in &counts {
                assert!((*count as f64 / mean - 1.0).abs() < 0.1, "{counts:?}");
            }
        };
        share(all.windows(2).map(|pair| (pair[0].0, pair[1].0)).collect());
        // A timer of the machine that fires at every so many requests meets all lanes alike.
        for step in [2, 4, 8, 10] {
            let mut met = vec![0; lanes];
            for turn in all.iter().step_by(step) {
                met[turn.0] += 1;
            }
            let mean = 60_000.0 / (step * lanes) as f64;
            assert!(
                met.iter()
                    .all(|&count| (count as f64 / mean - 1.0).abs() < 0.1),
                "{met:?}"
            );
        }
    }
}

/// Answers after a delay in microseconds.
fn delayed(microseconds: u64) -> Server {
    Server::start(move |exchange| {
        thread::sleep(Duration::from_micros(microseconds));
        exchange.answer(HELLO)
    })
}

/// How many requests were sent: on a busy machine not the last.
fn sent(measured: &Measured, scheduled: u64) -> u64 {
    assert_eq!(measured.number(&["scheduled"]) as u64, scheduled);
    let sent = measured.rows.len() as u64;
    assert_eq!(measured.number(&["sent"]) as u64, sent);
    assert!(sent >= scheduled * 9 / 10, "{sent} of {scheduled}");
    for row in &measured.rows {
        assert!(row.due <= row.sent && row.sent <= row.first);
    }
    sent
}

#[test]
fn each_lane_is_measured_as_its_server_is() {
    let servers = [delayed(300), delayed(600)];
    let urls = [servers[0].url(), servers[1].url()];
    // Half a second of slices, half a second by request.
    let turns = r#", "sliced_s": 0.5, "by_request_s": 0.5, "settle_s": 0.006"#;
    let mut plan = lanes(turns, &urls);
    plan.threads = allowed_cpus().len().min(2);
    // A slice has 8 requests, of which the first 2 are due less than 6 ms after another lane's.
    let measured = plan.play_lanes();
    let mut numbers = Vec::new();
    for (lane, server) in measured.iter().zip(&servers) {
        let sent = sent(lane, 200);
        assert_eq!(lane.outcome("right"), sent);
        assert_eq!(server.requests(), sent);
        assert_eq!(lane.number(&["connects", "count"]), 8.0);
        lane.agrees_with(server);
        let parts = |part: u64| lane.rows.iter().filter(move |row| row.part == part);
        let slices = [0, 1].map(|part| parts(part).count());
        assert_eq!(slices, [78, 26]);
        let by_request = parts(2).count() as f64;
        for (name, part, due, sent) in [
            ("slices", 0, 104.0, 104.0),
            ("by_request", 2, 96.0, by_request),
        ] {
            assert_eq!(lane.number(&["parts", name, "scheduled"]), due);
            assert_eq!(lane.number(&["parts", name, "outcomes", "right"]), sent);
            // The begin of a slice is counted, and in no percentile.
            let most = parts(part).map(|row| row.latency()).max().unwrap() as f64 / 1000.0;
            let told = lane.number(&["parts", name, "latency_us", "max"]);
            assert!((told - most).abs() <= 0.2, "{told} {most}");
        }
        numbers.extend(lane.rows.iter().map(|row| row.number));
    }
    numbers.sort_unstable();
    assert_eq!(numbers[..360], (0..360).collect::<Vec<u64>>());
    // A busy machine makes answers later, but not the fastest of 200.
    let fastest = [0, 1].map(|lane| quantile(&measured[lane].rows, 0.0, common::Row::latency));
    assert!((300_000..600_000).contains(&fastest[0]) && fastest[1] >= 600_000);
}

#[test]
fn stall_of_one_lane_does_not_delay_another() {
    for threads in 1..=allowed_cpus().len().min(2) {
        let begin: Arc<AtomicU64> = Arc::default();
        let stalled = Server::start(move |exchange| {
            let now = wall_clock();
            let _ = begin.compare_exchange(0, now, Ordering::SeqCst, Ordering::SeqCst);
            let since = (now - begin.load(Ordering::SeqCst)) / 1_000_000;
            if (300..600).contains(&since) {
                pause(600 - since);
            }
            exchange.answer(HELLO)
        });
        let steady = constant();
        let mut plan = lanes(SLICES, &[stalled.url(), steady.url()]);
        plan.rate = 1000.0;
        plan.threads = threads;
        let measured = plan.play_lanes();
        for lane in &measured {
            assert_eq!(lane.outcome("right"), sent(lane, 500));
        }
        measured[0].agrees_with(&stalled);
        measured[1].agrees_with(&steady);
        let waited = measured[0]
            .rows
            .iter()
            .filter(|row| row.latency() > 50_000_000);
        assert!(waited.count() > 80);
        // The server's clock starts with its first request; the backlog leaves after 600 ms.
        let during = |row: &&common::Row| (320_000_000..700_000_000).contains(&row.due);
        let rows = || measured[1].rows.iter().filter(during);
        // A busy machine delays some of them, the stall would delay all of its 300 ms.
        assert!(quantile(rows(), 0.5, common::Row::latency) < 5_000_000);
        assert!(quantile(rows(), 0.5, |row| row.sent - row.due) < 1_000_000);
        assert!(quantile(rows(), 0.9, common::Row::latency) < 50_000_000);
    }
}

#[test]
fn lane_that_fails_leaves_the_other_unharmed() {
    let refused = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let resetting = Server::start_with(
        |stream| matches!(stream.peek(&mut [0; 1]), Ok(1)),
        |_| false,
    );
    for (url, outcome, failure) in [
        (format!("http://{refused}"), "connect", "refused"),
        (resetting.url(), "read", "reset"),
    ] {
        let steady = constant();
        let measured = lanes(SLICES, &[url, steady.url()]).play_lanes();
        let failed = sent(&measured[0], 200);
        assert_eq!(measured[0].outcome(outcome), failed);
        assert_eq!(measured[0].failures(failure), failed);
        assert_eq!(measured[1].outcome("right"), sent(&measured[1], 200));
        measured[1].agrees_with(&steady);
        assert_eq!(measured[1].failures(failure), 0);
        assert_eq!(measured[1].number(&["connects", "count"]), 8.0);
        assert!(quantile(&measured[1].rows, 0.5, common::Row::latency) < 5_000_000);
    }
}

#[test]
fn histograms_by_second_and_part() {
    let servers = [constant(), constant(), constant()];
    let urls = [servers[0].url(), servers[1].url(), servers[2].url()];
    let mut plan = lanes(
        r#", "sliced_s": 0.3, "by_request_s": 0.3, "settle_s": 0.006"#,
        &urls,
    );
    plan.keep_requests = false;
    plan.rate = 600.0;
    plan.duration_s = 1.5;
    for lane in plan.play_lanes() {
        let end = lane.seconds.iter().position(|&byte| byte == b'\n').unwrap();
        let header = std::str::from_utf8(&lane.seconds[..end]).unwrap();
        assert!(header.contains("\"parts\":3"), "{header}");
        let mut rest = &lane.seconds[end + 1..];
        let mut number = || take_varint(&mut rest).unwrap();
        let mut by_part = [0; 3];
        let (mut by_second, mut all_right) = ([0; 2], 0);
        for due_in_second in &mut by_second {
            for due_in_part in &mut by_part {
                let due = number();
                *due_in_second += due;
                *due_in_part += due;
                let right = due - number();
                all_right += right;
                assert_eq!([(); 7].map(|()| number()), [right, 0, 0, 0, 0, 0, 0]);
                let _in_time_and_service = [number(), number(), number()];
                let sums =
                    [(); 5].map(|()| (0..number()).map(|_| (number(), number()).1).sum::<u64>());
                assert_eq!(sums, [right, 0, right, right, right]);
            }
        }
        assert_eq!([(); 4].map(|()| number()), [1, 200, 5, all_right]);
        assert!(all_right >= 270);
        assert_eq!(by_second, [200, 100]);
        // Slices of 12 requests, of which the first 3 are due less than 6 ms after the last before.
        assert_eq!(by_part, [135, 45, 120]);
    }
}

#[test]
fn plans_of_lanes() {
    let plan = lanes(
        SLICES,
        &[
            "http://127.0.0.1:1".to_string(),
            "http://127.0.0.1:2".to_string(),
        ],
    )
    .plan();
    for (from, to, message) in [
        (
            "head",
            "base",
            r#"lanes[1].name is "base"; it must be the only one of that name"#,
        ),
        (
            "head",
            "../x",
            "lanes[1].name is \"../x\"; it must be letters, digits, _ and -",
        ),
        ("\"name\": \"head\", ", "", "lanes[1].name is missing"),
        ("\"sliced_s\": 1, ", "", "schedule.sliced_s is missing"),
        (
            "\"sliced_s\": 1",
            "\"sliced_s\": 0",
            "sliced_s and by_request_s are 0; one must be more",
        ),
        (
            "\"sliced_s\"",
            "\"settle_s\": 0.02, \"sliced_s\"",
            "schedule.settle_s is 0.02; it must be less than slice_s, 0.02",
        ),
    ] {
        let output = call(&[&plan.replace(from, to)]);
        let error = String::from_utf8_lossy(&output.stderr).to_string();
        assert_eq!(output.status.code(), Some(2), "{error}");
        assert!(error.contains(message), "{error}");
    }
    let mut one = load("http://127.0.0.1:1");
    one.turns = SLICES;
    let output = call(&[&one.plan()]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("it knows rate, duration_s"));
}
