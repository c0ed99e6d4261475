//! What a visit takes of an answer, and puts into a later request.

use std::sync::Arc;

use tinyjson::JsonValue;

/// Bytes of a body that are kept, at most.
const MOST_BODY: usize = 1 << 20;
const MOST_COOKIES: usize = 50;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Key {
    Member(String),
    Entry(usize),
}

/// Where a value is in an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    Header(String),
    Json(Vec<Key>),
}

impl Source {
    /// A path such as $.items[0].id, or else the name of a header.
    pub fn parse(text: &str) -> Option<Source> {
        let mut rest = match text.strip_prefix('$') {
            Some(rest) => rest,
            None => return Some(Source::Header(text.to_string())),
        };
        let mut keys = Vec::new();
        while !rest.is_empty() {
            if let Some(entry) = rest.strip_prefix('[') {
                let (number, after) = entry.split_once(']')?;
                keys.push(Key::Entry(number.parse().ok()?));
                rest = after;
            } else {
                let member = rest.strip_prefix('.')?;
                let end = member.find(['.', '[']).unwrap_or(member.len());
                keys.push(Key::Member(member[..end].to_string()).named()?);
                rest = &member[end..];
            }
        }
        Some(Source::Json(keys))
    }
}

impl Key {
    fn named(self) -> Option<Key> {
        match &self {
            Key::Member(name) if name.is_empty() => None,
            _ => Some(self),
        }
    }
}

/// What is kept of an answer while it comes.
#[derive(Clone, Debug, Default)]
pub struct Kept {
    headers: Vec<String>,
    has_json: bool,
    /// Those asked for, and the cookies that are set.
    found: Vec<(String, Vec<u8>)>,
    body: Vec<u8>,
}

const COOKIE: &str = "set-cookie";

impl Kept {
    pub fn of<'a>(sources: impl Iterator<Item = &'a Source>) -> Kept {
        let mut kept = Kept::default();
        for source in sources {
            match source {
                Source::Header(name) => kept.headers.push(name.clone()),
                Source::Json(_) => kept.has_json = true,
            }
        }
        kept
    }

    pub fn add_header(&mut self, name: &str, value: &[u8]) {
        let mut asked = self.headers.iter();
        if name.eq_ignore_ascii_case(COOKIE) || asked.any(|other| name.eq_ignore_ascii_case(other))
        {
            self.found.push((name.to_ascii_lowercase(), value.to_vec()));
        }
    }

    pub fn add_body(&mut self, bytes: &[u8]) {
        if self.has_json {
            let room = MOST_BODY - self.body.len();
            self.body.extend_from_slice(&bytes[..bytes.len().min(room)]);
        }
    }

    /// The value at a place; None where there is none, or an empty one, null, a list or an object.
    pub fn value(&self, source: &Source) -> Option<String> {
        let text = match source {
            Source::Header(name) => {
                let name = name.to_ascii_lowercase();
                let (_, value) = self.found.iter().find(|(other, _)| *other == name)?;
                String::from_utf8(value.clone()).ok()?
            }
            Source::Json(keys) => json_value(&self.body, keys)?,
        };
        Some(text).filter(|text| !text.is_empty())
    }

    /// Names and values of the cookies that are set.
    pub fn cookies(&self) -> impl Iterator<Item = (String, String)> + '_ {
        let set = self.found.iter().filter(|(name, _)| name == COOKIE);
        let pair = |value: &Vec<u8>| {
            let text = std::str::from_utf8(value).ok()?;
            let (name, value) = text.split(';').next()?.split_once('=')?;
            let (name, value) = (name.trim(), value.trim());
            Some((name.to_string(), value.to_string())).filter(|(name, _)| !name.is_empty())
        };
        set.filter_map(move |(_, value)| pair(value))
            .take(MOST_COOKIES)
    }
}

