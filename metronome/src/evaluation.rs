//! What is computed of the records, in due order, with memory that does not grow with the load.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use crate::columns::Columns;
use crate::histogram::Histogram;
use crate::own::Own;
use crate::plan::Plan;
use crate::record::{Outcome, Record, Ring, OUTCOMES};
use crate::schedule::Rate;
use crate::seconds::Seconds;

/// Neighbours whose latencies are correlated, at most.
const MOST_NEIGHBOURS: usize = 200_000;

enum Output {
    Columns(Columns),
    Seconds(Seconds),
}

/// The figures of a load.
pub struct Evaluated {
    pub rate: Rate,
    /// Requests sent; while the load runs the number of the next record.
    pub sent: u64,
    pub unsent_own: u64,
    pub outcomes: [u64; OUTCOMES],
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
    /// Whether a request waited for a connection in a second.
    pub waited: Vec<bool>,
    /// Latencies of neighbouring answers.
    pub neighbours: Vec<(u64, u64)>,
    pub held: u128,
    pub finished: u64,
}

impl Evaluated {
    fn new(rate: Rate) -> Evaluated {
        Evaluated {
            rate,
            sent: 0,
            unsent_own: 0,
            outcomes: [0; OUTCOMES],
            statuses: BTreeMap::new(),
            latency: Histogram::default(),
            ideal_latency: Histogram::default(),
            halves: Default::default(),
            pacing: Histogram::default(),
            undisturbed: Histogram::default(),
            reading: Histogram::default(),
            sent_by_second: vec![0; rate.seconds()],
            due_by_second: vec![0; rate.seconds()],
            waited: vec![false; rate.seconds()],
            neighbours: Vec::new(),
            held: 0,
            finished: 0,
        }
    }

    pub fn count(&self, outcome: Outcome) -> u64 {
        self.outcomes[outcome as usize]
    }
}

pub struct Evaluation {
    load: Evaluated,
    own: Own,
    output: Output,
    before: Option<u64>,
    answers: usize,
}

impl Evaluation {
    pub fn create(plan: &Plan, path: &Path) -> io::Result<Evaluation> {
        let rate = plan.schedule();
        let output = if plan.keeps_rows() {
            Output::Columns(Columns::create(path)?)
        } else {
            Output::Seconds(Seconds::create(path, rate)?)
        };
        Ok(Evaluation {
            load: Evaluated::new(rate),
            own: Own::new(plan.connections),
            output,
            before: None,
            answers: 0,
        })
    }

    /// Requests whose records were added.
    pub fn sent(&self) -> u64 {
        self.load.sent
    }

    /// Takes the records that are complete up to the first that is not.
    pub fn drain(&mut self, ring: &Ring, claimed: u64) -> io::Result<()> {
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
        let number = self.load.sent;
        let due = self.load.rate.due(number);
        self.load.sent += 1;
        let added = self.own.added(due, record.sent, record.pacing);
        match &mut self.output {
            Output::Columns(columns) => columns.add(due, record, added)?,
            Output::Seconds(seconds) => seconds.add(due, record, added)?,
        }
        self.load.outcomes[record.outcome as usize] += 1;
        let (due_second, sent_second) = (
            self.load.rate.second(due),
            self.load.rate.second(record.sent),
        );
        self.load.due_by_second[due_second] += 1;
        self.load.sent_by_second[sent_second] += 1;
        if record.sent.saturating_sub(record.pacing) > due {
            for waited in &mut self.load.waited[due_second..=sent_second] {
                *waited = true;
            }
        }
        self.load.pacing.add(record.pacing);
        if !record.disturbed {
            self.load.undisturbed.add(record.pacing);
        }
        self.load
            .reading
            .add(record.read.saturating_sub(record.last));
        self.load.held += u128::from(record.read.saturating_sub(record.sent));
        self.load.finished = self.load.finished.max(record.read);
        let mut latency_of_answer = None;
        if record.outcome.answered() {
            let latency = record.last.saturating_sub(due);
            *self.load.statuses.entry(record.status).or_insert(0) += 1;
            self.load.latency.add(latency);
            self.load.ideal_latency.add(latency.saturating_sub(added));
            self.load.halves[usize::from(number >= self.load.rate.scheduled / 2)].add(latency);
            self.answers += 1;
            latency_of_answer = Some(latency);
        }
        if self.answers <= MOST_NEIGHBOURS {
            if let Some(pair) = self.before.zip(latency_of_answer) {
                self.load.neighbours.push(pair);
            }
        }
        self.before = latency_of_answer;
        Ok(())
    }

    /// Adds the requests that were never sent, and writes the file's end.
    pub fn finish(mut self) -> io::Result<Evaluated> {
        let rate = self.load.rate;
        let unsent = self.load.sent..rate.scheduled;
        let dues = unsent.clone().map(|number| rate.due(number));
        self.load.unsent_own = self.own.unsent(dues.clone(), rate.duration_ns);
        for due in dues.clone() {
            self.load.due_by_second[rate.second(due)] += 1;
        }
        match self.output {
            Output::Columns(columns) => columns.finish()?,
            Output::Seconds(mut seconds) => {
                for due in dues {
                    seconds.add_unsent(due)?;
                }
                seconds.finish()?;
            }
        }
        Ok(self.load)
    }
}
