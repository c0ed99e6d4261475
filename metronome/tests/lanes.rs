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
use metronome::turns::{balanced_order, Turns};

fn lanes(urls: &[String]) -> Load {
    let mut plan = load("");
    plan.lanes = ["base", "head", "control"]
        .into_iter()
        .zip(urls.iter().cloned())
        .collect();
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

/// The lane of each of the first requests.
fn all_turns(lanes: usize, scheduled: u64) -> Vec<usize> {
    let turns = Turns::new(lanes);
    let mut all = vec![None; scheduled as usize];
    for lane in 0..lanes {
        for request in 0..turns.count(lane, scheduled) {
            let number = turns.number(lane, request) as usize;
            assert_eq!(all[number], None);
            all[number] = Some(lane);
        }
    }
    all.into_iter().map(|turn| turn.unwrap()).collect()
}

#[test]
fn each_request_has_one_lane() {
    let mut random = Random::new(9);
    for _ in 0..300 {
        let lanes = 1 + random.below(7) as usize;
        let all = all_turns(lanes, 1 + random.below(5000));
        for round in all.chunks_exact(lanes) {
            assert!((0..lanes).all(|lane| round.contains(&lane)));
        }
    }
}

#[test]
fn requests_balance_neighbours_and_are_in_step_with_nothing() {
    for lanes in [2, 3, 6] {
        let all = all_turns(lanes, 60_000);
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
        share(all.windows(2).map(|pair| (pair[0], pair[1])).collect());
        // A timer of the machine that fires at every so many requests meets all lanes alike.
        for step in [2, 4, 8, 10] {
            let mut met = vec![0; lanes];
            for &lane in all.iter().step_by(step) {
                met[lane] += 1;
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

/// How many requests of a lane were sent.
fn sent(measured: &Measured, scheduled: u64) -> u64 {
    let sent = measured.sent(scheduled);
    assert_eq!(measured.rows.len() as u64, sent);
    for row in &measured.rows {
        assert!(row.due <= row.sent && row.sent <= row.first);
    }
    sent
}

#[test]
fn each_lane_is_measured_as_its_server_is() {
    let servers = [delayed(300), delayed(600)];
    let urls = [servers[0].url(), servers[1].url()];
    let mut plan = lanes(&urls);
    plan.threads = allowed_cpus().len().min(2);
    let measured = plan.play_lanes();
    let mut numbers = Vec::new();
    for (lane, server) in measured.iter().zip(&servers) {
        let sent = sent(lane, 200);
        assert_eq!(lane.outcome("right"), sent);
        assert_eq!(server.requests(), sent);
        assert_eq!(lane.number(&["connects", "count"]), 8.0);
        lane.agrees_with(server);
        numbers.extend(lane.rows.iter().map(|row| row.number));
    }
    numbers.sort_unstable();
    assert_eq!(numbers[..300], (0..300).collect::<Vec<u64>>());
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
        let mut plan = lanes(&[stalled.url(), steady.url()]);
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
        let measured = lanes(&[url, steady.url()]).play_lanes();
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
fn histograms_by_second() {
    let servers = [constant(), constant(), constant()];
    let urls = [servers[0].url(), servers[1].url(), servers[2].url()];
    let mut plan = lanes(&urls);
    plan.keep_requests = false;
    plan.rate = 600.0;
    plan.duration_s = 1.5;
    for lane in plan.play_lanes() {
        let end = lane.seconds.iter().position(|&byte| byte == b'\n').unwrap();
        let mut rest = &lane.seconds[end + 1..];
        let mut number = || take_varint(&mut rest).unwrap();
        let (mut by_second, mut all_right) = ([0; 2], 0);
        for due in &mut by_second {
            *due = number();
            let right = *due - number();
            all_right += right;
            assert_eq!([(); 7].map(|()| number()), [right, 0, 0, 0, 0, 0, 0]);
            let _in_time_and_service = [number(), number(), number()];
            let sums = [(); 5].map(|()| (0..number()).map(|_| (number(), number()).1).sum::<u64>());
            assert_eq!(sums, [right, 0, right, right, right]);
        }
        assert_eq!([(); 4].map(|()| number()), [1, 200, 5, all_right]);
        assert!(all_right >= 225);
        assert_eq!(by_second, [200, 100]);
    }
}

#[test]
fn plans_of_lanes() {
    let plan = lanes(&[
        "http://127.0.0.1:1".to_string(),
        "http://127.0.0.1:2".to_string(),
    ])
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
    ] {
        let output = call(&[&plan.replace(from, to)]);
        let error = String::from_utf8_lossy(&output.stderr).to_string();
        assert_eq!(output.status.code(), Some(2), "{error}");
        assert!(error.contains(message), "{error}");
    }
}
