//! Counts of values in buckets whose width grows with the value.

/// 2^8 buckets an octave: the largest error is 0.2 %. This is the scheme of the file by seconds.
pub const FILE_BITS: u32 = 8;

/// The bucket of a value: the value itself below 2^(bits + 1), then 2^bits buckets an octave.
pub fn bucket(value: u64, bits: u32) -> usize {
    if value >> (bits + 1) == 0 {
        return value as usize;
    }
    let octave = 63 - value.leading_zeros() - bits;
    ((u64::from(octave) << bits) + (value >> octave)) as usize
}

/// The smallest value of a bucket, and how many values it has.
pub fn range(bucket: usize, bits: u32) -> (u64, u64) {
    let bucket = bucket as u64;
    if bucket >> (bits + 1) == 0 {
        return (bucket, 1);
    }
    let octave = (bucket >> bits) - 1;
    let scaled = bucket - (octave << bits);
    (scaled << octave, 1 << octave)
}

const FINE_BITS: u32 = 12;

/// A histogram fine enough for the percentiles of a summary: the largest error is 0.013 %.
#[derive(Default)]
pub struct Histogram {
    counts: Vec<u64>,
    count: u64,
    sum: u128,
    most: u64,
}

impl Histogram {
    pub fn add(&mut self, value: u64) {
        let bucket = bucket(value, FINE_BITS);
        if bucket >= self.counts.len() {
            self.counts.resize(bucket + 1, 0);
        }
        self.counts[bucket] += 1;
        self.count += 1;
        self.sum += u128::from(value);
        self.most = self.most.max(value);
    }

    pub fn count(&self) -> u64 {
        self.count
    }

    pub fn sum(&self) -> u128 {
        self.sum
    }

    pub fn most(&self) -> u64 {
        self.most
    }

    pub fn mean(&self) -> f64 {
        if self.count == 0 {
            0.0
        } else {
            self.sum as f64 / self.count as f64
        }
    }

    /// The value at or below which `fraction` of the values are, by nearest rank.
    pub fn quantile(&self, fraction: f64) -> f64 {
        let rank = ((self.count as f64 * fraction).ceil() as u64).max(1);
        let mut below = 0;
        for (bucket, count) in self.counts.iter().enumerate() {
            below += count;
            if below >= rank {
                let (least, width) = range(bucket, FINE_BITS);
                return (least as f64 + (width - 1) as f64 / 2.0).min(self.most as f64);
            }
        }
        0.0
    }
}
