//! Connections that are opened when a request is due and none is free.

mod common;

use common::{call, load, pause, wall_clock, Measured, Row, Server, HELLO};
use metronome::sys::allowed_cpus;
use std::sync::atomic::{AtomicU64, Ordering};

/// Answers after a time, and stands still between two times after its first request.
fn slow(answer_ms: u64, stall_ms: std::ops::Range<u64>) -> Server {
    let begin = AtomicU64::new(0);
    Server::start(move |exchange| {
        let now = wall_clock();
        let _ = begin.compare_exchange(0, now, Ordering::SeqCst, Ordering::SeqCst);
        let since = (now - begin.load(Ordering::SeqCst)) / 1_000_000;
        let stalls = stall_ms.contains(&since);
        pause(if stalls {
            stall_ms.end - since
        } else {
            answer_ms
        });
        exchange.answer(HELLO)
    })
}

fn connects(measured: &Measured, name: &str) -> u64 {
    measured.number(&["connects", name]) as u64
}

/// The most requests that were under way at once.
fn most_under_way<'a>(rows: impl Iterator<Item = &'a Row>) -> u64 {
    let mut changes: Vec<(u64, i64)> = rows
        .flat_map(|row| [(row.sent, 1), (row.read, -1)])
        .collect();
    changes.sort_unstable();
    let (mut now, mut most) = (0, 0);
    for (_, change) in changes {
        now += change;
        most = now.max(most);
    }
    most as u64
}

/// 200 requests/s that take 98 ms each are 20 at a time on a quiet machine, and more on another.
fn by_littles_law(threads: usize, spare: u64) {
    let server = slow(98, 0..0);
    let mut plan = load(&server.url());
    (plan.rate, plan.duration_s, plan.connections) = (200.0, 2.0, 1000);
    (plan.on_demand, plan.threads) = (true, threads);
    let measured = plan.play();
    assert_eq!(measured.outcome("right"), measured.sent(400));
    let (most, needed) = (
        connects(&measured, "most_open"),
        most_under_way(measured.rows.iter()),
    );
    assert!(needed >= 19, "{needed}");
    assert!((needed..=needed + spare).contains(&most), "{needed} {most}");
    assert_eq!(connects(&measured, "count"), most);
    assert_eq!(server.connections.load(Ordering::SeqCst), most);
    assert_eq!(connects(&measured, "waited"), 0);
    measured.agrees_with(&server);
}

#[test]
fn as_many_as_are_under_way() {
    by_littles_law(1, 1);
}

#[test]
fn threads_share_idle_connections() {
    // A thread that another program delays does not use its own; without sharing, each would open
    // as many as all need.
    by_littles_law(2.min(allowed_cpus().len()), 10);
}

#[test]
fn a_stall_opens_one_for_each_request() {
    let server = slow(5, 500..1500);
    let mut plan = load(&server.url());
    (plan.rate, plan.duration_s, plan.connections) = (200.0, 3.0, 1000);
    plan.on_demand = true;
    let measured = plan.play();
    assert_eq!(measured.outcome("right"), measured.sent(600));
    let (most, needed) = (
        connects(&measured, "most_open"),
        most_under_way(measured.rows.iter()),
    );
    assert!(needed >= 195, "{needed}");
    assert!((needed..=needed + 1).contains(&most), "{needed} {most}");
    // After it, those that were used last are used again, and the others stay idle.
    let after = || measured.rows.iter().filter(|row| row.due > 2_000_000_000);
    let mut used: Vec<u64> = after().map(|row| row.connection).collect();
    used.sort_unstable();
    used.dedup();
    assert!(used.len() as u64 <= most_under_way(after()), "{used:?}");
    // The latency counts from the due time, with the opening of the connection.
    let longest = measured.rows.iter().map(|row| row.latency()).max();
    assert!(longest > Some(990_000_000));
}

#[test]
fn at_the_limit_requests_wait() {
    let server = slow(50, 0..0);
    let mut plan = load(&server.url());
    (plan.rate, plan.connections, plan.on_demand) = (200.0, 4, true);
    let measured = plan.play();
    assert_eq!(connects(&measured, "most_open"), 4);
    assert!(connects(&measured, "waited") > 40);
    assert!(measured.number(&["unsent"]) > 80.0);
}

#[test]
fn those_that_the_server_closes_are_opened_when_needed() {
    let server = Server::start(|exchange| {
        exchange.answer(HELLO);
        false
    });
    let mut plan = load(&server.url());
    (plan.rate, plan.connections, plan.on_demand) = (100.0, 50, true);
    let measured = plan.play();
    let opened = server.connections.load(Ordering::SeqCst);
    assert_eq!(connects(&measured, "count"), opened);
    assert!(opened <= 100, "{opened}");
    assert_eq!(measured.number(&["reopened"]), 0.0);
}

#[test]
fn a_closed_loop_has_none() {
    let mut plan = load("http://127.0.0.1:1");
    (plan.closed, plan.on_demand) = (true, true);
    let output = call(&[&plan.plan()]);
    assert_eq!(output.status.code(), Some(2));
    let text = String::from_utf8_lossy(&output.stderr).to_string();
    assert!(
        text.contains("plan.on_demand is true; it must be false"),
        "{text}"
    );
}
