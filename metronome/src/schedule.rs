//! When requests are due, and which thread sends which.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use crate::slices::Slices;
use crate::turns::Turns;
use crate::visits::Visits;

/// A mean rate for a duration.
#[derive(Clone, Copy, Debug)]
pub struct Rate {
    pub per_second: f64,
    pub duration_ns: u64,
    pub scheduled: u64,
}

impl Rate {
    pub fn new(per_second: f64, duration_s: f64) -> Rate {
        // Round first: 0.1 * 30 in floating point would give 4 requests.
        let product = (per_second * duration_s * 1e6).round() / 1e6;
        Rate {
            per_second,
            duration_ns: (duration_s * 1e9).round() as u64,
            scheduled: product.ceil() as u64,
        }
    }

    /// Nanoseconds from the start at which a request of a constant rate is due.
    pub fn due(&self, request: u64) -> u64 {
        (request as f64 * 1e9 / self.per_second).round() as u64
    }

    /// Seconds of the load, the last of which may be a part.
    pub fn seconds(&self) -> usize {
        ((self.duration_ns + 999_999_999) / 1_000_000_000) as usize
    }

    /// The second of the load to which a time belongs. What is after the end belongs to the last.
    pub fn second(&self, time_ns: u64) -> usize {
        ((time_ns / 1_000_000_000) as usize).min(self.seconds() - 1)
    }
}

/// When the requests of one lane are due. They are numbered from 0.
#[derive(Clone)]
pub struct Dues {
    pub rate: Rate,
    /// Due times of all lanes' requests; None of a constant rate.
    times: Option<Arc<Vec<u64>>>,
    turns: Turns,
    lane: usize,
    /// Of a load of visits, that many at most.
    pub scheduled: u64,
    /// They say when requests are due.
    pub visits: Option<Arc<Visits>>,
}

impl Dues {
    pub fn new(rate: Rate, times: Option<Arc<Vec<u64>>>, turns: Turns, lane: usize) -> Dues {
        let scheduled = turns.count(lane, rate.scheduled);
        Dues {
            rate,
            times,
            turns,
            lane,
            scheduled,
            visits: None,
        }
    }

    pub fn of_visits(self, visits: Arc<Visits>) -> Dues {
        Dues {
            scheduled: visits.most(),
            visits: Some(visits),
            ..self
        }
    }

    /// The number of a request among those of all lanes.
    pub fn number(&self, request: u64) -> u64 {
        self.turns.number(self.lane, request)
    }

    /// Nanoseconds from the start at which a request is due.
    pub fn due(&self, request: u64) -> u64 {
        if let Some(visits) = &self.visits {
            return visits.due(request);
        }
        let number = self.number(request);
        match &self.times {
            Some(times) => times[number as usize],
            None => self.rate.due(number),
        }
    }
}

/// What a thread that wants to send can do.
#[derive(Debug, PartialEq, Eq)]
pub enum Claim {
    /// The request is this thread's.
    Request(u64),
    /// The next request is not due yet, or none is left.
    Nothing,
    /// The next request is due, and there is no room for its record.
    NoRoom,
}

/// One schedule of a lane for all threads: of due times, or in a closed loop of slices. A request
/// belongs to the thread that claims it, so the requests leave in the order of their due times
/// whichever threads have free connections.
pub struct Schedule {
    dues: Dues,
    pub slices: Option<Arc<Slices>>,
    next: AtomicU64,
}

impl Schedule {
    pub fn new(dues: Dues, slices: Option<Arc<Slices>>) -> Schedule {
        Schedule {
            dues,
            slices,
            next: AtomicU64::new(0),
        }
    }

    /// When the first request that nobody claimed is due; None after the last, and in a closed loop
    /// while the lane may not send.
    pub fn next(&self, now: u64) -> Option<u64> {
        if let Some(slices) = &self.slices {
            return slices.begin(self.dues.lane, now);
        }
        if let Some(visits) = &self.dues.visits {
            return visits.next();
        }
        let next = self.next.load(Ordering::Relaxed);
        if next < self.dues.scheduled {
            Some(self.dues.due(next))
        } else {
            None
        }
    }

    /// When a request that was claimed at a time was due: in a closed loop since the slice began.
    pub fn due(&self, request: u64, claimed: u64) -> u64 {
        match &self.slices {
            Some(slices) => slices.begin(self.dues.lane, claimed).unwrap_or(claimed),
            None => self.dues.due(request),
        }
    }

    pub fn visits(&self) -> Option<&Visits> {
        self.dues.visits.as_deref()
    }

    /// Number of requests claimed so far.
    pub fn claimed(&self) -> u64 {
        match &self.dues.visits {
            Some(visits) => visits.claimed(),
            None => self.next.load(Ordering::Acquire),
        }
    }

    /// Claims the next request if it is due. `room`: the number of the first request whose record
    /// would have no room.
    pub fn claim(&self, now: u64, room: u64) -> Claim {
        match &self.dues.visits {
            Some(_) if now >= self.dues.rate.duration_ns => return Claim::Nothing,
            Some(visits) => return visits.claim(now, room),
            None => {}
        }
        if let Some(slices) = &self.slices {
            if !slices.take(self.dues.lane, now) {
                return Claim::Nothing;
            }
        }
        loop {
            let next = self.next.load(Ordering::Relaxed);
            if self.slices.is_none()
                && (next >= self.dues.scheduled
                    || now >= self.dues.rate.duration_ns
                    || self.dues.due(next) > now)
            {
                return Claim::Nothing;
            }
            if next >= room {
                if let Some(slices) = &self.slices {
                    slices.give_back(now);
                }
                return Claim::NoRoom;
            }
            let claimed = self.next.compare_exchange_weak(
                next,
                next + 1,
                Ordering::AcqRel,
                Ordering::Relaxed,
            );
            if claimed.is_ok() {
                return Claim::Request(next);
            }
        }
    }
}
