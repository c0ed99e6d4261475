//! The structures of the program, without sockets.

mod common;

use std::fs;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use common::{folder, load, Random};
use metronome::arrivals::Arrivals;
use metronome::columns::{
    put_varint, read_rows, take_varint, units, unzigzag, zigzag, Columns, NUMBER,
};
use metronome::evaluation::Evaluation;
use metronome::histogram::{bucket, range, Histogram, FILE_BITS};
use metronome::own::Own;
use metronome::pacer::{polled_before, postpones};
use metronome::plan::Plan;
use metronome::record::{Outcome, Record, Ring, MOST_RECORDS};
use metronome::schedule::{Claim, Dues, Rate, Schedule};
use metronome::summary::rank_correlation;
use metronome::turns::Turns;

#[test]
fn schedules() {
    assert_eq!(Rate::new(0.1, 30.0).scheduled, 3);
    assert_eq!(Rate::new(2000.0, 10.0).scheduled, 20_000);
    assert_eq!(Rate::new(3.0, 1.1).scheduled, 4);
    assert_eq!(Rate::new(1.0, 0.5).scheduled, 1);
    let mut random = Random::new(1);
    for _ in 0..1000 {
        let rate = Rate::new(
            random.below(1_000_000) as f64 / 7.0 + 0.01,
            random.below(1000) as f64 / 3.0 + 0.1,
        );
        // The last request is due before the end, and another would not be.
        assert!(rate.due(rate.scheduled - 1) < rate.duration_ns + 1000);
        assert!(rate.due(rate.scheduled) + 1000 >= rate.duration_ns);
        assert!(rate.second(rate.due(rate.scheduled - 1)) < rate.seconds());
    }
}

fn schedule_of(rate: Rate) -> Schedule {
    let dues = Dues::new(rate, None, Turns::new(1), 0);
    Schedule::new(dues, None)
}

fn times(smoothness: f64, seed: u64, rate: &Rate) -> Vec<u64> {
    Arrivals::Gamma { smoothness, seed }
        .times(rate, &[])
        .unwrap()
}

/// The gaps of a schedule, the one after its last request included, divided by their mean.
fn gaps(times: &[u64], rate: &Rate) -> Vec<f64> {
    let befores = std::iter::once(&0).chain(times);
    let afters = times.iter().chain(std::iter::once(&rate.duration_ns));
    let mean = rate.duration_ns as f64 / (times.len() + 1) as f64;
    let gaps = befores.zip(afters);
    gaps.map(|(before, after)| (after - before) as f64 / mean)
        .collect()
}

/// The largest distance of the values' distribution from an ascending one (Kolmogorov, Smirnov).
fn distance(mut values: Vec<f64>, distribution: impl Fn(f64) -> f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let count = values.len() as f64;
    let distances = values.iter().enumerate().map(|(number, &value)| {
        let below = distribution(value);
        (below - number as f64 / count).max((number + 1) as f64 / count - below)
    });
    distances.fold(0.0, f64::max)
}

#[test]
fn poisson_gaps_are_exponential() {
    let rate = Rate::new(1000.0, 2.0);
    let (mut exponential, mut uniform) = (0, 0);
    for seed in 0..2000 {
        let times = times(1.0, seed, &rate);
        assert_eq!(times.len(), 2000);
        assert!(times.windows(2).all(|pair| pair[0] <= pair[1]));
        assert!(times[1999] < rate.duration_ns);
        // The critical value at 5 % where the mean is the sample's own (Stephens 1974).
        let n = 2001.0f64;
        let far = distance(gaps(&times, &rate), |gap| 1.0 - (-gap).exp());
        exponential += u32::from((far - 0.2 / n) * (n.sqrt() + 0.26 + 0.5 / n.sqrt()) < 1.094);
        // As many points of a Poisson process are anywhere with equal probability.
        let places = times
            .iter()
            .map(|&due| due as f64 / rate.duration_ns as f64);
        let far = distance(places.collect(), |place| place);
        uniform += u32::from(far * (2000f64.sqrt() + 0.12 + 0.11 / 2000f64.sqrt()) < 1.358);
    }
    assert!(
        (1860..=1940).contains(&exponential),
        "{exponential} of 2000"
    );
    assert!((1860..=1940).contains(&uniform), "{uniform} of 2000");
}

