//! Stops of a thread's loop, with their causes.

use std::fs::File;
use std::os::unix::fs::FileExt;

/// A stop shorter than this is not counted.
pub const LEAST_GAP: u64 = 200_000;
const MOST_LISTED: usize = 1000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Many small steps: the loop itself had too much to do.
    OwnWork = 0,
    /// The thread could run and another ran in its place.
    OtherThread = 1,
    /// The thread ran or slept and time was gone: the hypervisor, or a stop of the process.
    Outside = 2,
}

impl Cause {
    pub const ALL: [Cause; 3] = [Cause::OwnWork, Cause::OtherThread, Cause::Outside];

    pub fn name(self) -> &'static str {
        match self {
            Cause::OwnWork => "own_work",
            Cause::OtherThread => "other_thread",
            Cause::Outside => "outside",
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Gap {
    pub at: u64,
    pub length: u64,
    pub cause: Cause,
}

#[derive(Clone, Copy, Debug, Default)]
pub struct Total {
    pub count: u64,
    pub total: u64,
    pub longest: u64,
}

/// The gaps of one thread, or of all.
pub struct Gaps {
    pub list: Vec<Gap>,
    pub totals: [Total; 3],
}

impl Default for Gaps {
    fn default() -> Gaps {
        Gaps {
            list: Vec::with_capacity(MOST_LISTED),
            totals: [Total::default(); 3],
        }
    }
}

impl Gaps {
    pub fn add(&mut self, gap: Gap) {
        let total = &mut self.totals[gap.cause as usize];
        total.count += 1;
        total.total += gap.length;
        total.longest = total.longest.max(gap.length);
        if self.list.len() < MOST_LISTED {
            self.list.push(gap);
        }
    }

    /// Adds those of another thread; the list keeps the earliest.
    pub fn merge(&mut self, other: &Gaps) {
        for (mine, its) in self.totals.iter_mut().zip(&other.totals) {
            mine.count += its.count;
            mine.total += its.total;
            mine.longest = mine.longest.max(its.longest);
        }
        self.list.extend_from_slice(&other.list);
        self.list.sort_by_key(|gap| gap.at);
        self.list.truncate(MOST_LISTED);
    }
}

/// How long this thread has waited in a run queue, as the kernel counts it.
pub struct RunQueue {
    file: Option<File>,
    waited: u64,
}

impl RunQueue {
    /// Of the thread that calls it.
    pub fn open() -> RunQueue {
        let mut queue = RunQueue {
            file: File::open("/proc/thread-self/schedstat").ok(),
            waited: 0,
        };
        queue.growth();
        queue
    }

    /// Nanoseconds waited since the call before.
    pub fn growth(&mut self) -> u64 {
        let mut text = [0u8; 96];
        let length = match &self.file {
            Some(file) => file.read_at(&mut text, 0).unwrap_or(0),
            None => 0,
        };
        let waited = std::str::from_utf8(&text[..length])
            .ok()
            .and_then(|text| text.split_ascii_whitespace().nth(1))
            .and_then(|word| word.parse().ok())
            .unwrap_or(self.waited);
        let growth = waited.saturating_sub(self.waited);
        self.waited = waited;
        growth
    }
}
