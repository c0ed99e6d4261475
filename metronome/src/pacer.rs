//! The loop of one thread: it sends what is due, reads what comes, and keeps track of itself.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::SocketAddr;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Barrier};

use crate::connection::{Carried, Connection, Failure, Link};
use crate::gaps::{Cause, Gap, Gaps, RunQueue, LEAST_GAP};
use crate::http::End;
use crate::plan::{Form, Lane, Plan};
use crate::record::{Outcome, Record, Ring};
use crate::schedule::{Claim, Schedule};
use crate::sys::{self, Epoll};
use crate::tls::{Client, Plain};

/// Before a due time the thread polls at least and at most this long: sleeps end up to so much late,
/// those of a core that falls asleep more than others.
const LEAST_POLLED_NS: u64 = 60_000;
const MOST_POLLED_NS: u64 = 500_000;
/// Longer than the least only for so much of the busiest second.
const POLLED_LONGER: f64 = 0.1;
/// In the last moment it only watches the clock, as an answer read then would delay the request.
const WATCHED_NS: u64 = 2_000;
/// A thread that polls more of the time does not ask to run before others, but for the largest
/// share: the kernel stops a real-time thread that hardly sleeps.
const MOST_POLLED_FIRST: f64 = 0.6;
const UPKEEP_NS: u64 = 10_000_000;
const MOST_EVENTS: usize = 8;
const MOST_SENDS: usize = 8;
const MOST_CONNECTING: usize = 64;
const MOST_OPENING_NS: u64 = 5_000_000_000;
const BUFFER: usize = 65_536;
/// How far a receive stamp may lie outside of the possible times.
const STAMP_TOLERANCE_NS: u64 = 50_000;
/// A connection that ends unused within this time is opened again only when a request needs it, as
/// a server that closes whatever it accepts would otherwise keep the thread busy.
const LEAST_IDLE_NS: u64 = 100_000_000;
const WAIT_FOR_ROOM_NS: u64 = 100_000;
/// In a closed loop a connection that cannot be opened rests so long at least.
const REST_NS: u64 = 10_000_000;
/// So long a request is left to a thread that has an idle connection, before another opens one: a
/// thread that does not send it in this time stands still.
const LEFT_NS: u64 = LEAST_GAP;

/// Published by each thread, on a cache line of its own.
#[repr(align(64))]
pub struct Free {
    since: AtomicU64,
    /// Whether it has an open connection that carries no request.
    idle: AtomicBool,
}

/// The connections of all threads to the server of a lane that are open or being opened.
#[derive(Default)]
pub struct OpenCount {
    now: AtomicU64,
    most: AtomicU64,
}

impl OpenCount {
    fn add(&self) {
        let now = self.now.fetch_add(1, Ordering::Relaxed) + 1;
        self.most.fetch_max(now, Ordering::Relaxed);
    }

    fn subtract(&self) {
        self.now.fetch_sub(1, Ordering::Relaxed);
    }

    pub fn most(&self) -> u64 {
        self.most.load(Ordering::Relaxed)
    }
}

/// A request as it is written: of the plan, or of a visit.
enum Written<'a> {
    Planned(&'a [u8]),
    Own(Arc<[u8]>),
}

impl Deref for Written<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Written::Planned(text) => text,
            Written::Own(text) => text,
        }
    }
}

/// What the threads share of a lane.
pub struct Track<'a> {
    pub lane: &'a Lane,
    pub address: SocketAddr,
    pub client: Option<Client>,
    pub schedule: Schedule,
    pub ring: Ring,
    pub open_count: OpenCount,
    free: Vec<Free>,
}

impl<'a> Track<'a> {
    pub fn new(
        lane: &'a Lane,
        threads: usize,
        address: SocketAddr,
        client: Option<Client>,
        schedule: Schedule,
        ring: Ring,
    ) -> Track<'a> {
        let never = |_| Free {
            since: AtomicU64::new(u64::MAX),
            idle: AtomicBool::new(false),
        };
        Track {
            lane,
            address,
            client,
            schedule,
            ring,
            open_count: OpenCount::default(),
            free: (0..threads).map(never).collect(),
        }
    }
}

/// What the threads share.
pub struct Shared<'a> {
    pub plan: &'a Plan,
    pub tracks: Vec<Track<'a>>,
    /// How long before a due time a thread polls.
    polled_ns: u64,
    /// The share of the busiest second in which a thread polls: each does so for the next request,
    /// whichever sends it.
    polled: f64,
    /// The monotonic time at which request 0 is due.
    pub start: AtomicU64,
    pub ready: Barrier,
    pub go: Barrier,
}

impl<'a> Shared<'a> {
    pub fn new(plan: &'a Plan, tracks: Vec<Track<'a>>) -> Self {
        let polled_ns = polled_before(plan);
        Shared {
            plan,
            tracks,
            polled_ns,
            polled: plan.busiest(polled_ns),
            start: AtomicU64::new(0),
            ready: Barrier::new(plan.threads + 1),
            go: Barrier::new(plan.threads + 1),
        }
    }
}

/// What a thread tells of its load, besides the records.
pub struct Report {
    pub lanes: Vec<LaneReport>,
    pub gaps: Gaps,
    pub polling: Vec<u64>,
    pub cpu: (u64, u64),
    /// Whether the thread ran before others.
    pub first: bool,
    pub stamped: bool,
    pub first_offset: i64,
    pub last_offset: i64,
    pub largest_offset_step: u64,
}

