//! The run of an ideal generator: the same requests, service times and number of connections, but
//! a request starts the moment it is due and a connection is free, and a connection is free the
//! moment the kernel had the last byte. What the measured run has more, the generator added.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

pub struct Ideal {
    // When each connection of the ideal run is free.
    free: BinaryHeap<Reverse<u64>>,
    requests: u64,
    service: u128,
}

impl Ideal {
    pub fn new(connections: usize) -> Ideal {
        Ideal {
            free: (0..connections).map(|_| Reverse(0)).collect(),
            requests: 0,
            service: 0,
        }
    }

    fn start(&mut self, due: u64, service: u64) -> u64 {
        let mut earliest = self.free.peek_mut().expect("a plan has a connection");
        let start = due.max(earliest.0);
        *earliest = Reverse(start + service);
        start
    }

    /// What the generator added to the next request's latency. Requests come in due order.
    pub fn added(&mut self, due: u64, sent: u64, last: u64) -> u64 {
        let service = last.saturating_sub(sent);
        self.requests += 1;
        self.service += u128::from(service);
        let end = self.start(due, service) + service;
        last.saturating_sub(end)
    }

    /// How many of the requests that were never sent the ideal generator would have started before
    /// the end, if they hold their connections for the mean service time.
    pub fn unsent(&mut self, dues: impl Iterator<Item = u64>, end: u64) -> u64 {
        let mean = if self.requests == 0 {
            0
        } else {
            (self.service / u128::from(self.requests)) as u64
        };
        let mut count = 0;
        for due in dues {
            if self.start(due, mean) >= end {
                break;
            }
            count += 1;
        }
        count
    }
}
