//! The summary of a load in JSON, with the checks that the generator makes of itself.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::arrivals::Arrivals;
use crate::connection::Failure;
use crate::evaluation::Evaluated;
use crate::gaps::{Cause, Gaps, Total};
use crate::histogram::{range, Histogram, FILE_BITS};
use crate::pacer::{LaneReport, Report};
use crate::plan::{Closed, Plan};
use crate::record::Outcome;
use crate::slices::Yield;

const MOST_LATE_NS: f64 = 20_000.0;
/// Share of the connections' time that a closed loop may spend in the generator.
const MOST_TURNAROUND: f64 = 0.2;
const LEAST_NEIGHBOURS: usize = 100;

/// Facts of the run that are neither in the records nor in a thread's report.
pub struct Run {
    /// Unix time of due time 0, in nanoseconds.
    pub started: u64,
    pub memory_locked: bool,
    /// Connections of the lane that were open or being opened at once, at most.
    pub most_open: u64,
    /// Name of the file with the records.
    pub file: String,
}

/// A text in JSON.
fn quoted(text: &str) -> String {
    let mut json = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' | '\\' => {
                json.push('\\');
                json.push(letter);
            }
            letter if letter < ' ' => {
                let _ = write!(json, "\\u{:04x}", letter as u32);
            }
            letter => json.push(letter),
        }
    }
    json.push('"');
    json
}

fn object<'a>(members: impl IntoIterator<Item = (&'a str, String)>) -> String {
    let members: Vec<String> = members
        .into_iter()
        .map(|(key, value)| format!("{}: {value}", quoted(key)))
        .collect();
    format!("{{{}}}", members.join(", "))
}

fn list(values: impl IntoIterator<Item = String>) -> String {
    let values: Vec<String> = values.into_iter().collect();
    format!("[{}]", values.join(", "))
}

/// A number of at most three digits behind the point.
fn rounded(value: f64) -> String {
    format!("{}", (value * 1000.0).round() / 1000.0)
}

fn microseconds(nanoseconds: f64) -> String {
    rounded(nanoseconds / 1000.0)
}

fn seconds(nanoseconds: u64) -> String {
    format!("{}", nanoseconds as f64 / 1e9)
}

