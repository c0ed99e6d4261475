//! What is kept of a request, and where.

use std::sync::atomic::{AtomicU64, Ordering};

/// Records that memory holds at a time, at most.
pub const MOST_RECORDS: u64 = 6_000_000;

pub const OUTCOMES: usize = 7;

/// How a request ended. The numbers are those of the column `outcome`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Outcome {
    Right = 0,
    Body = 1,
    Status = 2,
    Connect = 3,
    Read = 4,
    Write = 5,
    Timeout = 6,
}

impl Outcome {
    pub const ALL: [Outcome; OUTCOMES] = [
        Outcome::Right,
        Outcome::Body,
        Outcome::Status,
        Outcome::Connect,
        Outcome::Read,
        Outcome::Write,
        Outcome::Timeout,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Outcome::Right => "right",
            Outcome::Body => "body",
            Outcome::Status => "status",
            Outcome::Connect => "connect",
            Outcome::Read => "read",
            Outcome::Write => "write",
            Outcome::Timeout => "timeout",
        }
    }

    /// Whether a whole answer came, right or wrong.
    pub fn answered(self) -> bool {
        (self as u8) < Outcome::Connect as u8
    }
}

/// One request that was sent. Times are nanoseconds from the start of the load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// Claimed by a thread with a free connection.
    pub issued: u64,
    /// Just before the write, or before the connect that the request needed.
    pub sent: u64,
    /// The kernel had the first bytes of the answer.
    pub first: u64,
    /// The kernel had the last byte of the answer, or a failure was known.
    pub last: u64,
    /// The last byte was read.
    pub read: u64,
    /// How late it was sent though due and a connection free.
    pub pacing: u64,
    /// Length of the answer's body.
    pub bytes: u64,
    pub status: u16,
    pub outcome: Outcome,
    /// Number of the kind of request.
    pub kind: u8,
    /// Number of the connection among those of all threads.
    pub connection: u32,
    /// Whether the lateness falls into a stop of the thread that is not the generator's own.
    pub disturbed: bool,
}

const COMPLETE: u64 = 1 << 63;
const DISTURBED: u64 = 1 << 62;

#[derive(Default)]
struct Slot {
    values: [AtomicU64; 7],
    // Completion, kind, status, outcome and connection. Written last, so whoever sees it sees all.
    mark: AtomicU64,
}

/// The records of requests that are under way or not yet taken, by number.
pub struct Ring {
    slots: Vec<Slot>,
    taken: AtomicU64,
}

impl Ring {
    /// All memory is touched here, as a page fault under load would delay a request.
    pub fn new(capacity: u64) -> Ring {
        let slots: Vec<Slot> = (0..capacity).map(|_| Slot::default()).collect();
        for slot in &slots {
            slot.mark.store(0, Ordering::Relaxed);
        }
        Ring {
            slots,
            taken: AtomicU64::new(0),
        }
    }

    /// For so many records of a load's lane. Those of a load of MOST_RECORDS have all room.
    pub fn of_lane(scheduled: u64, lanes: usize) -> Ring {
        // The lanes take turns, and one of them may have a request more than another.
        let most = (MOST_RECORDS + lanes as u64 - 1) / lanes as u64;
        Ring::new(scheduled.min(most))
    }

    pub fn capacity(&self) -> u64 {
        self.slots.len() as u64
    }

    /// The number of the first request whose record has no room yet.
    pub fn room(&self) -> u64 {
        self.taken.load(Ordering::Acquire) + self.capacity()
    }

    fn slot(&self, request: u64) -> &Slot {
        &self.slots[(request % self.capacity()) as usize]
    }

    pub fn store(&self, request: u64, record: &Record) {
        let slot = self.slot(request);
        let values = [
            record.issued,
            record.sent,
            record.first,
            record.last,
            record.read,
            record.pacing,
            record.bytes,
        ];
        for (cell, value) in slot.values.iter().zip(values) {
            cell.store(value, Ordering::Relaxed);
        }
        let mark = COMPLETE
            | if record.disturbed { DISTURBED } else { 0 }
            | u64::from(record.kind) << 52
            | u64::from(record.outcome as u8) << 48
            | u64::from(record.status) << 32
            | u64::from(record.connection);
        slot.mark.store(mark, Ordering::Release);
    }

    /// The record of a request that has ended.
    pub fn load(&self, request: u64) -> Option<Record> {
        let slot = self.slot(request);
        let mark = slot.mark.load(Ordering::Acquire);
        if mark & COMPLETE == 0 {
            return None;
        }
        let value = |position: usize| slot.values[position].load(Ordering::Relaxed);
        Some(Record {
            issued: value(0),
            sent: value(1),
            first: value(2),
            last: value(3),
            read: value(4),
            pacing: value(5),
            bytes: value(6),
            status: (mark >> 32) as u16,
            outcome: Outcome::ALL[(mark >> 48 & 7) as usize],
            kind: (mark >> 52) as u8,
            connection: mark as u32,
            disturbed: mark & DISTURBED != 0,
        })
    }

    /// Gives the room of all requests before one back. Only the reader of the ring calls it.
    pub fn release(&self, before: u64) {
        let taken = self.taken.load(Ordering::Relaxed);
        for request in taken..before {
            self.slot(request).mark.store(0, Ordering::Relaxed);
        }
        self.taken.store(before, Ordering::Release);
    }
}