/// What a thread tells of a lane.
#[derive(Default)]
pub struct LaneReport {
    pub failures: BTreeMap<Failure, u64>,
    pub first_protocol_error: String,
    /// Integral of the number of requests under way over time.
    pub under_way: u128,
    pub stamps_missing: u64,
    pub stamps_rejected: u64,
    pub connects: u64,
    pub connects_failed: u64,
    /// Requests that were due while no connection was free.
    pub waited: u64,
    pub connecting_sum: u128,
    pub connecting_most: u64,
    pub surplus: u64,
    pub reopened: u64,
    /// Since when each connection is free that was so at the end, from the start of the load.
    pub free: Vec<u64>,
}

/// A thread's connections to the server of a lane.
struct Pool {
    /// Free connections, longest free first: those that are open, with their generations, and
    /// those that are not. An open entry is void where its connection has ended since.
    open: VecDeque<(usize, u32)>,
    unopened: VecDeque<usize>,
    /// Requests under way, and since when.
    busy: u64,
    busy_changed: u64,
    no_room_since: Option<u64>,
    report: LaneReport,
}

impl Pool {
    fn new(connections: usize) -> Pool {
        Pool {
            open: VecDeque::with_capacity(2 * connections),
            unopened: VecDeque::with_capacity(connections + 1),
            busy: 0,
            busy_changed: 0,
            no_room_since: None,
            report: LaneReport::default(),
        }
    }

    fn count_busy(&mut self, until: u64) {
        let until = until.max(self.busy_changed);
        self.report.under_way += u128::from(self.busy) * u128::from(until - self.busy_changed);
        self.busy_changed = until;
    }
}

/// CLOCK_REALTIME less CLOCK_MONOTONIC, best of several measurements.
pub fn clock_offset(attempts: usize) -> (i64, u64) {
    let mut best = (0, u64::MAX);
    for _ in 0..attempts {
        let before = sys::monotonic();
        let real = sys::realtime();
        let after = sys::monotonic();
        if after - before < best.1 {
            let middle = before + (after - before) / 2;
            best = (real as i64 - middle as i64, after - before);
        }
    }
    best
}

/// How many nanoseconds before a due time a thread polls.
pub fn polled_before(plan: &Plan) -> u64 {
    let longer = POLLED_LONGER / plan.busiest(LEAST_POLLED_NS);
    let polled = (LEAST_POLLED_NS as f64 * longer).round() as u64;
    polled.clamp(LEAST_POLLED_NS, MOST_POLLED_NS)
}

/// Whether work that was due at a time waits for a request that is due now or in a moment. Of more
/// than 100,000 requests/s there always is one, so it does not wait for long.
pub fn postpones(request: Option<u64>, work: u64, now: u64) -> bool {
    request.map_or(false, |due| {
        due < now + 10_000 && now < due.min(work) + UPKEEP_NS
    })
}

pub struct Pacer<'a> {
    shared: &'a Shared<'a>,
    index: usize,
    epoll: Epoll,
    /// `count` for each lane, one lane after the other.
    connections: Vec<Connection>,
    count: usize,
    pools: Vec<Pool>,
    /// The lane that may send next, so that one with many requests due does not delay another.
    next_lane: usize,
    buffer: Vec<u8>,
    plain: Vec<u8>,
    timeout: u64,
    start: u64,
    end: u64,
    /// The clock as last read.
    now: u64,
    /// When the wait for events last returned, and the time of gaps since.
    work_began: u64,
    gaps_of_work: u64,
    /// Start and end of a sleep that an event ended, until its arrival is known.
    woken: Option<(u64, u64)>,
    /// Until when the last stop lasted that was not the generator's own.
    disturbed_from: u64,
    disturbed_until: u64,
    offset: i64,
    run_queue: RunQueue,
    connecting: usize,
    report: Report,
}