#[test]
fn smoothness_is_the_inverse_of_the_variance() {
    let rate = Rate::new(20_000.0, 10.0);
    for smoothness in [0.1, 0.5, 1.0, 3.0, 100.0] {
        let gaps = gaps(&times(smoothness, 7, &rate), &rate);
        let variance = gaps.iter().map(|gap| (gap - 1.0).powi(2)).sum::<f64>() / gaps.len() as f64;
        assert!((variance * smoothness - 1.0).abs() < 0.05, "{smoothness}");
    }
}

#[test]
fn arrivals_of_a_seed_are_the_same() {
    let rate = Rate::new(500.0, 3.0);
    assert_eq!(times(0.5, 9, &rate), times(0.5, 9, &rate));
    assert_ne!(times(0.5, 9, &rate), times(0.5, 10, &rate));
    // As on any machine: what a run recorded can be repeated.
    assert_eq!(times(1.0, 1, &rate)[..3], [843_870, 2_333_289, 8_411_862]);
    let bursts = Arrivals::Bursts { size: 4 }.times(&Rate::new(8.0, 1.3), &[]);
    let thirds = [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2];
    assert_eq!(
        bursts,
        Some(thirds.iter().map(|burst| burst * 500_000_000).collect())
    );
}

#[test]
fn a_process_switches_between_two_rates() {
    let switching = |seed| {
        Arrivals::Switching {
            ratio: 9.0,
            calm_s: 2.0,
            busy_s: 0.5,
            seed,
        }
        .times(&Rate::new(1000.0, 200.0), &[])
        .unwrap()
    };
    let times = switching(3);
    assert_eq!(times, switching(3));
    assert_ne!(times, switching(4));
    assert_eq!(times.len(), 200_000);
    assert!(times.windows(2).all(|pair| pair[0] <= pair[1]));
    // Of 2.5 s, 2 s have a rate of 1 and 0.5 s of 9, so the mean is 2.6.
    let mut tenths = vec![0.0; 2000];
    for time in &times {
        tenths[(time / 100_000_000) as usize] += 1.0 / 100.0;
    }
    let part = |from: f64, to: f64| {
        let within = tenths.iter().filter(|&&rate| from < rate && rate < to);
        within.count() as f64 / 2000.0
    };
    // Calm at 1/2.6, busy at 9/2.6, and a tenth of a second seldom has both.
    assert!((part(0.0, 0.8) - 0.8).abs() < 0.1, "{}", part(0.0, 0.8));
    assert!((part(2.5, 6.0) - 0.2).abs() < 0.1, "{}", part(2.5, 6.0));
}

#[test]
fn a_ramp_has_its_rates() {
    let rate = Rate::new(1000.0, 10.0);
    // 0 to 3,000/s, back to 0, and 1,000/s at the end: 0, 3, 0, 1 with a mean of 7/6.
    let ramp = [(0.0, 0.0), (2.0, 3.0), (4.0, 0.0), (6.0, 1.0)];
    let poisson = Arrivals::Gamma {
        smoothness: 1.0,
        seed: 3,
    };
    for (arrivals, most) in [(Arrivals::Constant, 2.0), (poisson, 250.0)] {
        let times = arrivals.times(&rate, &ramp).unwrap();
        assert_eq!(times.len(), 10_000);
        assert!(times.windows(2).all(|pair| pair[0] <= pair[1]));
        let leg = rate.duration_ns as f64 / 3.0;
        // Of 3.5 parts the legs have 1.5, 1.5 and 0.5; half of a leg from 0 has a quarter.
        for (until, part) in [
            (0.5, 0.375),
            (1.0, 1.5),
            (2.0, 3.0),
            (2.5, 3.125),
            (3.0, 3.5),
        ] {
            let due = times.partition_point(|&due| (due as f64) < until * leg) as f64;
            let expected = part / 3.5 * 10_000.0;
            assert!((due - expected).abs() <= most, "{until}: {due} {expected}");
        }
    }
    // Steps that jump: 1 for 4 s, nothing for 2 s, 2 for 3 s, from second 10 of a clock.
    let steps = [
        (10.0, 1.0),
        (14.0, 1.0),
        (14.0, 0.0),
        (16.0, 0.0),
        (16.0, 2.0),
        (19.0, 2.0),
    ];
    let times = Arrivals::Constant
        .times(&Rate::new(100.0, 9.0), &steps)
        .unwrap();
    let within = |from: f64, to: f64| {
        let due = |seconds: f64| times.partition_point(|&due| (due as f64) < seconds * 1e9);
        due(to) - due(from)
    };
    assert_eq!(
        [within(0.0, 4.0), within(4.0, 6.0), within(6.0, 9.0)],
        [360, 0, 540]
    );
    let level = Arrivals::Constant
        .times(&rate, &[(0.0, 2.0), (1.0, 2.0)])
        .unwrap();
    assert!(level
        .iter()
        .zip(0..)
        .all(|(&due, request)| due == rate.due(request)));
}

