//! An answer of HTTP/1.1 as it arrives, in pieces of any size. What the standard does not settle is
//! an error, never a guess.

use crate::plan::Expectation;
use crate::record::Outcome;
use crate::values::Kept;

const MOST_HEAD: usize = 65_536;
const MOST_HEADERS: usize = 100;

/// What of the line ends a chunked body expects next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Chunk {
    /// Digits of the size; whether there were any.
    Size(bool),
    Extension,
    SizeEnd,
    Data,
    DataReturn,
    DataEnd,
    TrailerStart,
    Trailer,
    TrailerLineEnd,
    LastEnd,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Head,
    Length(u64),
    Chunked(Chunk),
    UntilClose,
    Complete,
}

/// What the end of a connection means for the answer on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The answer was to end so.
    Complete,
    /// No byte of an answer had come.
    Closed,
    Truncated,
}

pub struct Answer {
    state: State,
    // The beginning of a head that came in pieces.
    head: Vec<u8>,
    // Size of the current chunk, and bytes of it to come.
    chunk: u64,
    // Bytes of sizes, extensions and trailers since the last data.
    overhead: usize,
    started: bool,
    differs: bool,
    pub status: u16,
    pub bytes: u64,
    /// Whether the connection ends after this answer.
    pub closes: bool,
    /// Of the answer to a visit's request.
    pub kept: Option<Kept>,
}

impl Default for Answer {
    fn default() -> Answer {
        Answer {
            state: State::Head,
            head: Vec::with_capacity(1024),
            chunk: 0,
            overhead: 0,
            started: false,
            differs: false,
            status: 0,
            bytes: 0,
            closes: false,
            kept: None,
        }
    }
}

/// The position behind the empty line that ends a head. `head` has no complete line end before
/// `from`, except those that another line follows.
fn head_end(head: &[u8], from: usize) -> Option<usize> {
    let mut position = from;
    while let Some(offset) = head[position..].iter().position(|&byte| byte == b'\n') {
        position += offset + 1;
        match head[position..] {
            [b'\n', ..] => return Some(position + 1),
            [b'\r', b'\n', ..] => return Some(position + 2),
            _ => {}
        }
    }
    None
}

/// Whether bytes can begin an answer.
fn can_begin(bytes: &[u8]) -> bool {
    let begins = |version: &[u8]| {
        let length = bytes.len().min(version.len());
        bytes[..length] == version[..length]
    };
    begins(b"HTTP/1.1 ") || begins(b"HTTP/1.0 ")
}

fn trimmed(value: &[u8]) -> &[u8] {
    let is_text = |byte: &u8| !matches!(byte, b' ' | b'\t');
    let start = value.iter().position(is_text).unwrap_or(value.len());
    let end = value
        .iter()
        .rposition(is_text)
        .map_or(start, |last| last + 1);
    &value[start..end]
}

fn parse_length(value: &[u8]) -> Option<u64> {
    if value.is_empty() {
        return None;
    }
    let mut length = 0u64;
    for byte in value {
        if !byte.is_ascii_digit() {
            return None;
        }
        length = length
            .checked_mul(10)?
            .checked_add(u64::from(byte - b'0'))?;
    }
    Some(length)
}

fn has_close(value: &[u8]) -> bool {
    value
        .split(|&byte| byte == b',')
        .any(|token| trimmed(token).eq_ignore_ascii_case(b"close"))
}

impl Answer {
    /// Makes it ready for the next answer.
    pub fn reset(&mut self) {
        self.state = State::Head;
        self.head.clear();
        self.chunk = 0;
        self.overhead = 0;
        self.started = false;
        self.differs = false;
        self.status = 0;
        self.bytes = 0;
        self.closes = false;
        self.kept = None;
    }