/// A place in a JSON text. It reads as far as it must: numbers keep their digits.
struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    fn next(&mut self) -> Option<u8> {
        let blank = |byte: &u8| !matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
        let start = self.rest.iter().position(blank)?;
        self.rest = &self.rest[start..];
        self.rest.first().copied()
    }

    fn eat(&mut self, byte: u8) -> Option<()> {
        if self.next()? != byte {
            return None;
        }
        self.rest = &self.rest[1..];
        Some(())
    }

    /// A string with its quotes.
    fn string(&mut self) -> Option<&'a [u8]> {
        self.eat(b'"')?;
        let (mut end, begin) = (0, self.rest);
        while *begin.get(end)? != b'"' {
            end += if begin[end] == b'\\' { 2 } else { 1 };
        }
        self.rest = &begin[end + 1..];
        Some(&begin[..end])
    }

    /// A value, as it is written.
    fn value(&mut self) -> Option<&'a [u8]> {
        let first = self.next()?;
        let begin = self.rest;
        match first {
            b'"' => {
                self.string()?;
            }
            b'{' | b'[' => {
                // The brackets and braces that are open: strings alone have others.
                let mut depth = 0usize;
                loop {
                    match self.next()? {
                        b'"' => {
                            self.string()?;
                            continue;
                        }
                        b'{' | b'[' => depth += 1,
                        b'}' | b']' => depth -= 1,
                        _ => {}
                    }
                    self.rest = &self.rest[1..];
                    if depth == 0 {
                        break;
                    }
                }
            }
            _ => {
                let ends = |byte: &u8| b",]} \t\r\n".contains(byte);
                let end = begin.iter().position(ends).unwrap_or(begin.len());
                self.rest = &begin[end..];
            }
        }
        Some(&begin[..begin.len() - self.rest.len()])
    }

    fn member(&mut self, name: &str) -> Option<()> {
        self.eat(b'{')?;
        loop {
            let key = self.string()?;
            self.eat(b':')?;
            if unquoted(key).as_deref() == Some(name) {
                return Some(());
            }
            self.value()?;
            self.eat(b',')?;
        }
    }

    fn entry(&mut self, number: usize) -> Option<()> {
        self.eat(b'[')?;
        for _ in 0..number {
            self.value()?;
            self.eat(b',')?;
        }
        Some(())
    }
}

/// A JSON string without its quotes.
fn unquoted(text: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(text).ok()?;
    if !text.contains('\\') {
        return Some(text.to_string());
    }
    let value: JsonValue = format!("\"{text}\"").parse().ok()?;
    value.get::<String>().cloned()
}

/// The text, number or truth value at a path.
pub fn json_value(body: &[u8], keys: &[Key]) -> Option<String> {
    let mut reader = Reader { rest: body };
    for key in keys {
        match key {
            Key::Member(name) => reader.member(name)?,
            Key::Entry(number) => reader.entry(*number)?,
        }
    }
    let text = reader.value()?;
    match text.first()? {
        b'"' => unquoted(&text[1..text.len() - 1]),
        b'-' | b'0'..=b'9' => String::from_utf8(text.to_vec()).ok(),
        _ if text == b"true" || text == b"false" => String::from_utf8(text.to_vec()).ok(),
        _ => None,
    }
}

/// Where a value stands in a request: says how it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Path,
    Header,
    Json,
    Form,
    Plain,
}

impl Place {
    /// None where a value cannot stand there.
    fn write(self, value: &str, text: &mut Vec<u8>) -> Option<()> {
        match self {
            // As it is, such as a path with a query; what a path cannot have is encoded.
            Place::Path => encode(value, |byte| byte.is_ascii_graphic(), text),
            Place::Form => encode(
                value,
                |byte| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte),
                text,
            ),
            Place::Header if value.bytes().any(|byte| byte < b' ' || byte == 0x7f) => return None,
            Place::Json => {
                for letter in value.chars() {
                    match letter {
                        '"' | '\\' => text.extend([b'\\', letter as u8]),
                        letter if letter < ' ' => {
                            text.extend(format!("\\u{:04x}", letter as u32).bytes());
                        }
                        letter => text.extend(letter.encode_utf8(&mut [0; 4]).bytes()),
                    }
                }
            }
            Place::Header | Place::Plain => text.extend(value.bytes()),
        }
        Some(())
    }
}

