//! The file with a row for each request: blocks of columns of varints.

use std::fs::File;
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::path::Path;

use crate::record::Record;

pub const BLOCK: usize = 65_536;
const COLUMNS: [&str; 11] = [
    "outcome",
    "status",
    "bytes",
    "connection",
    "issued",
    "sent",
    "first",
    "last",
    "read",
    "pacing",
    "added",
];
/// A further column: of a load of several lanes the growth of the number in the schedule; of arrivals
/// that are not constant that of the due time, units.
pub const NUMBER: &str = "number";
pub const DUE: &str = "due";
/// Of a load of visits in place of `due`: how much later than the request before it was due, which may
/// be earlier, zigzag; and then the number of the request among those of all visits, alike.
pub const LATER: &str = "later";
pub const PLACE: &str = "place";
/// The last column of a load of several kinds: the number of the kind.
pub const KIND: &str = "kind";

/// Appends an unsigned LEB128 number.
pub fn put_varint(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

/// Reads an unsigned LEB128 number and moves `bytes` behind it.
pub fn take_varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

/// Numbers a difference so that small ones stay small: 0, -1, 1, -2, 2.
pub fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

pub fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

/// The file's unit of time, from nanoseconds.
pub fn units(nanoseconds: u64) -> u64 {
    (nanoseconds + 50) / 100
}

pub struct Columns {
    file: BufWriter<File>,
    columns: Vec<Vec<u8>>,
    last: Option<&'static str>,
    mixed: bool,
    // Of the row before in the block: status, bytes and connection, and number or due time.
    before: [i64; 3],
    last_before: u64,
    place_before: u64,
    block_rows: usize,
    rows: u64,
    header_length: usize,
}

fn header(rows: u64, last: Option<&str>, mixed: bool) -> String {
    let names: Vec<String> = COLUMNS
        .iter()
        .copied()
        .chain(last)
        .chain(if last == Some(LATER) {
            Some(PLACE)
        } else {
            None
        })
        .chain(if mixed { Some(KIND) } else { None })
        .map(|name| format!("\"{name}\""))
        .collect();
    format!(
        "{{\"format\":\"metronome requests/1\",\"unit_ns\":100,\"rows\":{rows},\"block\":{BLOCK},\
         \"columns\":[{}]}}",
        names.join(",")
    )
}

impl Columns {
    /// `last`: the further column, where there is one. `mixed`: whether there are several kinds.
    pub fn create(path: &Path, last: Option<&'static str>, mixed: bool) -> io::Result<Columns> {
        let further = usize::from(last.is_some()) + usize::from(last == Some(LATER));
        let width = COLUMNS.len() + further + usize::from(mixed);
        let mut file = BufWriter::with_capacity(1 << 18, File::create(path)?);
        // As wide as with the largest number of rows, so that it can be written again at the end.
        let header_length = header(u64::MAX, last, mixed).len();
        writeln!(file, "{:header_length$}", header(0, last, mixed))?;
        Ok(Columns {
            file,
            columns: vec![Vec::new(); width],
            last,
            mixed,
            before: [0; 3],
            last_before: 0,
            place_before: 0,
            block_rows: 0,
            rows: 0,
            header_length,
        })
    }

    /// Adds the next row in due order, with its number in the schedule, or its place in the visits.
    pub fn add(&mut self, due: u64, number: u64, record: &Record, added: u64) -> io::Result<()> {
        let columns = &mut self.columns;
        put_varint(&mut columns[0], record.outcome as u64);
        let values = [
            i64::from(record.status),
            record.bytes as i64,
            i64::from(record.connection),
        ];
        for (position, value) in values.into_iter().enumerate() {
            let difference = value.wrapping_sub(self.before[position]);
            put_varint(&mut columns[1 + position], zigzag(difference));
        }
        self.before = values;
        // Absolute times are rounded and then subtracted, so that errors do not add up. A time
        // before the one it is counted from is set to it.
        let mut from = units(due);
        let times = [
            record.issued,
            record.sent,
            record.first,
            record.last,
            record.read,
        ];
        for (position, time) in times.into_iter().enumerate() {
            let time = units(time).max(from);
            put_varint(&mut columns[4 + position], time - from);
            from = time;
        }
        put_varint(&mut columns[9], units(record.pacing));
        put_varint(&mut columns[10], units(added));
        let last = match self.last {
            Some(NUMBER) => number,
            _ => units(due),
        };
        if self.last == Some(LATER) {
            let later = [(last, self.last_before), (number, self.place_before)];
            for (column, (now, before)) in columns[COLUMNS.len()..].iter_mut().zip(later) {
                put_varint(column, zigzag(now as i64 - before as i64));
            }
            self.place_before = number;
        } else if self.last.is_some() {
            put_varint(&mut columns[COLUMNS.len()], last - self.last_before);
        }
        self.last_before = last;
        if self.mixed {
            let position = columns.len() - 1;
            put_varint(&mut columns[position], record.kind.into());
        }
        self.rows += 1;
        self.block_rows += 1;
        if self.block_rows == BLOCK {
            self.end_block()?;
        }
        Ok(())
    }

    fn end_block(&mut self) -> io::Result<()> {
        self.file
            .write_all(&(self.block_rows as u32).to_le_bytes())?;
        for column in &mut self.columns {
            self.file.write_all(&(column.len() as u32).to_le_bytes())?;
            self.file.write_all(column)?;
            column.clear();
        }
        self.block_rows = 0;
        self.before = [0; 3];
        self.last_before = 0;
        self.place_before = 0;
        Ok(())
    }

    pub fn finish(mut self) -> io::Result<()> {
        if self.block_rows > 0 {
            self.end_block()?;
        }
        self.file.flush()?;
        let mut file = self.file.into_inner().map_err(|error| error.into_error())?;
        file.seek(SeekFrom::Start(0))?;
        let header_length = self.header_length;
        writeln!(
            file,
            "{:header_length$}",
            header(self.rows, self.last, self.mixed)
        )
    }
}

/// Reads the rows back: `first` has no meaning for failures. The last entries are the number in the
/// schedule or the due time, the number of the kind, and the place in the visits; 0 where there is no
/// such column.
pub fn read_rows(bytes: &[u8]) -> Option<Vec<[u64; COLUMNS.len() + 3]>> {
    let start = bytes.iter().position(|&byte| byte == b'\n')? + 1;
    let header = std::str::from_utf8(&bytes[..start]).ok()?;
    let has = |name: &str| header.contains(&format!("\"{name}\""));
    let further = if has(NUMBER) || has(DUE) || has(LATER) {
        Some(COLUMNS.len())
    } else {
        None
    };
    let kind = if has(KIND) {
        Some(COLUMNS.len() + 1)
    } else {
        None
    };
    let place = if has(PLACE) {
        Some(COLUMNS.len() + 2)
    } else {
        None
    };
    let mut rest = &bytes[start..];
    let number = |rest: &mut &[u8]| -> Option<usize> {
        let (head, tail) = rest.split_at_checked_compat(4)?;
        *rest = tail;
        Some(u32::from_le_bytes([head[0], head[1], head[2], head[3]]) as usize)
    };
    let mut rows = Vec::new();
    while !rest.is_empty() {
        let count = number(&mut rest)?;
        let base = rows.len();
        rows.resize(base + count, [0; COLUMNS.len() + 3]);
        for position in (0..COLUMNS.len()).chain(further).chain(place).chain(kind) {
            let length = number(&mut rest)?;
            let (mut column, tail) = rest.split_at_checked_compat(length)?;
            rest = tail;
            let mut before = 0i64;
            for row in &mut rows[base..] {
                let value = take_varint(&mut column)?;
                let signed = (1..4).contains(&position) || Some(position) == place;
                row[position] = if signed || (position == COLUMNS.len() && has(LATER)) {
                    before += unzigzag(value);
                    before as u64
                } else if position == COLUMNS.len() {
                    before += value as i64;
                    before as u64
                } else {
                    value
                };
            }
            if !column.is_empty() {
                return None;
            }
        }
    }
    Some(rows)
}

trait SplitChecked {
    fn split_at_checked_compat(&self, middle: usize) -> Option<(&[u8], &[u8])>;
}

impl SplitChecked for [u8] {
    fn split_at_checked_compat(&self, middle: usize) -> Option<(&[u8], &[u8])> {
        if middle <= self.len() {
            Some(self.split_at(middle))
        } else {
            None
        }
    }
}
