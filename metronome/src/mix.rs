//! Which kind of request each request of a load is.

use crate::arrivals::Random;

/// The kinds of a load by the number of a request. Of each block of as many requests as the weights
/// add up to, every kind has as many as its weight, in an order that the seed decides.
#[derive(Clone, Debug)]
pub struct Mix {
    /// Of one kind: empty.
    kinds: Vec<u8>,
}

impl Mix {
    pub fn new(weights: &[u64], seed: u64, scheduled: u64) -> Mix {
        if weights.len() < 2 {
            return Mix { kinds: Vec::new() };
        }
        // Not the numbers of the arrivals, which have the same seed.
        let mut random = Random::new(!seed);
        let block: Vec<u8> = weights
            .iter()
            .zip(0..)
            .flat_map(|(&weight, kind)| (0..weight).map(move |_| kind))
            .collect();
        let mut kinds = Vec::with_capacity(scheduled as usize + block.len());
        while (kinds.len() as u64) < scheduled {
            let begin = kinds.len();
            kinds.extend_from_slice(&block);
            for place in (1..block.len()).rev() {
                let other = random.below(place as u64 + 1) as usize;
                kinds.swap(begin + place, begin + other);
            }
        }
        kinds.truncate(scheduled as usize);
        Mix { kinds }
    }

    pub fn kind(&self, request: u64) -> usize {
        self.kinds
            .get(request as usize)
            .map_or(0, |&kind| usize::from(kind))
    }

    /// How many of the first requests are of each kind.
    pub fn counts(&self, kinds: usize, scheduled: u64) -> Vec<u64> {
        if kinds == 1 {
            return vec![scheduled];
        }
        let mut counts = vec![0; kinds];
        for &kind in &self.kinds[..scheduled as usize] {
            counts[usize::from(kind)] += 1;
        }
        counts
    }
}
