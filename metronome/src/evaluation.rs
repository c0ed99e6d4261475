//! What is computed of the records, in due order, with memory that does not grow with the load.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::io;
use std::path::Path;
use std::sync::Arc;

use crate::columns::{Columns, DUE, LATER, NUMBER};
use crate::histogram::{bucket, Histogram, FILE_BITS};
use crate::mix::Mix;
use crate::own::Own;
use crate::plan::Plan;
use crate::record::{Outcome, Record, Ring, OUTCOMES};
use crate::schedule::{Dues, Rate};
use crate::seconds::Seconds;
use crate::slices::{Slices, Yield, Yields};
use crate::visits::Visited;

/// Neighbours whose latencies are correlated, at most.
const MOST_NEIGHBOURS: usize = 200_000;
/// A request that is so late counts as sent when it was due: a hundredth of a second, as one that is
/// due just before the end of a second must not count for the next.
const ON_TIME_NS: u64 = 10_000_000;

enum Output {
    Columns(Columns),
    Seconds(Box<Seconds>),
}

/// The figures of a lane.
pub struct Evaluated {
    pub rate: Rate,
    /// Of a closed loop: as many as were sent; 0 while the load runs.
    pub scheduled: u64,
    /// Requests sent; while the load runs the number of the next record.
    pub sent: u64,
    pub unsent_own: u64,
    pub outcomes: [u64; OUTCOMES],
    /// Of each kind of request, those scheduled and those of unsent_own.
    pub kinds: Vec<[u64; 2]>,
    /// How long the other unsent requests had waited at the end, of each kind: buckets of µs.
    pub unsent_waits: Vec<BTreeMap<usize, u64>>,
    /// Of the answers with a wrong one.
    pub statuses: BTreeMap<u16, u64>,
    pub latency: Histogram,
    pub ideal_latency: Histogram,
    pub halves: [Histogram; 2],
    pub pacing: Histogram,
    /// Lateness outside of stops that are not the generator's own.
    pub undisturbed: Histogram,
    pub reading: Histogram,
    pub sent_by_second: Vec<u64>,
    pub due_by_second: Vec<u64>,
    /// How far the gap to the request before was from the one between the moments at which both
    /// were due and had a connection.
    pub gap_error: Histogram,
    /// Requests that the generator sent in a second, less those that were due and had a connection
    /// in it.
    pub off_by_second: Vec<i64>,
    /// Latencies of neighbouring answers.
    pub neighbours: Vec<(u64, u64)>,
    pub held: u128,
    pub finished: u64,
    /// What each slice of a closed loop brought.
    pub yields: Vec<Yield>,
    pub visited: Option<Visited>,
    before: Option<u64>,
    pacing_before: Option<u64>,
    answers: usize,
}

impl Evaluated {
    fn new(rate: Rate, scheduled: u64, kinds: Vec<[u64; 2]>) -> Evaluated {
        Evaluated {
            rate,
            scheduled,
            sent: 0,
            unsent_own: 0,
            outcomes: [0; OUTCOMES],
            unsent_waits: vec![BTreeMap::new(); kinds.len()],
            kinds,
            statuses: BTreeMap::new(),
            latency: Histogram::default(),
            ideal_latency: Histogram::default(),
            halves: Default::default(),
            pacing: Histogram::default(),
            undisturbed: Histogram::default(),
            reading: Histogram::default(),
            sent_by_second: vec![0; rate.seconds()],
            due_by_second: vec![0; rate.seconds()],
            gap_error: Histogram::default(),
            off_by_second: vec![0; rate.seconds()],
            neighbours: Vec::new(),
            held: 0,
            finished: 0,
            yields: Vec::new(),
            visited: None,
            before: None,
            pacing_before: None,
            answers: 0,
        }
    }

    pub fn count(&self, outcome: Outcome) -> u64 {
        self.outcomes[outcome as usize]
    }