impl<'a> Pacer<'a> {
    pub fn new(shared: &'a Shared<'a>, index: usize) -> io::Result<Pacer<'a>> {
        let plan = shared.plan;
        let count = (plan.connections - index + plan.threads - 1) / plan.threads;
        let (offset, _) = clock_offset(1000);
        Ok(Pacer {
            shared,
            index,
            epoll: Epoll::new(MOST_EVENTS)?,
            connections: (0..count * plan.lanes.len())
                .map(|_| Connection::default())
                .collect(),
            count,
            pools: plan.lanes.iter().map(|_| Pool::new(count)).collect(),
            next_lane: 0,
            // Written, so that the pages are there.
            buffer: vec![1; BUFFER],
            plain: vec![1; BUFFER],
            timeout: (plan.timeout_s * 1e9) as u64,
            start: u64::MAX,
            end: u64::MAX,
            now: sys::monotonic(),
            work_began: 0,
            gaps_of_work: 0,
            woken: None,
            disturbed_from: 0,
            disturbed_until: 0,
            offset,
            run_queue: RunQueue::open(),
            connecting: 0,
            report: Report {
                lanes: Vec::new(),
                gaps: Gaps::default(),
                polling: vec![0; plan.schedule().seconds()],
                cpu: (0, 0),
                first: false,
                stamped: true,
                first_offset: offset,
                last_offset: offset,
                largest_offset_step: 0,
            },
        })
    }

    fn lane(&self, position: usize) -> usize {
        position / self.count
    }

    /// The number of a connection among those of all threads to its lane.
    fn number(&self, position: usize) -> u32 {
        (position % self.count * self.shared.plan.threads + self.index) as u32
    }

    fn track(&self, position: usize) -> &'a Track<'a> {
        &self.shared.tracks[self.lane(position)]
    }

    /// The form of the request that a connection carries.
    fn form(&self, position: usize) -> &'a Form {
        &self.shared.plan.forms[self.form_number(position)]
    }

    /// The request that a connection carries, as it is written.
    fn request(&self, position: usize) -> Written<'a> {
        match &self.connections[position].visit {
            Some(visit) => Written::Own(visit.text.clone()),
            None => {
                Written::Planned(&self.track(position).lane.requests[self.form_number(position)])
            }
        }
    }

    fn form_number(&self, position: usize) -> usize {
        let carried = &self.connections[position].request;
        carried.as_ref().map_or(0, |carried| carried.form)
    }

    fn pool(&mut self, position: usize) -> &mut Pool {
        let lane = self.lane(position);
        &mut self.pools[lane]
    }

    /// Opens the connections, waits for the others, plays the load.
    pub fn run(mut self) -> io::Result<Report> {
        let prepared = self.prepare();
        self.shared.ready.wait();
        // The main thread sets the start between the two.
        self.shared.go.wait();
        prepared?;
        self.start = self.shared.start.load(Ordering::Acquire);
        let plan = self.shared.plan;
        if plan.closed.is_none() {
            self.end = self.start + plan.schedule().duration_ns;
        }
        // Nor may a closed loop, which may never sleep.
        self.report.first =
            plan.closed.is_none() && self.shared.polled <= MOST_POLLED_FIRST && sys::run_first();
        if !self.report.first {
            sys::take_largest_share();
        }
        let before = sys::thread_cpu();
        self.run_queue.growth();
        self.play()?;
        let after = sys::thread_cpu();
        self.report.cpu = (after.0 - before.0, after.1 - before.1);
        self.report.lanes = self.pools.into_iter().map(|pool| pool.report).collect();
        Ok(self.report)
    }

    fn relative(&self, time: u64) -> u64 {
        time.saturating_sub(self.start)
    }

    /// Reads the clock. A step of it is a gap: nothing here takes so long.
    fn tick(&mut self) -> u64 {
        let before = self.now;
        self.now = sys::monotonic();
        if self.now - before > LEAST_GAP {
            self.note_gap(before, Some(Cause::Outside));
        }
        self.now
    }

    /// Notes a gap that ends now. `cause` holds unless the thread waited in a run queue.
    fn note_gap(&mut self, from: u64, cause: Option<Cause>) {
        let length = self.now - from;
        let waited = self.run_queue.growth();
        let cause = if waited * 2 >= length {
            Cause::OtherThread
        } else {
            cause.unwrap_or(Cause::OwnWork)
        };
        self.gaps_of_work += length;
        if self.now <= self.start {
            return;
        }
        if cause != Cause::OwnWork {
            // A late wake is noted when its event is read, maybe after a gap that came later.
            self.disturbed_from = if from > self.disturbed_until + LEAST_GAP {
                from
            } else {
                self.disturbed_from.min(from)
            };
            self.disturbed_until = self.disturbed_until.max(self.now);
        }
        let at = self.relative(from);
        let length = self.now - from.max(self.start);
        self.report.gaps.add(Gap { at, length, cause });
    }

    /// Opens as many connections as it can before the load.
    fn prepare(&mut self) -> io::Result<()> {
        let count = self.connections.len();
        if !self.shared.plan.keepalive || self.shared.plan.on_demand {
            for position in 0..count {
                self.pool(position).unopened.push_back(position);
            }
            return Ok(());
        }
        // The lanes in turn, as one that does not answer must not delay another.
        let (lanes, of_lane) = (self.pools.len(), self.count);
        let position = |attempt: usize| attempt % lanes * of_lane + attempt / lanes;
        let limit = sys::monotonic() + self.timeout.min(MOST_OPENING_NS);
        let mut next = 0;
        loop {
            let now = self.tick();
            while next < count && self.connecting < MOST_CONNECTING && now < limit {
                self.connect(position(next), limit);
                next += 1;
            }
            if now >= limit {
                for attempt in 0..count {
                    let position = position(attempt);
                    if attempt >= next {
                        self.pool(position).unopened.push_back(position);
                    } else if matches!(
                        self.connections[position].link,
                        Link::Connecting | Link::Greeting
                    ) {
                        self.fail_connect(position, Failure::ConnectTimeout);
                    }
                }
                return Ok(());
            }
            if next == count && self.connecting == 0 {
                return Ok(());
            }
            let events = self.epoll.wait((limit - now).min(UPKEEP_NS))?;
            self.handle(events)?;
        }
    }

    fn play(&mut self) -> io::Result<()> {
        let scan_every = (self.timeout / 100).clamp(1_000_000, 100_000_000);
        let mut next_scan = self.start + scan_every;
        let mut next_upkeep = sys::monotonic();
        self.now = sys::monotonic();
        self.work_began = self.now;
        for connection in &mut self.connections {
            connection.free_since = self.start;
        }
        for lane in 0..self.pools.len() {
            self.pools[lane].busy_changed = self.start;
            self.publish(lane);
        }
        // Since when polls bring nothing.
        let mut polling: Option<u64> = None;
        loop {
            let mut now = self.tick();
            if let Some(from) = polling.take() {
                self.count_polling(from, now);
            }
            let change = self.advance();
            let mut due = self.send_due(now)?;
            now = self.now;
            if now >= next_scan && !postpones(due, next_scan, now) {
                self.scan_timeouts();
                next_scan = now + scan_every;
                continue;
            }
            if now >= next_upkeep && !postpones(due, next_upkeep, now) {
                self.keep_up();
                next_upkeep = now + UPKEEP_NS;
                continue;
            }
            if now >= self.end {
                if self.pools.iter().all(|pool| pool.busy == 0) {
                    break;
                }
                due = None;
            }
            let mut wake = next_scan.min(next_upkeep).min(change);
            if now < self.end {
                wake = wake.min(self.end);
            }
            if self.pools.iter().any(|pool| pool.no_room_since.is_some()) {
                wake = wake.min(now + WAIT_FOR_ROOM_NS);
            }
            self.end_work();
            let polls = due.map_or(false, |due| due < now + self.shared.polled_ns);
            if polls {
                let due = due.unwrap_or(0);
                if due > now && due < now + WATCHED_NS {
                    while self.now < due {
                        self.tick();
                    }
                    self.count_polling(now, due);
                    self.work_began = self.now;
                    continue;
                }
                let events = self.epoll.wait(0)?;
                self.work_began = self.tick();
                self.gaps_of_work = 0;
                if events == 0 {
                    if due > now {
                        polling = Some(now);
                    }
                    continue;
                }
                self.handle(events)?;
            } else {
                if let Some(due) = due {
                    wake = wake.min(due - self.shared.polled_ns);
                }
                let events = self.epoll.wait(wake.saturating_sub(now))?;
                self.now = sys::monotonic();
                self.work_began = self.now;
                self.gaps_of_work = 0;
                if self.now > wake + LEAST_GAP {
                    self.note_gap(wake.max(now), Some(Cause::Outside));
                    self.gaps_of_work = 0;
                } else if events > 0 {
                    self.woken = Some((now, self.now));
                }
                self.handle(events)?;
                self.woken = None;
            }
        }
        for pool in &mut self.pools {
            pool.count_busy(self.now);
            let connections = &self.connections;
            let open = pool.open.iter().filter(|&&(position, generation)| {
                let connection: &Connection = &connections[position];
                connection.generation == generation
            });
            let free = open.map(|entry| entry.0).chain(pool.unopened.drain(..));
            pool.report.free = free
                .map(|position| connections[position].free_since.saturating_sub(self.start))
                .collect();
        }
        Ok(())
    }

    /// Begins the next slice of a closed loop if it is time, or ends the load. Returns when to look
    /// again.
    fn advance(&mut self) -> u64 {
        let slices = match &self.shared.tracks[0].schedule.slices {
            Some(slices) if self.now < self.end => slices,
            _ => return u64::MAX,
        };
        match slices.advance(self.relative(self.now)) {
            Some(time) => self.start + time,
            None => {
                self.end = self.now;
                u64::MAX
            }
        }
    }

    /// Counts the work since the last wait as a gap where it took long in small steps.
    fn end_work(&mut self) {
        let from = self.work_began + self.gaps_of_work;
        if self.now > from + LEAST_GAP {
            self.note_gap(from, None);
        }
    }

    fn count_polling(&mut self, from: u64, until: u64) {
        if until > self.start {
            let second = self.shared.plan.schedule().second(self.relative(until));
            self.report.polling[second] += until - from.max(self.start);
        }
    }

    fn keep_up(&mut self) {
        let (offset, width) = clock_offset(5);
        if width < 2_000 {
            let step = (offset - self.offset).unsigned_abs();
            self.report.largest_offset_step = self.report.largest_offset_step.max(step);
            self.offset = offset;
            self.report.last_offset = offset;
        }
        self.run_queue.growth();
    }

    fn scan_timeouts(&mut self) {
        for position in 0..self.connections.len() {
            let connection = &self.connections[position];
            if connection.deadline > self.now {
                continue;
            }
            if matches!(connection.link, Link::Connecting | Link::Greeting) {
                self.fail_connect(position, Failure::ConnectTimeout);
            } else if connection.request.is_some() {
                self.fail(position, Outcome::Timeout, Failure::Timeout);
            } else {
                self.connections[position].deadline = u64::MAX;
                self.become_free(position);
            }
        }
    }

    /// Since when this thread has a free connection of a lane.
    fn longest_free(&mut self, lane: usize) -> Option<u64> {
        let (pool, connections) = (&mut self.pools[lane], &self.connections);
        while let Some(&(position, generation)) = pool.open.front() {
            if connections[position].generation == generation {
                break;
            }
            pool.open.pop_front();
        }
        let open = pool
            .open
            .front()
            .map(|&(position, _)| connections[position].free_since);
        let unopened = pool
            .unopened
            .front()
            .map(|&position| connections[position].free_since);
        match (open, unopened) {
            (Some(open), Some(unopened)) => Some(open.min(unopened)),
            (open, unopened) => open.or(unopened),
        }
    }

    /// Tells the other threads since when this one has a free connection of a lane.
    fn publish(&mut self, lane: usize) {
        let shared = self.shared;
        if shared.plan.threads > 1 {
            let since = self.longest_free(lane).unwrap_or(u64::MAX);
            let free = &shared.tracks[lane].free[self.index];
            free.since.store(since, Ordering::Relaxed);
            let idle = !self.pools[lane].open.is_empty();
            free.idle.store(idle, Ordering::Relaxed);
        }
    }

    /// Sends what is due, if a connection is free. Returns when the next request is due that this
    /// thread can send.
    fn send_due(&mut self, now: u64) -> io::Result<Option<u64>> {
        let mut now = now;
        for _ in 0..MOST_SENDS {
            match self.claim(now) {
                Some((lane, number, free_since)) => {
                    self.send(lane, number, now, free_since)?;
                    now = self.tick();
                }
                None => break,
            }
        }
        let mut next: Option<u64> = None;
        for lane in 0..self.pools.len() {
            if self.pools[lane].no_room_since.is_none() && self.longest_free(lane).is_some() {
                let schedule = &self.shared.tracks[lane].schedule;
                let due = schedule.next(now.saturating_sub(self.start));
                next = next.into_iter().chain(due).min();
            }
        }
        Ok(next.map(|due| self.start + due))
    }

    /// Claims the next due request of a lane with a free connection, the lanes in turn. Returns the
    /// lane, the request, and since when the connection is free.
    fn claim(&mut self, now: u64) -> Option<(usize, u64, u64)> {
        if now < self.start {
            return None;
        }
        for _ in 0..self.pools.len() {
            let lane = self.next_lane;
            self.next_lane = (lane + 1) % self.pools.len();
            let free_since = match self.longest_free(lane) {
                Some(time) => time,
                None => continue,
            };
            let track = &self.shared.tracks[lane];
            if self.shared.plan.on_demand && self.leaves_to_others(lane, now) {
                continue;
            }
            match track.schedule.claim(now - self.start, track.ring.room()) {
                Claim::Request(number) => {
                    if let Some(from) = self.pools[lane].no_room_since.take() {
                        self.note_gap(from, None);
                    }
                    return Some((lane, number, free_since));
                }
                Claim::Nothing => {}
                Claim::NoRoom => {
                    self.pools[lane].no_room_since.get_or_insert(now);
                }
            }
        }
        None
    }

    /// Whether this thread would open a connection for the next request while another has an idle
    /// one.
    fn leaves_to_others(&self, lane: usize, now: u64) -> bool {
        let track = &self.shared.tracks[lane];
        let just_due = |due: u64| now < self.start + due + LEFT_NS;
        self.pools[lane].open.is_empty()
            && track
                .free
                .iter()
                .any(|other| other.idle.load(Ordering::Relaxed))
            && track
                .schedule
                .next(now - self.start)
                .map_or(false, just_due)
    }

    /// Takes a free connection: an open one where there is, the one that is free for longest. Of
    /// connections that are opened on demand it is the one that was used last, so that those that
    /// a busy time has opened stay idle after it, until the server closes them.
    fn take_free(&mut self, lane: usize) -> usize {
        let on_demand = self.shared.plan.on_demand;
        let (pool, connections) = (&mut self.pools[lane], &self.connections);
        let is_open = |&(position, generation): &(usize, u32)| {
            let connection: &Connection = &connections[position];
            connection.generation == generation
        };
        let open = if on_demand {
            std::iter::from_fn(|| pool.open.pop_back()).find(is_open)
        } else {
            pool.open.pop_front()
        };
        match open {
            Some((position, _)) => position,
            None => pool.unopened.pop_front().unwrap_or(0),
        }
    }

    fn send(&mut self, lane: usize, number: u64, issued: u64, free_since: u64) -> io::Result<()> {
        let track = &self.shared.tracks[lane];
        let position = self.take_free(lane);
        let mut free_since = free_since;
        for (index, other) in track.free.iter().enumerate() {
            // In a closed loop each connection has requests of its own.
            if index != self.index && track.schedule.slices.is_none() {
                free_since = free_since.min(other.since.load(Ordering::Relaxed));
            }
        }
        self.publish(lane);
        let due = track.schedule.due(number, issued - self.start);
        let could = free_since.max(self.start + due);
        let sent = self.tick();
        let pool = &mut self.pools[lane];
        pool.count_busy(sent);
        pool.busy += 1;
        pool.report.waited += u64::from(free_since > self.start + due);
        let pacing = sent.saturating_sub(could);
        // After a stop it takes a while to catch up, at most as long as the stop.
        let stopped = self.disturbed_until - self.disturbed_from;
        let disturbed = could < self.disturbed_until + stopped && self.disturbed_from < sent;
        let visits = track.schedule.visits();
        let visit = visits.and_then(|visits| visits.take(number));
        let connection = &mut self.connections[position];
        connection.request = Some(Carried {
            number,
            form: match &visit {
                Some(visit) => visit.kind,
                None => self.shared.plan.form_of(number),
            },
            issued,
            sent,
            pacing,
            disturbed,
            first: 0,
            written: 0,
        });
        connection.answer.reset();
        if let Some((visits, visit)) = visits.zip(visit.as_ref()) {
            connection.answer.kept = Some(visits.keeps(visit));
        }
        connection.visit = visit;
        connection.encrypted = false;
        connection.used = true;
        let deadline = sent + self.timeout;
        if connection.link == Link::Closed {
            self.connect(position, deadline);
            Ok(())
        } else {
            connection.deadline = deadline;
            self.write(position)
        }
    }

    fn connect(&mut self, position: usize, deadline: u64) {
        let connection = &mut self.connections[position];
        connection.deadline = deadline;
        connection.connect_began = self.now;
        connection.link = Link::Connecting;
        self.connecting += 1;
        self.pool(position).report.connects += 1;
        self.track(position).open_count.add();
        let begun = sys::connect(&self.track(position).address).and_then(|(socket, stamped)| {
            self.report.stamped &= stamped;
            let token = self.connections[position].token(position);
            self.epoll.add(&socket, sys::WRITABLE, token)?;
            Ok(socket)
        });
        match begun {
            Ok(socket) => self.connections[position].socket = Some(socket),
            Err(error) => self.fail_connect(position, Failure::of_connect(&error)),
        }
    }

    /// Goes on where the TCP connection is made, or failed.
    fn end_connect(&mut self, position: usize) -> io::Result<()> {
        let error = match &self.connections[position].socket {
            Some(socket) => sys::connect_error(socket),
            None => return Ok(()),
        };
        if let Some(error) = error {
            self.fail_connect(position, Failure::of_connect(&error));
            return Ok(());
        }
        self.tick();
        self.set_writing(position, true, false)?;
        let session = match &self.track(position).client {
            Some(client) => client.session(),
            None => return self.finish_connect(position),
        };
        match session {
            Ok(session) => {
                self.connections[position].session = Some(session);
                self.connections[position].link = Link::Greeting;
                self.greet(position)
            }
            Err(text) => {
                self.fail_greeting(position, &text);
                Ok(())
            }
        }
    }

    fn set_writing(&mut self, position: usize, before: bool, after: bool) -> io::Result<()> {
        let connection = &mut self.connections[position];
        connection.writing = after;
        if before == after {
            return Ok(());
        }
        let token = connection.token(position);
        let interest = if after {
            sys::READABLE | sys::WRITABLE
        } else {
            sys::READABLE
        };
        match &connection.socket {
            Some(socket) => self.epoll.modify(socket, interest, token),
            None => Ok(()),
        }
    }

    /// Goes on with the TLS handshake.
    fn greet(&mut self, position: usize) -> io::Result<()> {
        let done = match &mut self.connections[position].session {
            Some(session) => session.handshake(),
            None => return Ok(()),
        };
        // An alert about a failed handshake is sent too.
        let flushed = self.flush(position)?;
        self.tick();
        match done {
            Err(text) => {
                self.fail_greeting(position, &text);
                Ok(())
            }
            Ok(true) if flushed.is_ok() => self.finish_connect(position),
            Ok(_) => {
                if let Err(error) = flushed {
                    self.fail_connect(position, Failure::of_connect(&error));
                }
                Ok(())
            }
        }
    }

    fn fail_greeting(&mut self, position: usize, text: &str) {
        let report = &mut self.pool(position).report;
        if report.first_protocol_error.is_empty() {
            report.first_protocol_error = printable(&format!("TLS: {text}"));
        }
        self.fail_connect(position, Failure::Tls);
    }

    fn finish_connect(&mut self, position: usize) -> io::Result<()> {
        let now = self.now;
        let connection = &mut self.connections[position];
        connection.link = Link::Open;
        self.connecting -= 1;
        let took = now.saturating_sub(connection.connect_began);
        let carries = connection.request.is_some();
        let report = &mut self.pool(position).report;
        report.connecting_sum += u128::from(took);
        report.connecting_most = report.connecting_most.max(took);
        if carries {
            return self.write(position);
        }
        let connection = &mut self.connections[position];
        connection.used = false;
        connection.deadline = u64::MAX;
        connection.free_since = now;
        self.become_free(position);
        Ok(())
    }

    fn fail_connect(&mut self, position: usize, failure: Failure) {
        self.connecting -= 1;
        self.pool(position).report.connects_failed += 1;
        self.track(position).open_count.subtract();
        let connection = &mut self.connections[position];
        connection.close();
        connection.deadline = u64::MAX;
        if connection.request.is_some() {
            self.count_failure(position, failure);
            let now = self.tick();
            self.end_request(position, Outcome::Connect, now, now);
        }
        let now = self.now;
        self.connections[position].free_since = now;
        if self.shared.plan.closed.is_some() {
            self.connections[position].deadline = now + REST_NS;
        } else {
            self.become_free(position);
        }
    }

    /// Takes a connection among the free ones, as it is: open or not.
    fn become_free(&mut self, position: usize) {
        let Connection {
            link, generation, ..
        } = self.connections[position];
        let pool = self.pool(position);
        if link == Link::Open {
            pool.open.push_back((position, generation));
        } else {
            pool.unopened.push_back(position);
        }
        self.publish(self.lane(position));
    }

    fn count_failure(&mut self, position: usize, failure: Failure) {
        let failures = &mut self.pool(position).report.failures;
        *failures.entry(failure).or_insert(0) += 1;
    }

    /// Sends what is encrypted. The inner error is the socket's.
    fn flush(&mut self, position: usize) -> io::Result<io::Result<()>> {
        loop {
            let connection = &mut self.connections[position];
            let before = connection.writing;
            let (session, socket) = match (&mut connection.session, &connection.socket) {
                (Some(session), Some(socket)) => (session, socket),
                _ => return Ok(Ok(())),
            };
            if session.outgoing().is_empty() {
                self.set_writing(position, before, false)?;
                return Ok(Ok(()));
            }
            match sys::send(socket, session.outgoing()) {
                Ok(count) => session.sent(count),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.set_writing(position, before, true)?;
                    return Ok(Ok(()));
                }
                Err(error) => return Ok(Err(error)),
            }
        }
    }

    /// Writes what the socket takes of the request.
    fn write(&mut self, position: usize) -> io::Result<()> {
        let request = self.request(position);
        let error = if self.connections[position].session.is_some() {
            self.write_encrypted(position)?
        } else {
            let connection = &mut self.connections[position];
            let before = connection.writing;
            let (carried, socket) = match (&mut connection.request, &connection.socket) {
                (Some(carried), Some(socket)) => (carried, socket),
                _ => return Ok(()),
            };
            loop {
                match sys::send(socket, &request[carried.written..]) {
                    Ok(count) => {
                        carried.written += count;
                        if carried.written == request.len() {
                            self.set_writing(position, before, false)?;
                            break None;
                        }
                    }
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                        self.set_writing(position, before, true)?;
                        break None;
                    }
                    Err(error) => break Some(error),
                }
            }
        };
        if error.is_some() {
            // The server may have answered before it stopped to read.
            let generation = self.connections[position].generation;
            self.read(position, true)?;
            if self.connections[position].generation == generation {
                self.fail(position, Outcome::Write, Failure::Write);
            }
        }
        Ok(())
    }

    fn write_encrypted(&mut self, position: usize) -> io::Result<Option<io::Error>> {
        let request = self.request(position);
        let connection = &mut self.connections[position];
        if let Some(session) = &mut connection.session {
            if !connection.encrypted {
                connection.encrypted = true;
                if let Err(text) = session.write(&request) {
                    return Ok(Some(io::Error::new(io::ErrorKind::Other, text)));
                }
            }
        }
        let flushed = self.flush(position)?;
        let connection = &mut self.connections[position];
        if let (Some(session), Some(carried)) = (&connection.session, &mut connection.request) {
            if session.outgoing().is_empty() {
                carried.written = request.len();
            }
        }
        Ok(flushed.err())
    }

    fn handle(&mut self, events: usize) -> io::Result<()> {
        for event in 0..events {
            let (token, readiness) = self.epoll.event(event);
            let position = (token & 0xffff_ffff) as usize;
            let generation = (token >> 32) as u32;
            if self.connections[position].generation != generation {
                continue;
            }
            if self.connections[position].link == Link::Connecting {
                self.end_connect(position)?;
            } else {
                if readiness & !sys::WRITABLE != 0 {
                    self.read(position, false)?;
                }
                let connection = &self.connections[position];
                if readiness & sys::WRITABLE != 0
                    && connection.generation == generation
                    && connection.writing
                {
                    if connection.link == Link::Greeting {
                        self.greet(position)?;
                    } else if connection.request.is_some() {
                        self.write(position)?;
                    }
                }
            }
            // What has become due meanwhile does not wait for the other events.
            if event + 1 < events && self.start != u64::MAX {
                self.send_due(self.now)?;
            }
        }
        Ok(())
    }

    /// Reads a buffer of what the socket has. The epoll tells of the rest again, after what has become
    /// due. `after_write`: writing has failed, so all is read, and an end without an answer is that
    /// failure.
    fn read(&mut self, position: usize, after_write: bool) -> io::Result<()> {
        let generation = self.connections[position].generation;
        let mut buffer = std::mem::take(&mut self.buffer);
        let result = loop {
            let socket = match &self.connections[position].socket {
                Some(socket) if self.connections[position].generation == generation => socket,
                _ => break Ok(()),
            };
            let received = sys::receive(socket, &mut buffer);
            let read = self.tick();
            match received {
                Ok((0, _)) => {
                    if !after_write {
                        self.end(position, false);
                    }
                    break Ok(());
                }
                Ok((count, stamp)) => {
                    let arrival = stamp.map(|real| (real as i64 - self.offset) as u64);
                    self.note_wake(arrival);
                    let taken = self.take(position, &buffer[..count], arrival, read);
                    if taken.is_err() {
                        break taken;
                    }
                    if !after_write {
                        break Ok(());
                    }
                }
                Err(error) => {
                    let kind = error.kind();
                    if kind == io::ErrorKind::Interrupted {
                        continue;
                    }
                    if kind != io::ErrorKind::WouldBlock && !after_write {
                        self.lose(position, Failure::of_read(&error));
                    }
                    break Ok(());
                }
            }
        };
        self.buffer = buffer;
        result
    }

    /// A sleep that an event ended should have ended when it arrived.
    fn note_wake(&mut self, arrival: Option<u64>) {
        if let (Some((from, until)), Some(arrival)) = (self.woken.take(), arrival) {
            let asked = arrival.max(from);
            if until > asked + LEAST_GAP {
                let now = self.now;
                self.now = until;
                self.note_gap(asked, Some(Cause::Outside));
                self.now = now;
                self.gaps_of_work = 0;
            }
        }
    }

    /// Takes bytes as they came over the network.
    fn take(
        &mut self,
        position: usize,
        bytes: &[u8],
        arrival: Option<u64>,
        read: u64,
    ) -> io::Result<()> {
        match &mut self.connections[position].session {
            Some(session) => session.take(bytes),
            None => {
                self.take_plain(position, bytes, arrival, read);
                return Ok(());
            }
        }
        let generation = self.connections[position].generation;
        if self.connections[position].link == Link::Greeting {
            self.greet(position)?;
        }
        let mut plain = std::mem::take(&mut self.plain);
        while self.connections[position].generation == generation
            && self.connections[position].link == Link::Open
        {
            let result = match &mut self.connections[position].session {
                Some(session) => session.read(&mut plain),
                None => break,
            };
            match result {
                Ok(Plain::Bytes(count)) => {
                    self.take_plain(position, &plain[..count], arrival, read);
                }
                Ok(Plain::Nothing) => break,
                Ok(Plain::End) => self.end(position, true),
                Err(text) => self.break_protocol(position, &text, bytes),
            }
        }
        self.plain = plain;
        Ok(())
    }

    /// When the kernel had what was read: never before the sending, never after the reading.
    fn arrival(&mut self, position: usize, stamp: Option<u64>, sent: u64, read: u64) -> u64 {
        let report = &mut self.pool(position).report;
        match stamp {
            None => {
                report.stamps_missing += 1;
                read
            }
            Some(time) if time + STAMP_TOLERANCE_NS < sent || time > read + STAMP_TOLERANCE_NS => {
                report.stamps_rejected += 1;
                read
            }
            Some(time) => time.clamp(sent, read),
        }
    }

    fn take_plain(&mut self, position: usize, bytes: &[u8], stamp: Option<u64>, read: u64) {
        let form = self.form(position);
        let sent = match &self.connections[position].request {
            Some(carried) => carried.sent,
            None => {
                self.pool(position).report.surplus += 1;
                self.lose(position, Failure::Protocol);
                return;
            }
        };
        let arrival = self.arrival(position, stamp, sent, read);
        let connection = &mut self.connections[position];
        if let Some(carried) = &mut connection.request {
            if carried.first == 0 {
                carried.first = arrival;
            }
        }
        match connection.answer.feed(bytes, form.head_only, &form.answer) {
            Ok(None) => {}
            Ok(Some(used)) => {
                let surplus = used < bytes.len();
                self.pool(position).report.surplus += u64::from(surplus);
                self.complete(position, arrival, read, surplus);
            }
            Err(text) => self.break_protocol(position, text, bytes),
        }
    }

    fn break_protocol(&mut self, position: usize, text: &str, bytes: &[u8]) {
        if self.connections[position].request.is_none() {
            self.lose(position, Failure::Protocol);
            return;
        }
        let report = &mut self.pool(position).report;
        if report.first_protocol_error.is_empty() {
            let bytes = String::from_utf8_lossy(&bytes[..bytes.len().min(400)]);
            report.first_protocol_error = printable(&format!("{text}: {bytes}"));
        }
        self.fail(position, Outcome::Read, Failure::Protocol);
    }

    /// The server will send no more. `announced`: by TLS, so that nothing can have been cut off.
    fn end(&mut self, position: usize, announced: bool) {
        let connection = &self.connections[position];
        if connection.link == Link::Greeting {
            self.fail_greeting(position, "the server closed the connection");
            return;
        }
        let whole = announced || connection.session.is_none();
        match connection.answer.end() {
            End::Complete if connection.request.is_some() && whole => {
                let now = self.now;
                self.complete(position, now, now, true);
            }
            End::Closed => self.lose(position, Failure::Closed),
            _ => self.lose(position, Failure::Truncated),
        }
    }

    /// A connection is gone, with the request that it carried.
    fn lose(&mut self, position: usize, failure: Failure) {
        let connection = &self.connections[position];
        if connection.link == Link::Greeting {
            self.fail_connect(position, failure);
        } else if connection.request.is_some() {
            self.fail(position, Outcome::Read, failure);
        } else {
            self.reopen(position);
        }
    }

    fn fail(&mut self, position: usize, outcome: Outcome, failure: Failure) {
        self.count_failure(position, failure);
        let now = self.tick();
        self.end_request(position, outcome, now, now);
        self.connections[position].free_since = now;
        self.reopen(position);
    }

    fn complete(&mut self, position: usize, last: u64, read: u64, surplus: bool) {
        let form = self.form(position);
        let length = self.request(position).len();
        let connection = &self.connections[position];
        let outcome = connection.answer.outcome(form.head_only, &form.answer);
        let written = connection
            .request
            .map_or(false, |carried| carried.written == length);
        let closes = connection.answer.closes || surplus || !written;
        self.end_request(position, outcome, last, read);
        let connection = &mut self.connections[position];
        connection.free_since = last;
        if closes || !self.shared.plan.keepalive {
            self.reopen(position);
        } else {
            self.become_free(position);
        }
    }

    fn end_request(&mut self, position: usize, outcome: Outcome, last: u64, read: u64) {
        let start = self.start;
        let pool = self.pool(position);
        pool.count_busy(read);
        pool.busy -= 1;
        let (track, number) = (self.track(position), self.number(position));
        let kind = self.form(position).kind as u8;
        let connection = &mut self.connections[position];
        connection.deadline = u64::MAX;
        if let Some(carried) = connection.request.take() {
            let answered = outcome.answered();
            let answer = &connection.answer;
            let first = if answered {
                carried.first
            } else {
                carried.sent
            };
            track.ring.store(
                carried.number,
                &Record {
                    issued: carried.issued - start,
                    sent: carried.sent - start,
                    first: first - start,
                    last: last - start,
                    read: read - start,
                    pacing: carried.pacing,
                    bytes: answer.bytes,
                    status: answer.status,
                    outcome,
                    kind,
                    connection: number,
                    disturbed: carried.disturbed,
                },
            );
            if let Some(slices) = &track.schedule.slices {
                slices.give_back(carried.issued - start);
            }
            let visit = connection.visit.take();
            if let Some((visits, visit)) = track.schedule.visits().zip(visit) {
                let kept = connection.answer.kept.take().unwrap_or_default();
                visits.go_on(visit, outcome, &kept, last - start);
            }
        }
    }

    /// Closes a connection that carries no request, and opens it again in the background, unless
    /// requests open their connections, the load is over, or the server ended it at once.
    fn reopen(&mut self, position: usize) {
        let (now, plan) = (self.now, self.shared.plan);
        self.track(position).open_count.subtract();
        let connection = &mut self.connections[position];
        let lasted = now.saturating_sub(connection.free_since) >= LEAST_IDLE_NS;
        connection.close();
        connection.deadline = u64::MAX;
        let kept = plan.keepalive && !plan.on_demand;
        if kept && now < self.end && (connection.used || lasted) {
            self.pool(position).report.reopened += 1;
            let timeout = self.timeout;
            self.connect(position, now + timeout);
            self.publish(self.lane(position));
        } else {
            self.become_free(position);
        }
    }
}

/// The first 200 printable characters.
fn printable(text: &str) -> String {
    text.chars()
        .map(|letter| {
            if matches!(letter, '\r' | '\n' | '\t') {
                ' '
            } else {
                letter
            }
        })
        .filter(|&letter| !letter.is_control() && letter != '\u{fffd}')
        .take(200)
        .collect()
}