const QUANTILES: [(&str, f64); 4] = [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99_9", 0.999)];

fn latency(histogram: &Histogram) -> Vec<(&'static str, f64)> {
    let mut values = vec![("mean", histogram.mean())];
    values.extend(QUANTILES.map(|(name, fraction)| (name, histogram.quantile(fraction))));
    values.push(("max", histogram.most() as f64));
    values
}

fn lateness(histogram: &Histogram) -> String {
    let values = latency(histogram)
        .into_iter()
        .filter(|(name, _)| !matches!(*name, "mean" | "p90"));
    object(values.map(|(name, value)| (name, microseconds(value))))
}

/// Ranks from 1; equal values share their mean rank.
fn ranks(values: &[u64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_unstable_by_key(|&position| values[position]);
    let mut ranks = vec![0.0; values.len()];
    let mut from = 0;
    while from < order.len() {
        let mut until = from + 1;
        while until < order.len() && values[order[until]] == values[order[from]] {
            until += 1;
        }
        for &position in &order[from..until] {
            ranks[position] = (from + until + 1) as f64 / 2.0;
        }
        from = until;
    }
    ranks
}

/// Spearman's rank correlation; None where it is not defined or says nothing.
pub fn rank_correlation(pairs: &[(u64, u64)]) -> Option<f64> {
    if pairs.len() < LEAST_NEIGHBOURS {
        return None;
    }
    let (left, right): (Vec<u64>, Vec<u64>) = pairs.iter().copied().unzip();
    let (left, right) = (ranks(&left), ranks(&right));
    let mean = (pairs.len() + 1) as f64 / 2.0;
    let mut sums = [0.0; 3];
    for (left, right) in left.iter().zip(&right) {
        sums[0] += (left - mean) * (right - mean);
        sums[1] += (left - mean).powi(2);
        sums[2] += (right - mean).powi(2);
    }
    let scale = (sums[1] * sums[2]).sqrt();
    if scale > 0.0 {
        Some(sums[0] / scale)
    } else {
        None
    }
}

fn check(name: &str, kept: bool, value: String, limit: String) -> String {
    object([
        ("check", quoted(name)),
        ("kept", kept.to_string()),
        ("value", value),
        ("limit", limit),
    ])
}

/// Checks of a load: of a closed loop that its generator was not the limit, of others that it kept
/// the schedule.
fn checks(plan: &Plan, load: &Evaluated, counted: f64, by_latency: f64) -> String {
    let mut checks = Vec::new();
    let closed = !load.yields.is_empty();
    if closed && load.sent > 0 {
        let (own, served) = (load.pacing.sum() as f64, load.latency.sum() as f64);
        let share = own / (own + served).max(1.0);
        checks.push(check(
            "turnaround",
            share <= MOST_TURNAROUND,
            rounded(share),
            rounded(MOST_TURNAROUND),
        ));
    }
    // Of arrivals at the same moment all but one are late.
    let visits = plan.visits().is_some();
    let constant = plan.arrivals == Arrivals::Constant && !plan.replay && !visits;
    if !closed && constant && load.undisturbed.count() > 0 {
        let late = load.undisturbed.quantile(0.99);
        checks.push(check(
            "schedule",
            late <= MOST_LATE_NS,
            microseconds(late),
            microseconds(MOST_LATE_NS),
        ));
    }
    if load.sent > 0 {
        let limit = (by_latency * 0.05).max(0.1);
        let difference = (counted - by_latency).abs();
        checks.push(check(
            "littles_law",
            difference <= limit,
            rounded(difference),
            rounded(limit),
        ));
    }
    let [first, second] = &load.halves;
    // The halves of a ramp, a log and of visits differ.
    let steady = plan.ramp.is_empty() && !plan.replay && !visits;
    if steady && first.count() > 0 && second.count() > 0 && first.quantile(0.5) > 0.0 {
        let change = (second.quantile(0.5) / first.quantile(0.5) - 1.0).abs();
        checks.push(check(
            "halves",
            change <= 0.5,
            rounded(change),
            rounded(0.5),
        ));
    }
    list(checks)
}

fn gap_total(total: &Total) -> Vec<(&'static str, String)> {
    vec![
        ("count", total.count.to_string()),
        ("total_s", seconds(total.total)),
        ("longest_s", seconds(total.longest)),
    ]
}

fn gaps_of(gaps: &Gaps) -> String {
    let mut all = Total::default();
    for total in &gaps.totals {
        all.count += total.count;
        all.total += total.total;
        all.longest = all.longest.max(total.longest);
    }
    let causes = Cause::ALL.map(|cause| {
        let total = &gaps.totals[cause as usize];
        (cause.name(), object(gap_total(total)))
    });
    let rows = gaps.list.iter().map(|gap| {
        let cause = quoted(gap.cause.name());
        list([seconds(gap.at), seconds(gap.length), cause])
    });
    let mut members = gap_total(&all);
    members.push(("causes", object(causes)));
    members.push(("list", list(rows)));
    object(members)
}

fn sum<T>(reports: &[T], value: impl Fn(&T) -> u64) -> u64 {
    reports.iter().map(value).sum()
}

fn most<T>(reports: &[T], value: impl Fn(&T) -> u64) -> u64 {
    reports.iter().map(value).max().unwrap_or(0)
}

fn whole<T: ToString>(values: &[T]) -> String {
    list(values.iter().map(|value| value.to_string()))
}

fn points(points: &[(f64, f64)]) -> String {
    list(points.iter().map(|&(time, rate)| whole(&[time, rate])))
}

fn counts(counts: impl Iterator<Item = (String, u64)>) -> String {
    let counts: Vec<(String, u64)> = counts.collect();
    let members = counts.iter();
    object(members.map(|(name, count)| (name.as_str(), count.to_string())))
}

fn outcomes(load: &Evaluated) -> String {
    object(Outcome::ALL.map(|outcome| (outcome.name(), load.count(outcome).to_string())))
}

fn statuses(load: &Evaluated) -> String {
    let statuses = load.statuses.iter();
    counts(statuses.map(|(status, count)| (status.to_string(), *count)))
}

/// Pairs of a wait in µs, the least of its bucket, and how many requests had it.
fn waits(buckets: &BTreeMap<usize, u64>) -> String {
    let pairs = buckets.iter();
    list(pairs.map(|(&bucket, &count)| whole(&[range(bucket, FILE_BITS).0, count])))
}

/// The latencies of a load, and what the generator added to each.
fn latencies(load: &Evaluated) -> [String; 2] {
    let (measured, ideal) = (latency(&load.latency), latency(&load.ideal_latency));
    let added = measured
        .iter()
        .zip(&ideal)
        .map(|((name, value), (_, ideal))| (*name, microseconds(value - ideal)));
    let values = measured.iter();
    [
        object(values.map(|(name, value)| (*name, microseconds(*value)))),
        object(added),
    ]
}

fn arrivals(arrivals: Arrivals) -> String {
    match arrivals {
        Arrivals::Constant => "null".to_string(),
        Arrivals::Gamma { smoothness, seed } => object([
            ("smoothness", format!("{smoothness}")),
            ("seed", seed.to_string()),
        ]),
        Arrivals::Bursts { size } => object([("burst", size.to_string())]),
        Arrivals::Switching {
            ratio,
            calm_s,
            busy_s,
            seed,
        } => {
            let states = [
                ("ratio", ratio.to_string()),
                ("calm_s", calm_s.to_string()),
                ("busy_s", busy_s.to_string()),
            ];
            object([("switching", object(states)), ("seed", seed.to_string())])
        }
    }
}

/// What the slices of a closed loop brought, each and together.
fn closed(settings: &Closed, yields: &[Yield]) -> String {
    let (right, length) = (
        sum(yields, |slice| slice.right),
        sum(yields, |slice| slice.length),
    );
    let rows = yields.iter().map(|slice| {
        list([
            seconds(slice.begin),
            seconds(slice.length),
            slice.right.to_string(),
            seconds(slice.drained),
        ])
    });
    object([
        ("slice_s", format!("{}", settings.slice_s)),
        ("drain_s", format!("{}", settings.drain_s)),
        ("slices", yields.len().to_string()),
        ("seconds", seconds(length)),
        ("right", right.to_string()),
        ("goodput", rounded(right as f64 * 1e9 / length as f64)),
        ("drained_s", seconds(sum(yields, |slice| slice.drained))),
        ("cut", sum(yields, |slice| u64::from(slice.cut)).to_string()),
        ("by_slice", list(rows)),
    ])
}

/// The summary of one lane. What the threads did as a whole, it has of all lanes: their gaps, CPU
/// time, clock and polling.
pub fn text(plan: &Plan, lane: usize, run: &Run, load: &Evaluated, reports: &[Report]) -> String {
    let mut gaps = Gaps::default();
    let mut failures: BTreeMap<Failure, u64> = BTreeMap::new();
    let mut polling = vec![0; load.rate.seconds()];
    for report in reports {
        gaps.merge(&report.gaps);
        for (failure, count) in &report.lanes[lane].failures {
            *failures.entry(*failure).or_insert(0) += count;
        }
        for (total, time) in polling.iter_mut().zip(&report.polling) {
            *total += time;
        }
    }
    let lanes: Vec<&LaneReport> = reports.iter().map(|report| &report.lanes[lane]).collect();
    let protocol_error = lanes
        .iter()
        .map(|report| report.first_protocol_error.as_str())
        .find(|text| !text.is_empty())
        .unwrap_or("");
    let elapsed = load.finished.max(1) as f64;
    let under_way: u128 = lanes.iter().map(|report| report.under_way).sum();
    let (counted, by_latency) = (under_way as f64 / elapsed, load.held as f64 / elapsed);
    let [latency, added] = latencies(load);
    let failures = failures.iter();
    let connects = sum(&lanes, |report| report.connects);
    let connects_failed = sum(&lanes, |report| report.connects_failed);
    let connecting: u128 = lanes.iter().map(|report| report.connecting_sum).sum();
    let connected = (connects - connects_failed).max(1);
    let halves = |fraction: f64| {
        list(
            load.halves
                .iter()
                .map(|half| microseconds(half.quantile(fraction))),
        )
    };
    let file = |kept: bool| {
        if kept {
            quoted(&run.file)
        } else {
            "null".to_string()
        }
    };
    let rate = match plan.closed {
        Some(_) => "null".to_string(),
        None => format!("{}", plan.rate),
    };
    let mut members = vec![
        ("format", quoted("metronome summary/1")),
        ("version", quoted(env!("CARGO_PKG_VERSION"))),
        (
            "plan",
            object([
                ("rate", rate),
                ("arrivals", arrivals(plan.arrivals)),
                ("ramp", points(&plan.ramp)),
                ("replay", plan.replay.to_string()),
                ("duration_s", format!("{}", plan.duration_s)),
                ("connections", plan.connections.to_string()),
                ("on_demand", plan.on_demand.to_string()),
                ("threads", plan.threads.to_string()),
                ("keepalive", plan.keepalive.to_string()),
                ("timeout_s", format!("{}", plan.timeout_s)),
            ]),
        ),
        ("scheduled", load.scheduled.to_string()),
        ("sent", load.sent.to_string()),
        ("unsent", (load.scheduled - load.sent).to_string()),
        ("unsent_own", load.unsent_own.to_string()),
        ("started", unix(run.started)),
        ("finished", unix(run.started + load.finished)),
        ("outcomes", outcomes(load)),
        ("statuses", statuses(load)),
        (
            "failures",
            counts(failures.map(|(failure, count)| (failure.name(), *count))),
        ),
        ("first_protocol_error", quoted(protocol_error)),
        ("latency_us", latency),
        ("added_us", added),
        ("pacing_us", lateness(&load.pacing)),
        ("reading_us", lateness(&load.reading)),
        ("sent_by_second", whole(&load.sent_by_second)),
        ("due_by_second", whole(&load.due_by_second)),
        (
            "under_way",
            object([
                ("counted", format!("{counted:.6}")),
                ("by_latency", format!("{by_latency:.6}")),
            ]),
        ),
        (
            "rank_correlation",
            rank_correlation(&load.neighbours).map_or("null".to_string(), rounded),
        ),
        (
            "halves",
            object([("p50_us", halves(0.5)), ("p99_us", halves(0.99))]),
        ),
        ("checks", checks(plan, load, counted, by_latency)),
        ("gaps", gaps_of(&gaps)),
        (
            "cpu",
            object([
                ("user_s", seconds(sum(reports, |report| report.cpu.0))),
                ("system_s", seconds(sum(reports, |report| report.cpu.1))),
                ("polling_s", seconds(polling.iter().sum())),
            ]),
        ),
        (
            "polling_by_second",
            list(polling.iter().map(|&time| seconds(time))),
        ),
        (
            "receive_stamps",
            reports.iter().all(|report| report.stamped).to_string(),
        ),
        (
            "stamps_missing",
            sum(&lanes, |report| report.stamps_missing).to_string(),
        ),
        (
            "stamps_rejected",
            sum(&lanes, |report| report.stamps_rejected).to_string(),
        ),
        (
            "fifo",
            reports.iter().all(|report| report.first).to_string(),
        ),
        ("memory_locked", run.memory_locked.to_string()),
        (
            "clock_offset",
            object([
                ("first_ns", reports[0].first_offset.to_string()),
                ("last_ns", reports[0].last_offset.to_string()),
                (
                    "largest_step_ns",
                    most(reports, |report| report.largest_offset_step).to_string(),
                ),
            ]),
        ),
        (
            "connects",
            object([
                ("count", connects.to_string()),
                ("failed", connects_failed.to_string()),
                ("most_open", run.most_open.to_string()),
                ("waited", sum(&lanes, |report| report.waited).to_string()),
                (
                    "mean_us",
                    microseconds(connecting as f64 / connected as f64),
                ),
                (
                    "max_us",
                    microseconds(most(&lanes, |report| report.connecting_most) as f64),
                ),
            ]),
        ),
        ("surplus", sum(&lanes, |report| report.surplus).to_string()),
        (
            "reopened",
            sum(&lanes, |report| report.reopened).to_string(),
        ),
        (
            "files",
            object([
                ("requests", file(plan.keeps_rows)),
                ("seconds", file(!plan.keeps_rows)),
            ]),
        ),
    ];
    if plan.closed.is_none() {
        let members_of_shape = [
            ("gap_error_us", lateness(&load.gap_error)),
            ("off_by_second", whole(&load.off_by_second)),
        ];
        members.push(("shape", object(members_of_shape)));
    }
    // Of a constant rate these follow from their number.
    let uneven = !plan.is_even();
    if uneven {
        let mut all = BTreeMap::new();
        for (&bucket, count) in load.unsent_waits.iter().flatten() {
            *all.entry(bucket).or_insert(0) += count;
        }
        members.push(("unsent_waits_us", waits(&all)));
    }
    if plan.lanes.len() > 1 {
        members.push(("lane", quoted(&plan.lanes[lane].name)));
        members.push(("lanes", plan.lanes.len().to_string()));
    }
    if plan.kinds.len() > 1 {
        let rows = plan.kinds.iter().zip(&load.kinds).zip(&load.unsent_waits);
        let kinds = rows.map(|((kind, [scheduled, unsent_own]), unsent)| {
            let counts = [
                ("name", quoted(&kind.name)),
                ("weight", kind.weight.to_string()),
                ("scheduled", scheduled.to_string()),
                ("unsent_own", unsent_own.to_string()),
            ];
            let waits = uneven.then(|| ("unsent_waits_us", waits(unsent)));
            object(counts.into_iter().chain(waits))
        });
        members.push(("kinds", list(kinds)));
        if !plan.replay && plan.visits().is_none() {
            members.push(("mix_seed", plan.mix_seed.to_string()));
        }
    }
    if let Some((visits, visited)) = plan.visits().zip(load.visited.as_ref()) {
        let broken = visited.broken.iter().map(|counts| whole(counts));
        members.push((
            "visits",
            object([
                ("steps", visits.steps().to_string()),
                ("seed", visits.seed().to_string()),
                ("scheduled", visited.scheduled.to_string()),
                ("started", visited.started.to_string()),
                ("completed", visited.completed.to_string()),
                ("broken", list(broken)),
            ]),
        ));
    }
    if let Some(settings) = &plan.closed {
        members.push(("closed", closed(settings, &load.yields)));
    }
    let lines: Vec<String> = members
        .iter()
        .map(|(key, value)| format!(" {}: {value}", quoted(key)))
        .collect();
    format!("{{\n{}\n}}\n", lines.join(",\n"))
}

/// Unix time in seconds, to the nanosecond.
fn unix(nanoseconds: u64) -> String {
    format!(
        "{}.{:09}",
        nanoseconds / 1_000_000_000,
        nanoseconds % 1_000_000_000
    )
}