    /// Adds a request that was sent.
    fn add(&mut self, due: u64, record: &Record, added: u64) {
        let number = self.sent;
        self.sent += 1;
        self.outcomes[record.outcome as usize] += 1;
        let (due_second, sent_second) = (self.rate.second(due), self.rate.second(record.sent));
        self.due_by_second[due_second] += 1;
        self.sent_by_second[sent_second] += 1;
        let sent_by = |late: u64| self.rate.second(record.sent.saturating_sub(late));
        let (ready_second, kept_second) = (
            sent_by(record.pacing),
            sent_by(record.pacing.min(ON_TIME_NS)),
        );
        self.off_by_second[kept_second] += 1;
        self.off_by_second[ready_second] -= 1;
        if let Some(before) = self.pacing_before {
            self.gap_error.add(before.abs_diff(record.pacing));
        }
        self.pacing_before = Some(record.pacing);
        self.pacing.add(record.pacing);
        if !record.disturbed {
            self.undisturbed.add(record.pacing);
        }
        self.reading.add(record.read.saturating_sub(record.last));
        self.held += u128::from(record.read.saturating_sub(record.sent));
        self.finished = self.finished.max(record.read);
        let mut latency_of_answer = None;
        if record.outcome.answered() {
            let latency = record.last.saturating_sub(due);
            if record.outcome == Outcome::Status {
                *self.statuses.entry(record.status).or_insert(0) += 1;
            }
            self.latency.add(latency);
            self.ideal_latency.add(latency.saturating_sub(added));
            let late = match self.scheduled {
                0 => due >= self.rate.duration_ns / 2,
                scheduled => number >= scheduled / 2,
            };
            self.halves[usize::from(late)].add(latency);
            self.answers += 1;
            latency_of_answer = Some(latency);
        }
        if self.answers <= MOST_NEIGHBOURS {
            if let Some(pair) = self.before.zip(latency_of_answer) {
                self.neighbours.push(pair);
            }
        }
        self.before = latency_of_answer;
    }

    /// Adds a request that was never sent. `own`: whether it would have been, but for the generator.
    fn add_unsent(&mut self, due: u64, kind: usize, own: bool) {
        self.unsent_own += u64::from(own);
        self.kinds[kind][1] += u64::from(own);
        self.due_by_second[self.rate.second(due)] += 1;
        if !own {
            let wait = (self.rate.duration_ns - due) / 1000;
            *self.unsent_waits[kind]
                .entry(bucket(wait, FILE_BITS))
                .or_insert(0) += 1;
        }
    }
}

/// How many of the requests that were never sent could have been before the end, on connections that
/// are free since these times, if each held its connection for so long.
fn could_be_sent(
    dues: impl Iterator<Item = u64>,
    free: impl Iterator<Item = u64>,
    held: u64,
    duration: u64,
) -> u64 {
    let mut free: BinaryHeap<Reverse<u64>> = free.map(Reverse).collect();
    let mut count = 0;
    for due in dues {
        let begin = match free.pop() {
            Some(Reverse(since)) if since.max(due) < duration => since.max(due),
            _ => break,
        };
        free.push(Reverse(begin + held));
        count += 1;
    }
    count
}

/// Computes the figures of a lane, and writes its file.
pub struct Evaluation {
    load: Evaluated,
    dues: Dues,
    mix: Arc<Mix>,
    /// The kind of each of the requests that the load sends.
    kinds: Vec<usize>,
    yields: Option<Yields>,
    own: Own,
    output: Output,
}

impl Evaluation {
    /// `slices`: of a closed loop.
    pub fn create(
        plan: &Plan,
        lane: usize,
        slices: Option<Arc<Slices>>,
        path: &Path,
    ) -> io::Result<Evaluation> {
        let (rate, dues) = (plan.schedule(), plan.dues(lane));
        let lanes = plan.lanes.len() > 1;
        let output = if plan.keeps_rows {
            let last = if plan.visits().is_some() {
                Some(LATER)
            } else if lanes {
                Some(NUMBER)
            } else if plan.is_even() {
                None
            } else {
                Some(DUE)
            };
            Output::Columns(Columns::create(path, last, plan.kinds.len() > 1)?)
        } else {
            Output::Seconds(Box::new(Seconds::create(path, rate)?))
        };
        let mix = plan.mix();
        let kinds: Vec<usize> = plan.forms.iter().map(|form| form.kind).collect();
        let mut counts = vec![[0, 0]; plan.kinds.len()];
        // Of visits known at the end.
        let scheduled = if dues.visits.is_some() {
            0
        } else {
            dues.scheduled
        };
        for (&kind, count) in kinds.iter().zip(mix.counts(kinds.len(), scheduled)) {
            counts[kind][0] += count;
        }
        Ok(Evaluation {
            load: Evaluated::new(rate, scheduled, counts),
            dues,
            mix,
            kinds,
            yields: slices.map(|slices| Yields::new(slices, lane, plan.connections)),
            own: Own::new(plan.connections),
            output,
        })
    }