#[test]
fn wrong_arrivals_are_refused() {
    let plan = |arrivals: &'static str, rate: f64| {
        let mut plan = load("http://127.0.0.1:1");
        plan.rate = rate;
        plan.turns = arrivals;
        plan.plan()
    };
    for (arrivals, rate, words) in [
        (
            r#", "arrivals": {"smoothness": 0, "seed": 1}"#,
            400.0,
            "schedule.arrivals.smoothness is 0; it must be a number from 0.25 to 100",
        ),
        (
            r#", "arrivals": {"smoothness": 1, "burst": 5}"#,
            400.0,
            "schedule.arrivals.smoothness is 1; it must be absent beside burst",
        ),
        (
            r#", "arrivals": {"switching": {"ratio": 0.5, "calm_s": 1, "busy_s": 1}, "seed": 1}"#,
            9.0,
            "schedule.arrivals.switching.ratio is 0.5; it must be a number from 1 to 1000",
        ),
        (
            r#", "arrivals": {"burst": 0.5}"#,
            400.0,
            "schedule.arrivals.burst is 0.5; it must be a number from 1 to 10000",
        ),
        (
            r#", "ramp": [[0, 0], [1, 0]]"#,
            400.0,
            "schedule.ramp is [[0,0],[1,0]]; it must be 2 to 1000 pairs of a time, ascending, and a \
             rate from 0 to 1e7, not all 0",
        ),
        (
            r#", "ramp": [[0, 1], [2, 1], [1, 1]]"#,
            9.0,
            "schedule.ramp is [[0,1],[2,1],[1,1]]; it must be 2 to 1000 pairs of a time, ascending, \
             and a rate from 0 to 1e7, not all 0",
        ),
        (
            r#", "arrivals": {"smoothness": 1, "seed": 1}, "duration_s": 3"#,
            1e7,
            "schedule has 30000000 requests; with arrivals or a ramp it must have at most 20000000",
        ),
    ] {
        assert_eq!(Plan::parse(&plan(arrivals, rate)).unwrap_err(), words);
    }
}

