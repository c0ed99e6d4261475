//! Which lane a request belongs to, as a pure function of its number.
//!
//! A round is one turn of each lane, in an order that balances neighbours. In the part in slices a
//! turn is a slice of several requests; in the part by request it is one request. The two parts
//! follow each other until the end of the load.

/// What a request is among those of its lane. The numbers are those of the files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Part {
    Slice = 0,
    /// The other lane's last requests may still be under way: counted, and in no percentile.
    SliceBegin = 1,
    ByRequest = 2,
}

pub const PARTS: usize = 3;

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

#[derive(Clone, Debug)]
pub struct Turns {
    lanes: u64,
    /// Requests of a slice, and how many of its first are its begin.
    slice: u64,
    begin: u64,
    sliced_rounds: u64,
    single_rounds: u64,
    /// The place of each lane in each round of the balanced order.
    places: Vec<Vec<u64>>,
}

impl Turns {
    /// Of `lanes` lanes, in slices of `slice` requests for so many rounds and by request for so
    /// many rounds, of which one or both are more than 0.
    pub fn new(lanes: usize, slice: u64, begin: u64, sliced: u64, single: u64) -> Turns {
        let order = balanced_order(lanes);
        let places = order.chunks(lanes).map(|round| {
            let place = |lane| round.iter().position(|&other| other == lane).unwrap_or(0) as u64;
            (0..lanes).map(place).collect()
        });
        Turns {
            lanes: lanes as u64,
            slice,
            begin,
            sliced_rounds: sliced,
            single_rounds: single,
            places: places.collect(),
        }
    }

    /// All requests belong to one lane.
    pub fn of_one_lane() -> Turns {
        Turns::new(1, 1, 0, 1, 0)
    }

    /// The number in the schedule of a lane's request, counted from 0, and its part.
    pub fn turn(&self, lane: usize, request: u64) -> (u64, Part) {
        if self.lanes == 1 {
            return (request, Part::Slice);
        }
        let sliced = self.sliced_rounds * self.slice;
        let in_both = sliced + self.single_rounds;
        let (repetition, rest) = (request / in_both, request % in_both);
        let first = repetition * in_both * self.lanes;
        if rest < sliced {
            let (round, at) = (rest / self.slice, rest % self.slice);
            let place = self.place(repetition * self.sliced_rounds + round, lane);
            let number = first + (round * self.lanes + place) * self.slice + at;
            let part = if at < self.begin {
                Part::SliceBegin
            } else {
                Part::Slice
            };
            return (number, part);
        }
        let round = rest - sliced;
        // In the order of slices a lane would be in step with the timers of the machine.
        let drawn = mix(repetition * self.single_rounds + round);
        let place = self.place(drawn, lane);
        let number = first + (sliced + round) * self.lanes + place;
        (number, Part::ByRequest)
    }

    fn place(&self, round: u64, lane: usize) -> u64 {
        self.places[(round % self.places.len() as u64) as usize][lane]
    }

    /// How many of the first `scheduled` requests belong to a lane.
    pub fn count(&self, lane: usize, scheduled: u64) -> u64 {
        let (mut least, mut most) = (0, scheduled);
        while least < most {
            let middle = (least + most) / 2;
            if self.turn(lane, middle).0 < scheduled {
                least = middle + 1;
            } else {
                most = middle;
            }
        }
        least
    }
}

/// A number that looks drawn at random (the last steps of splitmix64).
pub fn mix(number: u64) -> u64 {
    let mut mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}
