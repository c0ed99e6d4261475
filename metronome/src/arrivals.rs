//! How the requests of a load come, at the same mean rate: evenly, at random, or in bursts.

use std::f64::consts::TAU;

use crate::schedule::Rate;
use crate::turns::mix;

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Arrivals {
    /// Request i at i/rate.
    Constant,
    /// The gaps between requests have a gamma distribution with this shape: 1 is a Poisson process,
    /// less is burstier, more is nearer to constant.
    Gamma { smoothness: f64, seed: u64 },
    /// So many at the same moment.
    Bursts { size: u64 },
    /// A Poisson process with two rates: the busy one is so many times the calm one. Each lasts for
    /// a time with an exponential distribution, with this mean in seconds.
    Switching {
        ratio: f64,
        calm_s: f64,
        busy_s: f64,
        seed: u64,
    },
}

impl Arrivals {
    /// When each request is due, in nanoseconds from the start, ascending; None of a constant rate,
    /// where it follows from the request's number. `ramp`: (time, rate), of both of which only the
    /// ratios count, as the load has a length and a mean; empty where the rate does not change.
    pub fn times(self, rate: &Rate, ramp: &[(f64, f64)]) -> Option<Vec<u64>> {
        let requests = 0..rate.scheduled;
        let even: Vec<u64> = match self {
            Arrivals::Constant if ramp.is_empty() => return None,
            Arrivals::Constant => requests.map(|request| rate.due(request)).collect(),
            Arrivals::Gamma { smoothness, seed } => gamma(smoothness, seed, rate),
            Arrivals::Switching {
                ratio,
                calm_s,
                busy_s,
                seed,
            } => {
                let states = [(1.0, calm_s), (ratio, busy_s)];
                let steps = switching(&states, seed, rate.duration_ns as f64 / 1e9);
                along(&steps, &gamma(1.0, seed, rate), rate.duration_ns)
            }
            Arrivals::Bursts { size } => {
                let first = |request: u64| request - request % size;
                requests.map(|request| rate.due(first(request))).collect()
            }
        };
        Some(if ramp.is_empty() {
            even
        } else {
            along(ramp, &even, rate.duration_ns)
        })
    }
}

/// A straight line between two points of a ramp: begin and length in nanoseconds, and its rates.
#[derive(Clone, Copy)]
struct Leg {
    begin: f64,
    length: f64,
    from: f64,
    to: f64,
}

/// Moves due times of a constant rate to where, on a ramp, as many requests are due before.
fn along(ramp: &[(f64, f64)], even: &[u64], duration_ns: u64) -> Vec<u64> {
    let begin = ramp[0].0;
    let unit = duration_ns as f64 / (ramp[ramp.len() - 1].0 - begin);
    let legs: Vec<Leg> = ramp
        .windows(2)
        .map(|points| Leg {
            begin: (points[0].0 - begin) * unit,
            length: (points[1].0 - points[0].0) * unit,
            from: points[0].1,
            to: points[1].1,
        })
        .collect();
    let amount = |leg: &Leg| (leg.from + leg.to) / 2.0 * leg.length;
    let amounts: Vec<f64> = legs.iter().map(amount).collect();
    let scale = amounts.iter().sum::<f64>() / duration_ns as f64;
    let (mut leg, mut before) = (0, 0.0);
    let dues = even.iter().map(|&due| {
        let amount = due as f64 * scale;
        while leg + 1 < legs.len() && amount >= before + amounts[leg] {
            before += amounts[leg];
            leg += 1;
        }
        let (
            Leg {
                begin,
                length,
                from,
                to,
            },
            rest,
        ) = (legs[leg], amount - before);
        // The root of from * time + (to - from) / length * time^2 / 2 = rest.
        let square = from * from + 2.0 * (to - from) / length * rest;
        let speed = from + square.max(0.0).sqrt();
        let time = if speed > 0.0 { 2.0 * rest / speed } else { 0.0 };
        ((begin + time).round() as u64).min(duration_ns - 1)
    });
    dues.collect()
}

/// The rates of a process that goes from one state, (rate, mean seconds), to the other and back, as a
/// ramp of so many seconds. It begins in either, as likely as it is in it.
fn switching(states: &[(f64, f64); 2], seed: u64, seconds: f64) -> Vec<(f64, f64)> {
    // Not the numbers of the gaps, which have the same seed.
    let mut random = Random::new(mix(!seed));
    let calm = states[0].1 / (states[0].1 + states[1].1);
    let mut state = usize::from(random.fraction() > calm);
    let (mut begin, mut steps) = (0.0, Vec::new());
    while begin < seconds {
        let (rate, mean) = states[state];
        let end = (begin - mean * random.fraction().ln()).min(seconds);
        steps.extend([(begin, rate), (end, rate)]);
        begin = end;
        state = 1 - state;
    }
    steps
}

/// One gap more than there are requests, stretched so that together they last as long as the load:
/// then each load has as many requests as a constant one, and of a Poisson process the due times
/// are those of a Poisson process that has so many.
fn gamma(smoothness: f64, seed: u64, rate: &Rate) -> Vec<u64> {
    let mut random = Random::new(seed);
    let mut sum = 0.0;
    let mut sums = Vec::with_capacity(rate.scheduled as usize);
    for _ in 0..rate.scheduled {
        sum += random.gamma(smoothness);
        sums.push(sum);
    }
    sum += random.gamma(smoothness);
    let stretch = rate.duration_ns as f64 / sum;
    let last = rate.duration_ns - 1;
    let dues = sums.iter().map(|sum| (sum * stretch).round() as u64);
    dues.map(|due| due.min(last)).collect()
}

/// Random numbers of a seed (splitmix64).
pub struct Random {
    base: u64,
    drawn: u64,
}

impl Random {
    pub fn new(seed: u64) -> Random {
        // Mixed, so that the numbers of neighbouring seeds do not overlap.
        Random {
            base: mix(seed),
            drawn: 0,
        }
    }

    fn number(&mut self) -> u64 {
        self.drawn += 1;
        mix(self.base.wrapping_add(self.drawn))
    }

    /// Below a limit.
    pub fn below(&mut self, limit: u64) -> u64 {
        ((u128::from(self.number()) * u128::from(limit)) >> 64) as u64
    }

    /// Above 0 and up to 1.
    pub fn fraction(&mut self) -> f64 {
        ((self.number() >> 11) + 1) as f64 / (1u64 << 53) as f64
    }

    /// Of the standard normal distribution (Box and Muller 1958).
    fn normal(&mut self) -> f64 {
        let radius = (-2.0 * self.fraction().ln()).sqrt();
        radius * (TAU * self.fraction()).cos()
    }

    /// Of the gamma distribution with a shape and scale 1 (Marsaglia and Tsang 2000).
    fn gamma(&mut self, shape: f64) -> f64 {
        if shape < 1.0 {
            let more = self.gamma(shape + 1.0);
            return more * self.fraction().powf(1.0 / shape);
        }
        let d = shape - 1.0 / 3.0;
        let c = 1.0 / (9.0 * d).sqrt();
        loop {
            let normal = self.normal();
            let cube = (1.0 + c * normal).powi(3);
            if cube <= 0.0 {
                continue;
            }
            let limit = 0.5 * normal * normal + d * (1.0 - cube + cube.ln());
            if self.fraction().ln() < limit {
                return d * cube;
            }
        }
    }
}