#[test]
fn busiest_second() {
    let share = |turns: &'static str, rate: f64| {
        let mut plan = load("http://127.0.0.1:1");
        plan.rate = rate;
        plan.duration_s = 4.0;
        plan.turns = turns;
        let share = Plan::parse(&plan.plan()).unwrap().busiest(60_000);
        (share * 100.0).round() as u64
    };
    assert_eq!(share("", 10_000.0), 60);
    assert_eq!(share("", 20_000.0), 100);
    // The last second of a ramp has nearly twice its mean rate.
    assert_eq!(share(r#", "ramp": [[0, 0], [1, 1]]"#, 8000.0), 84);
    // Those of a burst are due together.
    assert_eq!(share(r#", "arrivals": {"burst": 10}"#, 10_000.0), 6);
    let session = r#", "session": [{"kind": 0}, {"kind": 0}, {"kind": 0}], "think_seed": 1"#;
    assert_eq!(share(session, 4000.0), 72);
}

#[test]
fn polls_longer_for_few_requests() {
    let polled = |rate: f64| {
        let mut plan = load("http://127.0.0.1:1");
        plan.rate = rate;
        polled_before(&Plan::parse(&plan.plan()).unwrap())
    };
    assert_eq!(
        [100.0, 400.0, 10_000.0].map(polled),
        [500_000, 250_000, 60_000]
    );
}

#[test]
fn timeouts_are_seen_at_any_rate() {
    let now = 1_000_000_000;
    assert!(postpones(Some(now + 5_000), now, now));
    assert!(!postpones(Some(now + 20_000), now, now));
    assert!(!postpones(None, now, now));
    assert!(!postpones(Some(now + 5_000), now - 10_000_000, now));
}

#[test]
fn two_threads_claim_each_request_once() {
    let rate = Rate::new(1e7, 1.0);
    let schedule = schedule_of(rate);
    let clock = AtomicU64::new(0);
    let claims: Vec<Vec<u64>> = thread::scope(|scope| {
        let threads: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(|| {
                    let mut claims = Vec::new();
                    loop {
                        let now = clock.fetch_add(50, Ordering::Relaxed);
                        match schedule.claim(now, u64::MAX) {
                            Claim::Request(number) => {
                                assert!(rate.due(number) <= now);
                                claims.push(number);
                            }
                            _ if now >= rate.duration_ns || schedule.next(now).is_none() => {
                                return claims
                            }
                            _ => {}
                        }
                    }
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    });
    let mut seen = vec![0u8; rate.scheduled as usize];
    for claims in &claims {
        assert!(claims.windows(2).all(|pair| pair[0] < pair[1]));
        for &number in claims {
            seen[number as usize] += 1;
        }
    }
    assert_eq!(seen.len(), 10_000_000);
    assert!(seen.iter().all(|&count| count == 1));
}

#[test]
fn claims_have_limits() {
    let schedule = schedule_of(Rate::new(10.0, 1.0));
    assert_eq!(schedule.claim(0, 0), Claim::NoRoom);
    assert_eq!(schedule.claim(0, 1), Claim::Request(0));
    assert_eq!(schedule.claim(99_999_999, 100), Claim::Nothing);
    assert_eq!(schedule.claim(100_000_000, 100), Claim::Request(1));
    assert_eq!(schedule.claim(1_000_000_000, 100), Claim::Nothing);
    assert_eq!(schedule.claimed(), 2);
}

#[test]
fn numbers_round_trip() {
    let mut random = Random::new(2);
    for _ in 0..100_000 {
        let value = random.next() >> random.below(64);
        let mut bytes = Vec::new();
        put_varint(&mut bytes, value);
        let mut rest = bytes.as_slice();
        assert_eq!(take_varint(&mut rest), Some(value));
        assert!(rest.is_empty());
        assert_eq!(unzigzag(zigzag(value as i64)), value as i64);
        // A value is in the range of its bucket, which is narrow.
        for bits in [FILE_BITS, 12] {
            let (least, width) = range(bucket(value, bits), bits);
            assert!(least <= value && value - least < width);
            assert!(width == 1 || width << bits <= least);
        }
    }
    assert_eq!(bucket(511, 8), 511);
    assert_eq!(bucket(512, 8), 512);
    assert_eq!(bucket(1023, 8), 767);
    assert_eq!(bucket(1024, 8), 768);
    assert_eq!(bucket(u64::MAX, 8), 55 * 256 + 511);
    for bucket_before in 0..14_000 {
        let (least, width) = range(bucket_before, 8);
        assert_eq!(bucket(least, 8), bucket_before);
        assert_eq!(bucket(least + width - 1, 8), bucket_before);
        assert_eq!(bucket(least + width, 8), bucket_before + 1);
    }
}

#[test]
fn quantiles() {
    let mut histogram = Histogram::default();
    for value in 1..=100_000u64 {
        histogram.add(value * 37);
    }
    for fraction in [0.001, 0.5, 0.9, 0.99, 0.999] {
        let truth = fraction * 100_000.0 * 37.0;
        let measured = histogram.quantile(fraction);
        assert!(
            (measured - truth).abs() <= truth * 0.0002,
            "{measured} {truth}"
        );
    }
    assert_eq!(histogram.most(), 3_700_000);
    assert!((histogram.mean() - 37.0 * 50_000.5).abs() < 0.001);
    assert_eq!(Histogram::default().quantile(0.5), 0.0);
}

#[test]
fn rank_correlations() {
    let mut random = Random::new(3);
    let rising: Vec<(u64, u64)> = (0..200).map(|value| (value, value * value)).collect();
    let falling: Vec<(u64, u64)> = (0..200).map(|value| (value, 1000 - value)).collect();
    let unrelated: Vec<(u64, u64)> = (0..5000)
        .map(|_| (random.below(50), random.below(50)))
        .collect();
    assert!((rank_correlation(&rising).unwrap() - 1.0).abs() < 1e-9);
    assert!((rank_correlation(&falling).unwrap() + 1.0).abs() < 1e-9);
    assert!(rank_correlation(&unrelated).unwrap().abs() < 0.1);
    assert_eq!(rank_correlation(&rising[..99]), None);
    assert_eq!(rank_correlation(&vec![(1, 1); 200]), None);
}

/// A run of requests by some generator: due, sent and pacing.
fn random_run(random: &mut Random, connections: usize) -> Vec<(u64, u64, u64)> {
    let mut free = vec![0; connections];
    let (mut due, mut before) = (0, 0);
    (0..500)
        .map(|_| {
            due += random.below(100);
            free.sort_unstable();
            let ready = due.max(free[0]);
            let sent = before.max(ready + random.below(20) * random.below(3));
            before = sent;
            free[0] = sent + random.below(300);
            (due, sent, sent - ready)
        })
        .collect()
}

#[test]
fn own_part_agrees_with_a_slow_model() {
    let mut random = Random::new(4);
    for round in 0..40 {
        let connections = 1 + round % 7;
        let mut own = Own::new(connections);
        let mut before: Vec<(u64, u64)> = Vec::new();
        for (due, sent, pacing) in random_run(&mut random, connections) {
            let ready = sent - pacing;
            let unused: u64 = before
                .iter()
                .filter(|(_, sent)| *sent > due)
                .map(|&(ready, sent)| sent - ready.max(due))
                .sum();
            let expected = if ready <= due {
                sent - due
            } else {
                (pacing + unused / connections as u64).min(sent - due)
            };
            assert_eq!(own.added(due, sent, pacing), expected);
            // Sent in order, each ready no earlier than those before.
            let last = before.last().map_or(0, |&(ready, _)| ready);
            before.push((ready.max(last).min(sent), sent));
        }
    }
}

#[test]
fn perfect_generator_adds_nothing() {
    let mut random = Random::new(5);
    for connections in 1..8 {
        let mut own = Own::new(connections);
        let mut free = vec![0u64; connections];
        let mut due = 0;
        for _ in 0..2000 {
            due += random.below(100);
            free.sort_unstable();
            let sent = due.max(free[0]);
            free[0] = sent + random.below(500);
            assert_eq!(own.added(due, sent, 0), 0);
        }
    }
}

/// A server whose one core serves a request in `service`, behind a generator that is `late` with
/// each answer and stands still in a time. Returns wait and own part of each request.
fn served(service: u64, interval: u64, late: u64, stop: std::ops::Range<u64>) -> Vec<(u64, u64)> {
    let mut own = Own::new(8);
    let mut free = [0u64; 8];
    let mut core = 0;
    (0..4000)
        .map(|number| {
            let due = number * interval;
            free.sort_unstable();
            let ready = due.max(free[0]);
            let mut sent = if free[0] > due { ready + late } else { ready };
            if stop.contains(&sent) {
                sent = stop.end;
            }
            core = sent.max(core) + service;
            free[0] = core;
            (sent - due, own.added(due, sent, sent - ready))
        })
        .collect()
}

#[test]
fn stop_of_the_generator_is_its_own() {
    let stop = 200_000..700_000;
    for (number, (wait, added)) in served(50, 1000, 0, stop.clone()).into_iter().enumerate() {
        let due = number as u64 * 1000;
        if stop.contains(&due) {
            // What waits behind the stop waits for the generator, but for the queue after it.
            assert!(
                added >= stop.end - due && added <= wait,
                "{due}: {added} of {wait}"
            );
        } else if due < stop.start {
            assert_eq!(added, 0);
        }
    }
}

#[test]
fn wait_for_a_full_server_is_not_the_generators() {
    // 11 % more is due than it serves, and each answer is read a fifth of a service time late.
    let served = served(1000, 900, 200, 0..0);
    let (wait, added) = served[3999];
    assert!(wait > 300_000);
    assert!(added < wait / 5, "{added} of {wait}");
}

/// Nobody takes records while a load of MOST_RECORDS runs, so each lane needs room for all of its own.
#[test]
fn records_of_all_lanes_have_room() {
    let turns = Turns::new(7);
    let counts = (0..7).map(|lane| turns.count(lane, MOST_RECORDS));
    let most = counts.max().unwrap();
    assert!(most > MOST_RECORDS / 7);
    assert_eq!(Ring::of_lane(most, 7).capacity(), most);
}

#[test]
fn unsent_requests_of_a_stopped_generator() {
    let mut own = Own::new(1);
    for number in 0..10 {
        own.added(number * 10, number * 10, 0);
    }
    // Nothing was slowed, so what was not sent waited for the server.
    assert_eq!(own.unsent(100..200, 100), 0);
    // It stood still from 100 to 150 with its only connection.
    own.added(100, 150, 50);
    assert_eq!(own.unsent((11..16).map(|number| number * 10), 160), 2);
}

fn random_record(random: &mut Random, due: u64) -> Record {
    let outcome = Outcome::ALL[random.below(7) as usize];
    let issued = due + random.below(100_000);
    let sent = issued + random.below(1000);
    let first = sent + random.below(50_000_000);
    let last = first + random.below(1_000_000);
    Record {
        issued,
        sent,
        first,
        last,
        read: last + random.below(100_000),
        pacing: random.below(10_000),
        bytes: random.below(1 << 40),
        status: 200 + random.below(400) as u16,
        outcome,
        kind: random.below(16) as u8,
        connection: random.below(10_000) as u32,
        disturbed: random.below(2) == 1,
    }
}

#[test]
fn columns_round_trip() {
    let mut random = Random::new(6);
    let path = folder().join("rows");
    let mut columns = Columns::create(&path, Some(NUMBER), true).unwrap();
    let mut records = Vec::new();
    for number in 0..70_000u64 {
        let due = number * 1234;
        let record = random_record(&mut random, due);
        columns.add(due, number * 3, &record, number).unwrap();
        records.push((due, record));
    }
    columns.finish().unwrap();
    let bytes = fs::read(&path).unwrap();
    fs::remove_file(&path).unwrap();
    let header = bytes.split(|&byte| byte == b'\n').next().unwrap();
    let header: tinyjson::JsonValue = std::str::from_utf8(header).unwrap().parse().unwrap();
    assert_eq!(header["rows"].get::<f64>(), Some(&70_000.0));
    let rows = read_rows(&bytes).unwrap();
    assert_eq!(rows.len(), records.len());
    for (number, (row, (due, record))) in rows.iter().zip(&records).enumerate() {
        assert_eq!(row[0], record.outcome as u64);
        assert_eq!(row[1], u64::from(record.status));
        assert_eq!(row[2], record.bytes);
        assert_eq!(row[3], u64::from(record.connection));
        // The sum of differences is the rounded time itself.
        let mut time = units(*due);
        let times = [
            record.issued,
            record.sent,
            record.first,
            record.last,
            record.read,
        ];
        for (step, truth) in row[4..9].iter().zip(times) {
            time += step;
            assert_eq!(time, units(truth));
        }
        assert_eq!(row[9], units(record.pacing));
        assert_eq!(row[10], units(number as u64));
        assert_eq!(row[11], number as u64 * 3);
        assert_eq!(row[12], u64::from(record.kind));
    }
}

#[test]
fn rings_keep_records() {
    let mut random = Random::new(7);
    let ring = Ring::new(100);
    for number in 0..1000 {
        assert!(number < ring.room());
        assert_eq!(ring.load(number), None);
        let record = random_record(&mut random, number);
        ring.store(number, &record);
        assert_eq!(ring.load(number), Some(record));
        if number >= 50 {
            ring.release(number - 50);
        }
    }
}

/// Bytes of memory that this process has, or has had at most.
fn memory(name: &str) -> u64 {
    let text = fs::read_to_string("/proc/self/status").unwrap();
    let line = text.lines().find(|line| line.starts_with(name)).unwrap();
    let kilobytes = line.split_ascii_whitespace().nth(1).unwrap();
    kilobytes.parse::<u64>().unwrap() * 1024
}

#[test]
fn memory_stays_fixed() {
    let mut plan = load("http://127.0.0.1:1");
    plan.rate = 10_000.0;
    plan.duration_s = 2500.0;
    plan.keep_requests = false;
    let plan = Plan::parse(&plan.plan()).unwrap();
    let path = folder().join("seconds");
    let mut evaluation = Evaluation::create(&plan, 0, None, &path).unwrap();
    let ring = Ring::new(50_000);
    let mut random = Random::new(8);
    let rate = plan.schedule();
    let (sent, mut after_warm_up) = (1_500_000, 0);
    for number in 0..sent {
        ring.store(number, &random_record(&mut random, rate.due(number)));
        if ring.room() - number < 20_000 {
            evaluation.drain(&ring, number + 1).unwrap();
        }
        if number == sent / 5 {
            after_warm_up = memory("VmRSS");
        }
    }
    // The other tests of this process have their memory too, but none as much.
    evaluation.drain(&ring, sent).unwrap();
    // Then the server hung.
    let evaluated = evaluation.finish(std::iter::empty()).unwrap();
    assert_eq!(evaluated.sent, sent);
    assert_eq!(evaluated.due_by_second, [10_000; 2500]);
    let _ = fs::remove_file(&path);
    let grown = memory("VmHWM").saturating_sub(after_warm_up);
    assert!(grown < 200 << 20, "{grown}");
}
