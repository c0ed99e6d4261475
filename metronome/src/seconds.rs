//! The file with histograms for each second of due time, for loads too long for rows.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use crate::columns::{put_varint, units};
use crate::histogram::{bucket, FILE_BITS};
use crate::record::{Outcome, Record, OUTCOMES};
use crate::schedule::Rate;

const HISTOGRAMS: usize = 5;
const MOST_ANSWERS: usize = 1000;

/// What is counted of a second.
#[derive(Default)]
struct Counts {
    due: u64,
    unsent: u64,
    outcomes: [u64; OUTCOMES],
    in_time: [u64; 2],
    service: u64,
    histograms: [Vec<u64>; HISTOGRAMS],
}

impl Counts {
    fn count(&mut self, histogram: usize, time: u64) {
        let bucket = bucket(time, FILE_BITS);
        let counts = &mut self.histograms[histogram];
        if bucket >= counts.len() {
            counts.resize(bucket + 1, 0);
        }
        counts[bucket] += 1;
    }

    /// Writes the counts, and sets them to 0.
    fn put(&mut self, bytes: &mut Vec<u8>) {
        let numbers = [self.due, self.unsent];
        for count in numbers.iter().chain(&self.outcomes).chain(&self.in_time) {
            put_varint(bytes, *count);
        }
        put_varint(bytes, self.service);
        for counts in &mut self.histograms {
            let buckets = counts.iter().filter(|&&count| count > 0).count();
            put_varint(bytes, buckets as u64);
            let mut previous = 0;
            for (bucket, count) in counts.iter_mut().enumerate() {
                if *count > 0 {
                    put_varint(bytes, (bucket - previous) as u64);
                    put_varint(bytes, *count);
                    previous = bucket;
                    *count = 0;
                }
            }
        }
        // The memory of the histograms is kept.
        self.due = 0;
        self.unsent = 0;
        self.outcomes = [0; OUTCOMES];
        self.in_time = [0; 2];
        self.service = 0;
    }
}

pub struct Seconds {
    file: BufWriter<File>,
    rate: Rate,
    // The second that is being counted, and what is counted of it.
    second: usize,
    counts: Counts,
    // Count and count in time by status and length.
    answers: BTreeMap<(u16, u64), [u64; 2]>,
    merged: bool,
    bytes: Vec<u8>,
}

impl Seconds {
    pub fn create(path: &Path, rate: Rate) -> io::Result<Seconds> {
        let mut file = BufWriter::with_capacity(1 << 18, File::create(path)?);
        writeln!(
            file,
            "{{\"format\":\"metronome seconds/1\",\"unit_ns\":100,\"seconds\":{},\
             \"sub_buckets\":{}}}",
            rate.seconds(),
            1 << FILE_BITS,
        )?;
        Ok(Seconds {
            file,
            rate,
            second: 0,
            counts: Counts::default(),
            answers: BTreeMap::new(),
            merged: false,
            bytes: Vec::new(),
        })
    }

    fn count_answer(&mut self, status: u16, bytes: u64, in_time: bool) {
        let key = (status, if self.merged { 0 } else { bytes });
        let counts = self.answers.entry(key).or_default();
        counts[0] += 1;
        counts[1] += u64::from(in_time);
        if self.answers.len() > MOST_ANSWERS {
            self.merged = true;
            let split = std::mem::take(&mut self.answers);
            for ((status, _), counts) in split {
                let sum = self.answers.entry((status, 0)).or_default();
                sum[0] += counts[0];
                sum[1] += counts[1];
            }
        }
    }

    /// Adds the next request in due order.
    pub fn add(&mut self, due: u64, record: &Record, added: u64) -> io::Result<()> {
        self.reach(self.rate.second(due))?;
        let counts = &mut self.counts;
        counts.due += 1;
        counts.outcomes[record.outcome as usize] += 1;
        counts.count(3, units(record.pacing));
        if record.outcome.answered() {
            let latency = record.last.saturating_sub(due);
            let service = units(record.last).saturating_sub(units(record.sent));
            let in_time = record.last <= self.rate.duration_ns;
            let right = record.outcome == Outcome::Right;
            counts.in_time[0] += u64::from(in_time && right);
            counts.in_time[1] += u64::from(in_time);
            counts.service += service;
            counts.count(usize::from(!right), units(latency));
            counts.count(2, units(latency.saturating_sub(added)));
            counts.count(4, service);
            self.count_answer(record.status, record.bytes, in_time);
        }
        Ok(())
    }

    /// Adds the next request that was never sent.
    pub fn add_unsent(&mut self, due: u64) -> io::Result<()> {
        self.reach(self.rate.second(due))?;
        let counts = &mut self.counts;
        counts.due += 1;
        counts.unsent += 1;
        Ok(())
    }

    /// Writes the seconds before one.
    fn reach(&mut self, second: usize) -> io::Result<()> {
        while self.second < second {
            self.bytes.clear();
            self.counts.put(&mut self.bytes);
            self.file.write_all(&self.bytes)?;
            self.second += 1;
        }
        Ok(())
    }

    pub fn finish(mut self) -> io::Result<()> {
        self.reach(self.rate.seconds())?;
        self.bytes.clear();
        put_varint(&mut self.bytes, self.answers.len() as u64);
        for ((status, bytes), counts) in &self.answers {
            for value in [u64::from(*status), *bytes, counts[0], counts[1]] {
                put_varint(&mut self.bytes, value);
            }
        }
        self.file.write_all(&self.bytes)?;
        self.file.flush()
    }
}
