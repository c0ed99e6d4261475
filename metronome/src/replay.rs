//! The file of a replay: a line of JSON with its requests, then for each entry of the log, in order,
//! 12 bytes: when it is due, in nanoseconds from the start (u64), and the number of its request (u32),
//! little endian.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::ops::RangeInclusive;

use tinyjson::JsonValue;

pub const FORMAT: &str = "metronome replay/1";
pub const MOST_KINDS: usize = 255;
const MOST_HEADER: u64 = 1 << 26;
const ENTRY: usize = 12;

/// A request that the log names.
#[derive(Clone, Debug)]
pub struct Logged {
    pub kind: usize,
    /// The entry of the plan's `kinds` that it is, or whose headers it has.
    pub like: usize,
    pub own: Option<Own>,
}

/// What a request does not have from the plan.
#[derive(Clone, Debug)]
pub struct Own {
    pub method: String,
    pub path: String,
    /// Of a right answer.
    pub status: RangeInclusive<u16>,
}

#[derive(Clone, Debug)]
pub struct Replay {
    pub kinds: Vec<String>,
    pub requests: Vec<Logged>,
    /// When each entry is due, ascending.
    pub times: Vec<u64>,
    /// The number of the request of each entry.
    pub order: Vec<u32>,
}

fn whole(value: &JsonValue, most: usize) -> Option<usize> {
    let number: f64 = *value.get()?;
    Some(number as usize).filter(|&whole| whole as f64 == number && whole <= most)
}

fn logged(entry: &JsonValue) -> Option<Logged> {
    let parts: &Vec<JsonValue> = entry.get()?;
    let number = |place: usize| parts.get(place).and_then(|part| whole(part, 1 << 20));
    let text = |place: usize| parts.get(place)?.get::<String>().cloned();
    let own = match parts.len() {
        2 => None,
        5 => Some(Own {
            method: text(2)?,
            path: text(3)?,
            // A log without a status, or with one that a replay does not bring about.
            status: match number(4)? {
                0 => 200..=399,
                class @ 2..=4 => class as u16 * 100..=class as u16 * 100 + 99,
                _ => return None,
            },
        }),
        _ => return None,
    };
    Some(Logged {
        kind: number(0)?,
        like: number(1)?,
        own,
    })
}

fn header(line: &str) -> Option<(usize, Vec<String>, Vec<Logged>)> {
    let value: JsonValue = line.parse().ok()?;
    let object: &std::collections::HashMap<String, JsonValue> = value.get()?;
    let list = |name: &str| object.get(name)?.get::<Vec<JsonValue>>();
    let format: &String = object.get("format")?.get()?;
    let kinds: Option<Vec<String>> = list("kinds")?
        .iter()
        .map(|name| name.get::<String>().cloned())
        .collect();
    let requests: Option<Vec<Logged>> = list("requests")?.iter().map(logged).collect();
    let (kinds, requests) = (kinds?, requests?);
    let right = format == FORMAT
        && (1..=MOST_KINDS).contains(&kinds.len())
        && requests.iter().all(|request| request.kind < kinds.len());
    if right {
        Some((whole(object.get("entries")?, 1 << 32)?, kinds, requests))
    } else {
        None
    }
}

impl Replay {
    /// Reads what is due before a time, of which there are `most` at most.
    pub fn read(path: &str, duration_ns: u64, most: u64) -> Result<Replay, String> {
        let wrong = |text: String| format!("schedule.replay is {path:?}; {text}");
        let cannot = |error: std::io::Error| wrong(format!("it cannot be read: {error}"));
        let mut file = BufReader::with_capacity(1 << 18, File::open(path).map_err(cannot)?);
        let mut line = String::new();
        file.by_ref()
            .take(MOST_HEADER)
            .read_line(&mut line)
            .map_err(cannot)?;
        let (entries, kinds, requests) =
            header(&line).ok_or_else(|| wrong(format!("its first line is not of {FORMAT:?}")))?;
        let (mut times, mut order) = (Vec::new(), Vec::new());
        let mut entry = [0; ENTRY];
        for number in 0..entries {
            file.read_exact(&mut entry).map_err(cannot)?;
            let (time, request) = entry.split_at(8);
            let time = u64::from_le_bytes(time.try_into().unwrap_or_default());
            let request = u32::from_le_bytes(request.try_into().unwrap_or_default());
            if times.last().map_or(false, |&before| before > time) {
                return Err(wrong(format!("entry {number} is due before the last")));
            }
            if request as usize >= requests.len() {
                return Err(wrong(format!("entry {number} has no request {request}")));
            }
            if time >= duration_ns {
                break;
            }
            if times.len() as u64 == most {
                return Err(wrong(format!("it has more than {most} entries")));
            }
            times.push(time);
            order.push(request);
        }
        if times.is_empty() {
            return Err(wrong("nothing in it is due before duration_s".to_string()));
        }
        Ok(Replay {
            kinds,
            requests,
            times,
            order,
        })
    }
}
