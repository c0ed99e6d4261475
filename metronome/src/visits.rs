//! Sessions: each visitor sends its requests one after another, and carries values from answers on.
//!
//! The first request of a visit is due when the visitor arrives, each other when the visitor has the
//! answer before and has thought. Requests are numbered in the order in which they are claimed.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::arrivals::Random;
use crate::record::Outcome;
use crate::schedule::Claim;
use crate::values::{Kept, Source, Template};

pub const MOST_STEPS: usize = 16;

/// How long a visitor thinks before a request, nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Think {
    Fixed(u64),
    /// With an exponential distribution of this mean.
    Random(f64),
}

/// A value that an answer has for later requests.
#[derive(Clone, Debug)]
pub struct Take {
    /// Its number among the values of the session.
    pub value: usize,
    pub source: Source,
}

#[derive(Clone, Debug)]
pub struct Step {
    /// The number of the kind of its request.
    pub kind: usize,
    pub think: Think,
    pub takes: Vec<Take>,
}

/// What each visitor does.
#[derive(Clone, Debug)]
pub struct Session {
    pub steps: Vec<Step>,
    pub values: usize,
    /// The text of each kind of request.
    pub templates: Vec<Template>,
    /// Of the times that visitors think.
    pub seed: u64,
}

impl Session {
    fn think(&self, visit: u64, step: usize) -> u64 {
        match self.steps[step].think {
            Think::Fixed(time) => time,
            Think::Random(mean) => {
                // Whatever the order of the answers, a visitor thinks as long.
                let number = visit * MOST_STEPS as u64 + step as u64;
                let mut random =
                    Random::new(!self.seed ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
                (-random.fraction().ln() * mean) as u64
            }
        }
    }
}

/// A visit whose next request waits, or is under way.
#[derive(Debug)]
pub struct Visit {
    pub number: u64,
    pub step: usize,
    /// The number of the kind of request.
    pub kind: usize,
    /// The request as it is written.
    pub text: Arc<[u8]>,
    values: Vec<String>,
    cookies: Vec<(String, String)>,
}

/// How the visits went.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Visited {
    pub scheduled: u64,
    pub started: u64,
    pub completed: u64,
    /// Of each step, the visits that ended there: with a wrong or no answer, and as the right answer
    /// lacked a value.
    pub broken: Vec<[u64; 2]>,
}

#[derive(Debug)]
struct Queue {
    /// The first visit that has not begun.
    next: u64,
    /// When further requests of visits are due, with the numbers of the visits.
    due: BinaryHeap<Reverse<(u64, u64)>>,
    waiting: HashMap<u64, Visit>,
    /// Claimed, by the number of the request.
    claimed: HashMap<u64, Visit>,
    visited: Visited,
}

/// The visits of a load, for all threads.
#[derive(Debug)]
pub struct Visits {
    session: Session,
    /// When each visitor arrives.
    arrivals: Vec<u64>,
    queue: Mutex<Queue>,
    /// When the first request that nobody claimed is due.
    earliest: AtomicU64,
    next: AtomicU64,
    /// Of each request when it was due, and its visit and step.
    dues: Vec<AtomicU64>,
    places: Vec<AtomicU32>,
}

impl Visits {
    /// All memory is touched here, as a page fault under load would delay a request.
    pub fn new(session: Session, arrivals: Vec<u64>) -> Visits {
        let most = arrivals.len() * session.steps.len();
        let visits = Visits {
            earliest: AtomicU64::new(arrivals.first().copied().unwrap_or(u64::MAX)),
            queue: Mutex::new(Queue {
                next: 0,
                due: BinaryHeap::new(),
                waiting: HashMap::new(),
                claimed: HashMap::new(),
                visited: Visited {
                    scheduled: arrivals.len() as u64,
                    broken: vec![[0; 2]; session.steps.len()],
                    ..Visited::default()
                },
            }),
            session,
            arrivals,
            next: AtomicU64::new(0),
            dues: (0..most).map(|_| AtomicU64::default()).collect(),
            places: (0..most).map(|_| AtomicU32::default()).collect(),
        };
        for (due, place) in visits.dues.iter().zip(&visits.places) {
            due.store(u64::MAX, Ordering::Relaxed);
            place.store(u32::MAX, Ordering::Relaxed);
        }
        visits
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        // A thread that panicked ends the load.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn steps(&self) -> usize {
        self.session.steps.len()
    }

    pub fn seed(&self) -> u64 {
        self.session.seed
    }

    /// Requests of all visits, at most.
    pub fn most(&self) -> u64 {
        self.dues.len() as u64
    }

    /// When the first request that nobody claimed is due.
    pub fn next(&self) -> Option<u64> {
        Some(self.earliest.load(Ordering::Acquire)).filter(|&due| due < u64::MAX)
    }

    /// Number of requests claimed so far.
    pub fn claimed(&self) -> u64 {
        self.next.load(Ordering::Acquire)
    }

    /// When a request that was claimed was due.
    pub fn due(&self, request: u64) -> u64 {
        self.dues[request as usize].load(Ordering::Relaxed)
    }

    /// The number of a claimed request among those of all visits, a visit's one after another.
    pub fn place(&self, request: u64) -> u64 {
        self.places[request as usize].load(Ordering::Relaxed).into()
    }