fn encode(value: &str, stays: impl Fn(u8) -> bool, text: &mut Vec<u8>) {
    for byte in value.bytes() {
        if stays(byte) {
            text.push(byte);
        } else {
            text.extend(format!("%{byte:02X}").bytes());
        }
    }
}

#[derive(Clone, Debug)]
enum Piece {
    Text(Vec<u8>),
    Value(usize, Place),
}

fn pieces(text: &str, names: &[String], place: Place) -> Vec<Piece> {
    let (mut all, mut plain, mut rest) = (Vec::new(), Vec::new(), text);
    while let Some(start) = rest.find('{') {
        let after = &rest[start + 1..];
        let end = after.find('}').unwrap_or(0);
        plain.extend(rest[..start].bytes());
        match names.iter().position(|name| *name == after[..end]) {
            Some(value) => {
                all.push(Piece::Text(std::mem::take(&mut plain)));
                all.push(Piece::Value(value, place));
                rest = &after[end + 1..];
            }
            None => {
                plain.push(b'{');
                rest = after;
            }
        }
    }
    plain.extend(rest.bytes());
    all.push(Piece::Text(plain));
    all
}

fn write(pieces: &[Piece], values: &[String], text: &mut Vec<u8>) -> Option<()> {
    for piece in pieces {
        match piece {
            Piece::Text(plain) => text.extend_from_slice(plain),
            Piece::Value(value, place) => place.write(&values[*value], text)?,
        }
    }
    Some(())
}

/// The text of a request into which values go.
#[derive(Clone, Debug)]
pub struct Template {
    path: Vec<Piece>,
    /// Each line ends with CR LF.
    fields: Vec<Piece>,
    body: Vec<Piece>,
    /// Of a body whose length depends on values.
    says_length: bool,
    has_cookies: bool,
}

impl Template {
    /// Of a request as it is written; `names`: of the values.
    pub fn new(request: &[u8], names: &[String]) -> Template {
        let request = String::from_utf8_lossy(request);
        let (head, body) = request.split_once("\r\n\r\n").unwrap_or((&request, ""));
        let (line, fields) = head.split_once("\r\n").unwrap_or((head, ""));
        let name = |field: &str| field.split(':').next().unwrap_or("").to_ascii_lowercase();
        let has = |wanted: &str| fields.split("\r\n").find(|field| name(field) == wanted);
        let kind = has("content-type").unwrap_or("").to_ascii_lowercase();
        let place = if kind.contains("json") {
            Place::Json
        } else if kind.contains("x-www-form-urlencoded") {
            Place::Form
        } else {
            Place::Plain
        };
        let body = pieces(body, names, place);
        let says_length = body.len() > 1;
        let kept = fields
            .split("\r\n")
            .filter(|field| !(says_length && name(field) == "content-length"));
        let kept: String = kept.map(|field| format!("{field}\r\n")).collect();
        Template {
            path: pieces(&format!("{line}\r\n"), names, Place::Path),
            fields: pieces(&kept, names, Place::Header),
            body,
            says_length,
            has_cookies: has("cookie").is_some(),
        }
    }

    /// The request with these values and cookies; None where a value cannot stand in it.
    pub fn text(&self, values: &[String], cookies: &[(String, String)]) -> Option<Arc<[u8]>> {
        let mut text = Vec::with_capacity(1024);
        write(&self.path, values, &mut text)?;
        write(&self.fields, values, &mut text)?;
        if !cookies.is_empty() && !self.has_cookies {
            let pairs: Vec<String> = cookies
                .iter()
                .map(|(name, value)| format!("{name}={value}"))
                .collect();
            text.extend(format!("Cookie: {}\r\n", pairs.join("; ")).bytes());
        }
        let mut body = Vec::new();
        write(&self.body, values, &mut body)?;
        if self.says_length {
            text.extend(format!("Content-Length: {}\r\n", body.len()).bytes());
        }
        text.extend(b"\r\n");
        text.extend(body);
        Some(text.into())
    }
}
