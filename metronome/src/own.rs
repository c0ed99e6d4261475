//! What the generator itself added to a latency.
//!
//! A request that waits though it is due and a connection is free waits for the generator: its
//! `pacing`. While it waits for a connection, the requests before it may do so too: that slows the
//! queue by the part of the connections that they leave unused. So a generator that stands still
//! with all connections is charged with the whole wait, and one that takes a moment to use one
//! connection of many again, while the server is busy with the others, with a part of the moment.

use std::collections::VecDeque;

struct Sent {
    /// It was due and a connection was free for it.
    ready: u64,
    sent: u64,
    /// Sums of `sent` and of `pacing` over this and all requests before.
    all_sent: u128,
    all_pacing: u128,
}

pub struct Own {
    connections: u64,
    /// Earlier requests that were sent after the last due time, in the order of their sending.
    queue: VecDeque<Sent>,
    /// How many of them were ready before the last due time.
    ready: usize,
    /// Sums over the requests that have left the queue, and over all.
    gone: (u128, u128),
    sums: (u128, u128),
    requests: u64,
}

impl Own {
    pub fn new(connections: usize) -> Own {
        Own {
            connections: connections as u64,
            queue: VecDeque::new(),
            ready: 0,
            gone: (0, 0),
            sums: (0, 0),
            requests: 0,
        }
    }

    /// What the generator added to the next request's latency. Requests come in due order.
    pub fn added(&mut self, due: u64, sent: u64, pacing: u64) -> u64 {
        self.requests += 1;
        let ready = sent.saturating_sub(pacing);
        let slowed = self.slowed(due);
        let added = if ready <= due {
            sent.saturating_sub(due)
        } else {
            (pacing + slowed).min(sent - due)
        };
        // Two threads may send in another order than requests are due.
        let (ready, sent) = match self.queue.back() {
            Some(before) => (ready.max(before.ready), sent.max(before.sent)),
            None => (ready, sent),
        };
        self.sums.0 += u128::from(sent);
        self.sums.1 += u128::from(sent.saturating_sub(ready));
        self.queue.push_back(Sent {
            ready,
            sent,
            all_sent: self.sums.0,
            all_pacing: self.sums.1,
        });
        added
    }

    /// By how much the generator slowed the queue since a due time. These do not decrease.
    fn slowed(&mut self, due: u64) -> u64 {
        while self.queue.front().map_or(false, |front| front.sent <= due) {
            if let Some(front) = self.queue.pop_front() {
                self.gone = (front.all_sent, front.all_pacing);
                self.ready = self.ready.saturating_sub(1);
            }
        }
        while self.ready < self.queue.len() && self.queue[self.ready].ready < due {
            self.ready += 1;
        }
        // Of those that were ready before the due time, only the time since then counts.
        let (before, pacing_before) = match self.ready {
            0 => self.gone,
            count => (
                self.queue[count - 1].all_sent,
                self.queue[count - 1].all_pacing,
            ),
        };
        let since = before - self.gone.0 - u128::from(due) * self.ready as u128;
        let unused = since + self.sums.1 - pacing_before;
        (unused / u128::from(self.connections)) as u64
    }

    /// How many of the requests that were never sent would have been, had the generator not slowed
    /// the queue, if it went on as fast as on average.
    pub fn unsent(&mut self, dues: impl Iterator<Item = u64>, duration: u64) -> u64 {
        let interval = duration / self.requests.max(1);
        dues.zip(1..)
            .take_while(|(due, number)| number * interval < self.slowed(*due))
            .count() as u64
    }
}
