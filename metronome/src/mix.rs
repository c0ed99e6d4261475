//! Which of its requests a load sends when.

use crate::arrivals::Random;

/// The order of a load's requests. Of a mix, each block of as many requests as the weights add up to
/// has every kind as often as its weight, in an order that the seed decides. It begins again at its
/// end, as a closed loop sends any number.
#[derive(Clone, Debug)]
pub struct Mix {
    /// Of one request: empty.
    order: Vec<u32>,
}

impl Mix {
    pub fn new(weights: &[u64], seed: u64, scheduled: u64) -> Mix {
        if weights.len() < 2 {
            return Mix { order: Vec::new() };
        }
        // Not the numbers of the arrivals, which have the same seed.
        let mut random = Random::new(!seed);
        let block: Vec<u32> = weights
            .iter()
            .zip(0..)
            .flat_map(|(&weight, kind)| (0..weight).map(move |_| kind))
            .collect();
        let mut order = Vec::with_capacity(scheduled as usize + block.len());
        while (order.len() as u64) < scheduled {
            let begin = order.len();
            order.extend_from_slice(&block);
            for place in (1..block.len()).rev() {
                let other = random.below(place as u64 + 1) as usize;
                order.swap(begin + place, begin + other);
            }
        }
        order.truncate(scheduled as usize);
        Mix { order }
    }

    /// Of a replay.
    pub fn of(order: Vec<u32>) -> Mix {
        Mix { order }
    }

    /// The number of the request that is sent as the `place`th, from 0; of a mix of its kind.
    pub fn request(&self, place: u64) -> usize {
        match self.order.len() {
            0 => 0,
            all => self.order[place as usize % all] as usize,
        }
    }

    /// How often each of so many requests is among the first `scheduled`.
    pub fn counts(&self, requests: usize, scheduled: u64) -> Vec<u64> {
        let mut counts = vec![0; requests];
        if self.order.is_empty() {
            counts[0] = scheduled;
            return counts;
        }
        for &request in &self.order[..scheduled as usize] {
            counts[request as usize] += 1;
        }
        counts
    }
}