    /// Takes the next bytes. Returns how many of them belong to the answer once it is complete, and
    /// None while more is to come.
    pub fn feed(
        &mut self,
        bytes: &[u8],
        head_only: bool,
        expected: &Expectation,
    ) -> Result<Option<usize>, &'static str> {
        self.started |= !bytes.is_empty();
        let mut rest = bytes;
        loop {
            match self.state {
                State::Head => match self.take_head(rest, head_only)? {
                    Some(used) => rest = &rest[used..],
                    None => return Ok(None),
                },
                State::Length(left) => {
                    let used = left.min(rest.len() as u64) as usize;
                    self.take_body(&rest[..used], expected);
                    rest = &rest[used..];
                    if left > used as u64 {
                        self.state = State::Length(left - used as u64);
                        return Ok(None);
                    }
                    self.state = State::Complete;
                }
                State::Chunked(_) => {
                    let used = self.take_chunks(rest, expected)?;
                    rest = &rest[used..];
                    if self.state != State::Complete {
                        return Ok(None);
                    }
                }
                State::UntilClose => {
                    self.take_body(rest, expected);
                    return Ok(None);
                }
                State::Complete => return Ok(Some(bytes.len() - rest.len())),
            }
        }
    }

    /// Says what it means that the connection ended here.
    pub fn end(&self) -> End {
        match self.state {
            State::UntilClose | State::Complete => End::Complete,
            _ if self.started => End::Truncated,
            _ => End::Closed,
        }
    }

    /// How a complete answer is to be counted.
    pub fn outcome(&self, head_only: bool, expected: &Expectation) -> Outcome {
        if !expected.status.contains(&self.status) {
            return Outcome::Status;
        }
        if head_only {
            return Outcome::Right;
        }
        let bytes_wrong = expected.bytes.map_or(false, |bytes| bytes != self.bytes);
        let body_wrong = match &expected.body {
            Some(body) => self.differs || self.bytes != body.len() as u64,
            None => false,
        };
        if bytes_wrong || body_wrong {
            Outcome::Body
        } else {
            Outcome::Right
        }
    }

    /// Takes a head, or the beginning of it. Returns how many bytes it used once the head is whole.
    fn take_head(&mut self, bytes: &[u8], head_only: bool) -> Result<Option<usize>, &'static str> {
        if self.head.is_empty() {
            // The usual case: the whole head is in one read, and is parsed where it is.
            if !can_begin(bytes) {
                return Err("it does not begin with HTTP/1.1 or HTTP/1.0");
            }
            if let Some(end) = head_end(bytes, 0) {
                if end > MOST_HEAD {
                    return Err("the head is longer than 64 kB");
                }
                self.parse_head(&bytes[..end], head_only)?;
                return Ok(Some(end));
            }
        }
        let before = self.head.len();
        let room = (MOST_HEAD + 1).saturating_sub(before);
        self.head.extend_from_slice(&bytes[..bytes.len().min(room)]);
        if !can_begin(&self.head) {
            return Err("it does not begin with HTTP/1.1 or HTTP/1.0");
        }
        // The line end may be in the bytes of before.
        match head_end(&self.head, before.saturating_sub(2)) {
            Some(end) if end <= MOST_HEAD => {
                let head = std::mem::take(&mut self.head);
                self.parse_head(&head[..end], head_only)?;
                self.head = head;
                self.head.clear();
                Ok(Some(end - before))
            }
            None if self.head.len() <= MOST_HEAD => Ok(None),
            _ => Err("the head is longer than 64 kB"),
        }
    }

    fn parse_head(&mut self, head: &[u8], head_only: bool) -> Result<(), &'static str> {
        let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
        let mut answer = httparse::Response::new(&mut headers);
        match answer.parse(head) {
            Ok(httparse::Status::Complete(length)) if length == head.len() => {}
            Ok(_) => return Err("the head ends early"),
            Err(httparse::Error::HeaderName) => return Err("a header has a malformed name"),
            Err(httparse::Error::HeaderValue) => return Err("a header has a malformed value"),
            Err(httparse::Error::NewLine) => return Err("a line of the head ends wrongly"),
            Err(httparse::Error::Status) => return Err("the status line is malformed"),
            Err(httparse::Error::TooManyHeaders) => return Err("it has more than 100 headers"),
            Err(_) => return Err("the head is malformed"),
        }
        let status = answer.code.unwrap_or(0);
        let old = answer.version == Some(0);
        match status {
            0..=99 => return Err("the status is below 100"),
            101 => return Err("it switches protocols"),
            // The answer itself follows.
            102..=199 | 100 => return Ok(()),
            _ => {}
        }
        let mut length = None;
        let mut chunked = false;
        let mut closes = old;
        for header in answer.headers.iter() {
            let value = trimmed(header.value);
            if let Some(kept) = &mut self.kept {
                kept.add_header(header.name, value);
            }
            if header.name.eq_ignore_ascii_case("content-length") {
                let parsed = parse_length(value).ok_or("Content-Length is not a number")?;
                if length.map_or(false, |other| other != parsed) {
                    return Err("it has several Content-Length");
                }
                length = Some(parsed);
            } else if header.name.eq_ignore_ascii_case("transfer-encoding") {
                if chunked || old || !value.eq_ignore_ascii_case(b"chunked") {
                    return Err("Transfer-Encoding is other than chunked");
                }
                chunked = true;
            } else if header.name.eq_ignore_ascii_case("connection") {
                closes |= has_close(value);
            }
        }
        if chunked && length.is_some() {
            return Err("it has Transfer-Encoding and Content-Length");
        }
        self.status = status;
        self.state = if head_only || status == 204 || status == 304 {
            State::Complete
        } else if chunked {
            State::Chunked(Chunk::Size(false))
        } else if let Some(length) = length {
            State::Length(length)
        } else {
            closes = true;
            State::UntilClose
        };
        self.closes = closes;
        Ok(())
    }

    fn take_body(&mut self, bytes: &[u8], expected: &Expectation) {
        if let Some(body) = &expected.body {
            let start = self.bytes.min(body.len() as u64) as usize;
            self.differs |= !body[start..].starts_with(bytes);
        }
        if let Some(kept) = &mut self.kept {
            kept.add_body(bytes);
        }
        self.bytes = self.bytes.saturating_add(bytes.len() as u64);
    }

    /// Takes bytes of a chunked body up to its end. Returns how many it used.
    fn take_chunks(&mut self, bytes: &[u8], expected: &Expectation) -> Result<usize, &'static str> {
        let mut position = 0;
        while let State::Chunked(chunk) = self.state {
            if position == bytes.len() {
                break;
            }
            if chunk == Chunk::Data {
                let left = (bytes.len() - position) as u64;
                let used = self.chunk.min(left) as usize;
                self.take_body(&bytes[position..position + used], expected);
                position += used;
                self.chunk -= used as u64;
                if self.chunk == 0 {
                    self.overhead = 0;
                    self.state = State::Chunked(Chunk::DataReturn);
                }
                continue;
            }
            self.overhead += 1;
            if self.overhead > MOST_HEAD {
                return Err("a chunk's size line or the trailers are longer than 64 kB");
            }
            self.state = self.take_chunk_byte(chunk, bytes[position])?;
            position += 1;
        }
        Ok(position)
    }

    fn take_chunk_byte(&mut self, chunk: Chunk, byte: u8) -> Result<State, &'static str> {
        let next = match (chunk, byte) {
            (Chunk::Size(_), b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') => {
                let digit = (byte as char).to_digit(16).unwrap_or(0);
                if self.chunk >> 60 != 0 {
                    return Err("a chunk's size is too large");
                }
                self.chunk = self.chunk << 4 | u64::from(digit);
                Chunk::Size(true)
            }
            (Chunk::Size(true), b';' | b' ' | b'\t') => Chunk::Extension,
            (Chunk::Size(true) | Chunk::Extension, b'\r') => Chunk::SizeEnd,
            (Chunk::Size(_), _) => return Err("a chunk's size is not a hexadecimal number"),
            (Chunk::Extension | Chunk::Trailer, b'\n' | 0) => {
                return Err("a line between chunks is malformed")
            }
            (Chunk::Extension, _) => Chunk::Extension,
            (Chunk::SizeEnd, b'\n') if self.chunk == 0 => Chunk::TrailerStart,
            (Chunk::SizeEnd, b'\n') if self.bytes.checked_add(self.chunk).is_none() => {
                return Err("a chunk's size is too large")
            }
            (Chunk::SizeEnd, b'\n') => Chunk::Data,
            (Chunk::DataReturn, b'\r') => Chunk::DataEnd,
            (Chunk::DataEnd, b'\n') => Chunk::Size(false),
            (Chunk::TrailerStart, b'\r') => Chunk::LastEnd,
            (Chunk::TrailerStart, b'\n' | 0) => return Err("a trailer is malformed"),
            (Chunk::Trailer, b'\r') => Chunk::TrailerLineEnd,
            (Chunk::TrailerStart | Chunk::Trailer, _) => Chunk::Trailer,
            (Chunk::TrailerLineEnd, b'\n') => Chunk::TrailerStart,
            (Chunk::LastEnd, b'\n') => return Ok(State::Complete),
            _ => return Err("a chunk does not end with CR LF"),
        };
        Ok(State::Chunked(next))
    }
}