    /// Claims the request that is due first, if it is due. `room`: the number of the first request
    /// whose record would have no room.
    pub fn claim(&self, now: u64, room: u64) -> Claim {
        if self.earliest.load(Ordering::Acquire) > now {
            return Claim::Nothing;
        }
        let mut queue = self.queue();
        let (due, waits) = match self.first(&queue) {
            Some((due, waits)) if due <= now => (due, waits),
            _ => return Claim::Nothing,
        };
        let request = self.next.load(Ordering::Relaxed);
        if request >= room {
            return Claim::NoRoom;
        }
        let visit = match waits {
            Some(number) => {
                queue.due.pop();
                queue.waiting.remove(&number)
            }
            None => {
                let number = queue.next;
                queue.next += 1;
                queue.visited.started += 1;
                self.begin(number)
            }
        };
        let visit = match visit {
            Some(visit) => visit,
            None => return Claim::Nothing,
        };
        let place = visit.number as usize * self.steps() + visit.step;
        self.dues[request as usize].store(due, Ordering::Relaxed);
        self.places[request as usize].store(place as u32, Ordering::Relaxed);
        queue.claimed.insert(request, visit);
        self.next.store(request + 1, Ordering::Release);
        self.publish(&queue);
        Claim::Request(request)
    }

    /// The visit whose request was claimed.
    pub fn take(&self, request: u64) -> Option<Visit> {
        self.queue().claimed.remove(&request)
    }

    fn begin(&self, number: u64) -> Option<Visit> {
        let values = vec![String::new(); self.session.values];
        let kind = self.session.steps[0].kind;
        Some(Visit {
            number,
            step: 0,
            kind,
            text: self.session.templates[kind].text(&values, &[])?,
            values,
            cookies: Vec::new(),
        })
    }

    /// When the first request that nobody claimed is due, and the visit that waits with it.
    fn first(&self, queue: &Queue) -> Option<(u64, Option<u64>)> {
        let arrival = self
            .arrivals
            .get(queue.next as usize)
            .map(|&due| (due, None));
        let waits = queue
            .due
            .peek()
            .map(|&Reverse((due, number))| (due, Some(number)));
        match (arrival, waits) {
            (Some(arrival), Some(waits)) if arrival.0 <= waits.0 => Some(arrival),
            (arrival, waits) => waits.or(arrival),
        }
    }

    fn publish(&self, queue: &Queue) {
        let due = self.first(queue).map_or(u64::MAX, |(due, _)| due);
        self.earliest.store(due, Ordering::Release);
    }

    /// What is kept of the answer to a visit's request.
    pub fn keeps(&self, visit: &Visit) -> Kept {
        let takes = &self.session.steps[visit.step].takes;
        Kept::of(takes.iter().map(|take| &take.source))
    }

    /// Goes on with a visit whose request has ended: its answer was there at `last`.
    pub fn go_on(&self, mut visit: Visit, outcome: Outcome, kept: &Kept, last: u64) {
        let (step, right) = (visit.step, outcome == Outcome::Right);
        let goes_on = right && self.carry(&mut visit, kept);
        let mut queue = self.queue();
        if !goes_on {
            queue.visited.broken[step][usize::from(right)] += 1;
        } else if visit.step == self.steps() {
            queue.visited.completed += 1;
        } else {
            let due = last + self.session.think(visit.number, visit.step);
            queue.due.push(Reverse((due, visit.number)));
            queue.waiting.insert(visit.number, visit);
            self.publish(&queue);
        }
    }

    /// Takes what the answer has, and writes the next request. False where a value is missing.
    fn carry(&self, visit: &mut Visit, kept: &Kept) -> bool {
        for (name, text) in kept.cookies() {
            match visit.cookies.iter_mut().find(|cookie| cookie.0 == name) {
                Some(cookie) => cookie.1 = text,
                None => visit.cookies.push((name, text)),
            }
        }
        for take in &self.session.steps[visit.step].takes {
            match kept.value(&take.source) {
                Some(text) => visit.values[take.value] = text,
                None => return false,
            }
        }
        visit.step += 1;
        if let Some(step) = self.session.steps.get(visit.step) {
            visit.kind = step.kind;
            match self.session.templates[step.kind].text(&visit.values, &visit.cookies) {
                Some(text) => visit.text = text,
                None => return false,
            }
        }
        true
    }

    pub fn visited(&self) -> Visited {
        self.queue().visited.clone()
    }

    /// When the requests were due that are due before a time and that nobody claimed, ascending, with
    /// their kinds.
    pub fn unclaimed(&self, before: u64) -> Vec<(u64, usize)> {
        let queue = self.queue();
        let first = self.session.steps[0].kind;
        let arrivals = self.arrivals[queue.next as usize..].iter();
        let waiting = queue.due.iter().map(|&Reverse((due, number))| {
            let kind = queue.waiting.get(&number).map_or(first, |visit| visit.kind);
            (due, kind)
        });
        let mut all: Vec<(u64, usize)> = arrivals
            .map(|&due| (due, first))
            .chain(waiting)
            .filter(|&(due, _)| due < before)
            .collect();
        all.sort_unstable();
        all
    }
}
