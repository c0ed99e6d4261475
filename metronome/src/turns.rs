//! Which lane a request belongs to, as a pure function of its number.
//!
//! A round is one turn of each lane: a request of a load at a rate, a slice of a closed loop.

/// A lane for each turn, so that each round of `lanes` turns has each lane once, and each lane
/// follows each, itself too, twice in the whole, which is a circle: A B B A A B B A for two.
pub fn balanced_order(lanes: usize) -> Vec<usize> {
    // In a Williams design each lane follows each other equally often within the rounds. The rounds
    // are put in line so that each begins with the lane that ended the one before.
    let round = |first: usize| {
        (0..lanes).map(move |place| {
            let step = if place % 2 == 1 {
                place / 2 + 1
            } else {
                lanes - place / 2
            };
            (first + step) % lanes
        })
    };
    let half = lanes / 2;
    let mut order: Vec<usize> = if lanes % 2 == 1 {
        let rounds = 0..lanes;
        rounds
            .flat_map(|number| round(number * (half + 1) % lanes))
            .collect()
    } else {
        // Of an even number a round ends where only its mirror begins. So half of the rounds have
        // the first half of the lanes renamed, which keeps their balance.
        let renamed = |lane: usize| {
            if lane < half {
                (lane + 1) % half
            } else {
                lane
            }
        };
        (0..half)
            .flat_map(|first| round(first).chain(round(half + first).map(renamed)))
            .collect()
    };
    // The mirror has the other pairs, and cancels what drifts.
    let mirror: Vec<usize> = order.iter().rev().copied().collect();
    order.extend(mirror);
    order
}

/// The turns of the lanes of a load at a rate: a request each in every round.
#[derive(Clone, Debug)]
pub struct Turns {
    lanes: u64,
    /// The place of each lane in each round of the balanced order.
    places: Vec<Vec<u64>>,
}

impl Turns {
    pub fn new(lanes: usize) -> Turns {
        let order = balanced_order(lanes);
        let places = order.chunks(lanes).map(|round| {
            let place = |lane| round.iter().position(|&other| other == lane).unwrap_or(0) as u64;
            (0..lanes).map(place).collect()
        });
        Turns {
            lanes: lanes as u64,
            places: places.collect(),
        }
    }

    /// The number in the schedule of a lane's request, counted from 0.
    pub fn number(&self, lane: usize, request: u64) -> u64 {
        request * self.lanes + self.place(lane, request)
    }

    fn place(&self, lane: usize, round: u64) -> u64 {
        // In the balanced order itself a lane would be in step with the timers of the machine.
        self.places[(mix(round) % self.places.len() as u64) as usize][lane]
    }

    /// How many of the first `scheduled` requests belong to a lane.
    pub fn count(&self, lane: usize, scheduled: u64) -> u64 {
        let (rounds, rest) = (scheduled / self.lanes, scheduled % self.lanes);
        rounds + u64::from(self.place(lane, rounds) < rest)
    }
}

/// A number that looks drawn at random (the last steps of splitmix64).
pub fn mix(number: u64) -> u64 {
    let mut mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}
