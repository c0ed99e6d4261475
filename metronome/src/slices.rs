//! A closed loop in slices: whose slice it is, and what each slice brought.
//!
//! In a slice each connection of its lane sends as soon as it has its answer. At its end nothing is
//! sent any more, and the next slice begins when the last answer is there, so that no server works
//! in the slice of another.

use std::sync::{Arc, Mutex, MutexGuard};

use crate::plan::Closed;
use crate::record::{Outcome, Record};
use crate::turns::balanced_order;

/// While a slice drains, a thread looks this often whether another began the next.
const LOOK_NS: u64 = 50_000;
/// Of so many connections one is a straggler.
const STRAGGLERS: usize = 20;

/// Times are nanoseconds from the start of the load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slice {
    pub lane: usize,
    pub begin: u64,
    /// Nothing is sent from then on.
    pub end: u64,
    /// When the next slice began, or the load was over.
    pub over: u64,
    /// Whether requests were under way then still.
    pub cut: bool,
}

struct State {
    all: Vec<Slice>,
    /// Requests of the last slice.
    under_way: u64,
}

/// The slices of a load, for all threads.
pub struct Slices {
    order: Vec<usize>,
    lanes: usize,
    length: u64,
    patience: u64,
    duration: u64,
    state: Mutex<State>,
}

impl Slices {
    /// The slices of so many lanes. The first begins at 0.
    pub fn new(closed: &Closed, lanes: usize, duration_ns: u64) -> Slices {
        let length = (closed.slice_s * 1e9).round() as u64;
        let order = balanced_order(lanes);
        let first = Slice {
            lane: order[0],
            begin: 0,
            end: length,
            over: u64::MAX,
            cut: false,
        };
        Slices {
            order,
            lanes,
            length,
            patience: (closed.drain_s * 1e9).round() as u64,
            duration: duration_ns,
            state: Mutex::new(State {
                all: vec![first],
                under_way: 0,
            }),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no thread panics with the slices")
    }

    /// Begins the next slice if the last is over. Returns when to look again, None at the end of
    /// the load: with the last whole round of the lanes that the duration has room for.
    pub fn advance(&self, now: u64) -> Option<u64> {
        let mut state = self.state();
        let (count, under_way) = (state.all.len(), state.under_way);
        let last = &mut state.all[count - 1];
        if now < last.end {
            return Some(last.end);
        }
        if last.over < u64::MAX {
            return None;
        }
        if under_way > 0 && now < last.end + self.patience {
            return Some(now + LOOK_NS);
        }
        last.over = now;
        last.cut = under_way > 0;
        let round = self.lanes as u64 * self.length;
        if count % self.lanes == 0 && now + round > self.duration {
            return None;
        }
        let end = now + self.length;
        state.under_way = 0;
        state.all.push(Slice {
            lane: self.order[count % self.order.len()],
            begin: now,
            end,
            over: u64::MAX,
            cut: false,
        });
        Some(end)
    }

    /// When the slice of a lane began, if the lane may send.
    pub fn begin(&self, lane: usize, now: u64) -> Option<u64> {
        let state = self.state();
        let last = state.all.last();
        last.filter(|last| last.lane == lane && (last.begin..last.end).contains(&now))
            .map(|last| last.begin)
    }

    /// Counts a request as under way if its lane may send.
    pub fn take(&self, lane: usize, now: u64) -> bool {
        let mut state = self.state();
        let takes = state.all.last().map_or(false, |last| {
            last.lane == lane && (last.begin..last.end).contains(&now)
        });
        state.under_way += u64::from(takes);
        takes
    }

    /// A request that was issued at a time has ended.
    pub fn give_back(&self, issued: u64) {
        let mut state = self.state();
        if state.all.last().map_or(false, |last| issued >= last.begin) {
            state.under_way -= 1;
        }
    }

    /// Those that have begun.
    pub fn all(&self) -> Vec<Slice> {
        self.state().all.clone()
    }
}

/// What a slice of a lane brought. Times are nanoseconds.
///
/// A server may take in all requests before it answers the first. In a slice that counted only to its
/// end, that work would have a time and no answers. So it counts to the last answer, but for some
/// stragglers: one connection that stalls does not stop the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Yield {
    pub begin: u64,
    /// From its begin to the last answer that counts, or to the begin of the next.
    pub length: u64,
    /// Right answers in that time.
    pub right: u64,
    /// From its end to the begin of the next.
    pub drained: u64,
    pub cut: bool,
}

#[derive(Clone, Default)]
struct Count {
    right: u64,
    /// End of each request that ended after the slice, and whether it was right.
    after: Vec<(u64, bool)>,
}

/// Counts the answers of a lane by slice.
pub struct Yields {
    shared: Arc<Slices>,
    lane: usize,
    stragglers: usize,
    slices: Vec<Slice>,
    counts: Vec<Count>,
}

impl Yields {
    pub fn new(shared: Arc<Slices>, lane: usize, connections: usize) -> Yields {
        Yields {
            shared,
            lane,
            stragglers: connections / STRAGGLERS,
            slices: Vec::new(),
            counts: Vec::new(),
        }
    }

    /// Learns of the slices that have begun. A record is added after that.
    pub fn keep_up(&mut self) {
        self.slices = self.shared.all();
        self.counts.resize(self.slices.len(), Count::default());
    }

    pub fn add(&mut self, record: &Record) {
        let begun = |slice: &Slice| slice.begin <= record.issued;
        let number = self.slices.partition_point(begun) - 1;
        let count = &mut self.counts[number];
        let right = record.outcome == Outcome::Right;
        if record.last <= self.slices[number].end {
            count.right += u64::from(right);
        } else {
            count.after.push((record.last, right));
        }
    }

    /// Of each slice of the lane, in their order.
    pub fn finish(mut self) -> Vec<Yield> {
        self.keep_up();
        let counted = self.slices.iter().zip(self.counts);
        counted
            .filter(|(slice, _)| slice.lane == self.lane)
            .map(|(slice, mut count)| {
                count.after.sort_unstable();
                let counts = count.after.len().saturating_sub(self.stragglers);
                count.after.truncate(counts);
                let last = count.after.last().map_or(slice.end, |(last, _)| *last);
                let in_time = |&&(last, right): &&(u64, bool)| right && last <= slice.over;
                let right = count.right + count.after.iter().filter(in_time).count() as u64;
                Yield {
                    begin: slice.begin,
                    length: last.min(slice.over) - slice.begin,
                    right,
                    drained: slice.over - slice.end,
                    cut: slice.cut,
                }
            })
            .collect()
    }
}