    /// Requests whose records were added.
    pub fn sent(&self) -> u64 {
        self.load.sent
    }

    /// Takes the records that are complete up to the first that is not.
    pub fn drain(&mut self, ring: &Ring, claimed: u64) -> io::Result<()> {
        if let Some(yields) = &mut self.yields {
            yields.keep_up();
        }
        while self.load.sent < claimed {
            match ring.load(self.load.sent) {
                Some(record) => self.add(&record)?,
                None => break,
            }
            if self.load.sent % 1024 == 0 {
                ring.release(self.load.sent);
            }
        }
        ring.release(self.load.sent);
        Ok(())
    }

    /// Adds the record of the next request in due order.
    pub fn add(&mut self, record: &Record) -> io::Result<()> {
        if let Some(yields) = &mut self.yields {
            yields.add(record);
            self.load.kinds[usize::from(record.kind)][0] += 1;
            // Due when it is sent.
            if let Output::Seconds(seconds) = &mut self.output {
                seconds.add(record.sent, record, 0)?;
            }
            self.load.add(record.sent, record, 0);
            return Ok(());
        }
        let due = self.dues.due(self.load.sent);
        let number = match &self.dues.visits {
            Some(visits) => {
                self.load.kinds[usize::from(record.kind)][0] += 1;
                visits.place(self.load.sent)
            }
            None => self.dues.number(self.load.sent),
        };
        let added = self.own.added(due, record.sent, record.pacing);
        match &mut self.output {
            Output::Columns(columns) => columns.add(due, number, record, added)?,
            Output::Seconds(seconds) => seconds.add(due, record, added)?,
        }
        self.load.add(due, record, added);
        Ok(())
    }

    /// Adds the requests that were never sent, and writes the file's end. `free`: since when
    /// connections are free that were so at the end.
    pub fn finish(mut self, free: impl Iterator<Item = u64>) -> io::Result<Evaluated> {
        let rate = self.load.rate;
        if let Some(yields) = self.yields.take() {
            self.load.yields = yields.finish();
            self.load.scheduled = self.load.sent;
        }
        let waiting = match &self.dues.visits {
            Some(visits) => visits.unclaimed(rate.duration_ns),
            None => Vec::new(),
        };
        if let Some(visits) = &self.dues.visits {
            self.load.scheduled = self.load.sent + waiting.len() as u64;
            self.load.visited = Some(visits.visited());
            for &(_, kind) in &waiting {
                self.load.kinds[kind][0] += 1;
            }
        }
        let (sent, scheduled) = (self.load.sent, self.load.scheduled);
        let (dues, mix, kinds) = (&self.dues, &self.mix, &self.kinds);
        // No list but of visits: a server that hangs for hours leaves hundreds of millions.
        let unsent = (sent..scheduled).map(|request| match &dues.visits {
            Some(_) => waiting[(request - sent) as usize],
            None => (dues.due(request), kinds[mix.request(request)]),
        });
        let dues = unsent.clone().map(|(due, _)| due);
        let held = (self.load.held / u128::from(self.load.sent.max(1))) as u64;
        let own = self.own.unsent(dues.clone(), rate.duration_ns);
        let own = own.max(could_be_sent(dues, free, held, rate.duration_ns));
        for (number, (due, kind)) in (0..).zip(unsent) {
            self.load.add_unsent(due, kind, number < own);
            if let Output::Seconds(seconds) = &mut self.output {
                seconds.add_unsent(due)?;
            }
        }
        match self.output {
            Output::Columns(columns) => columns.finish()?,
            Output::Seconds(seconds) => seconds.finish()?,
        }
        Ok(self.load)
    }
}
