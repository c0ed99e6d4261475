//! The plan of a load, read from JSON. Whatever is wrong is said before anything is opened.

use std::collections::HashMap;
use std::fs;

use tinyjson::JsonValue;

use crate::schedule::Rate;
use crate::sys;

pub const FORMAT: &str = "metronome plan/1";
const MOST_KEPT: u64 = 20_000_000;

#[derive(Clone, Debug)]
pub struct Lane {
    pub tls: bool,
    /// Name or address, without brackets.
    pub host: String,
    pub port: u16,
    /// Host and port as the Host header names them.
    pub authority: String,
}

/// What a right answer is.
#[derive(Clone, Debug, Default)]
pub struct Expectation {
    /// None: any 2xx.
    pub status: Option<u16>,
    pub bytes: Option<u64>,
    pub body: Option<Vec<u8>>,
}

#[derive(Clone, Debug)]
pub struct Kind {
    pub head_only: bool,
    /// The request as it is written.
    pub request: Vec<u8>,
    pub answer: Expectation,
}

#[derive(Clone, Debug)]
pub struct Plan {
    pub output: String,
    pub lane: Lane,
    pub kind: Kind,
    pub rate: f64,
    pub duration_s: f64,
    pub connections: usize,
    pub threads: usize,
    pub keepalive: bool,
    pub timeout_s: f64,
    pub keep_requests: bool,
}

type Object = HashMap<String, JsonValue>;

/// An object of the plan whose keys are taken out by their reader, so that a misspelt key is seen.
struct Keys<'a> {
    name: &'a str,
    object: &'a Object,
}

fn text_of(value: &JsonValue) -> String {
    value
        .stringify()
        .unwrap_or_else(|_| "not a finite number".to_string())
}

impl<'a> Keys<'a> {
    fn new(name: &'a str, value: &'a JsonValue, known: &[&str]) -> Result<Keys<'a>, String> {
        let object: &Object = value
            .get()
            .ok_or_else(|| format!("{name} is {}; it must be an object", text_of(value)))?;
        for key in object.keys() {
            if !known.contains(&key.as_str()) {
                return Err(format!(
                    "{name} has the key {key:?}; it knows {}",
                    known.join(", ")
                ));
            }
        }
        Ok(Keys { name, object })
    }

    fn error(&self, key: &str, value: &JsonValue, limit: &str) -> String {
        format!(
            "{}.{key} is {}; it must be {limit}",
            self.name,
            text_of(value)
        )
    }

    fn value(&self, key: &str) -> Result<&'a JsonValue, String> {
        self.object
            .get(key)
            .ok_or_else(|| format!("{}.{key} is missing", self.name))
    }

    fn text(&self, key: &str) -> Result<&'a str, String> {
        let value = self.value(key)?;
        let text: &String = value
            .get()
            .ok_or_else(|| self.error(key, value, "a text"))?;
        Ok(text)
    }

    fn flag(&self, key: &str) -> Result<bool, String> {
        let value = self.value(key)?;
        value
            .get()
            .copied()
            .ok_or_else(|| self.error(key, value, "true or false"))
    }

    fn number(&self, key: &str, least: f64, most: f64) -> Result<f64, String> {
        let value = self.value(key)?;
        let number: Option<&f64> = value.get();
        number
            .copied()
            .filter(|number| (least..=most).contains(number))
            .ok_or_else(|| self.error(key, value, &format!("a number from {least} to {most}")))
    }

    fn whole(&self, key: &str, least: f64, most: f64) -> Result<u64, String> {
        let number = self.number(key, least, most)?;
        if number.fract() != 0.0 {
            return Err(self.error(key, self.value(key)?, "a whole number"));
        }
        Ok(number as u64)
    }

    /// The value of a key, None where it is null or absent.
    fn optional(&self, key: &str) -> Option<&'a JsonValue> {
        self.object
            .get(key)
            .filter(|value| !matches!(value, JsonValue::Null))
    }

    fn only(&self, key: &str) -> Result<&'a JsonValue, String> {
        let value = self.value(key)?;
        let list: Option<&Vec<JsonValue>> = value.get();
        match list.map(Vec::as_slice) {
            Some([only]) => Ok(only),
            _ => Err(self.error(key, value, "a list with exactly 1 entry")),
        }
    }
}

fn is_token(text: &str) -> bool {
    !text.is_empty()
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}

fn parse_lane(value: &JsonValue) -> Result<Lane, String> {
    let keys = Keys::new("lanes[0]", value, &["url"])?;
    let url = keys.text("url")?;
    let wrong = |limit: &str| format!("lanes[0].url is {url:?}; {limit}");
    let (tls, authority) = if let Some(rest) = url.strip_prefix("http://") {
        (false, rest)
    } else if let Some(rest) = url.strip_prefix("https://") {
        (true, rest)
    } else {
        return Err(wrong("it must begin with http:// or https://"));
    };
    let form = "it must be scheme://host or scheme://host:port, without a path, IPv6 in brackets";
    let (host, rest) = match authority.strip_prefix('[') {
        Some(inner) => {
            let (host, rest) = inner.split_once(']').ok_or_else(|| wrong(form))?;
            if host.parse::<std::net::Ipv6Addr>().is_err() {
                return Err(wrong("the brackets must hold an IPv6 address"));
            }
            (host, rest)
        }
        None => authority.split_at(authority.find(':').unwrap_or(authority.len())),
    };
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:".contains(&byte);
    if host.is_empty() || !host.bytes().all(allowed) {
        return Err(wrong(form));
    }
    let port = match rest.strip_prefix(':') {
        Some(port) => port
            .parse()
            .ok()
            .filter(|&number: &u16| number > 0 && port.bytes().all(|byte| byte.is_ascii_digit()))
            .ok_or_else(|| wrong("the port must be from 1 to 65535"))?,
        None if rest.is_empty() => {
            if tls {
                443
            } else {
                80
            }
        }
        None => return Err(wrong(form)),
    };
    if tls && !crate::tls::BUILT {
        return Err(wrong("this metronome was built without TLS"));
    }
    Ok(Lane {
        tls,
        host: host.to_string(),
        port,
        authority: authority.to_string(),
    })
}

fn parse_answer(value: &JsonValue) -> Result<Expectation, String> {
    let keys = Keys::new("kinds[0].answer", value, &["status", "bytes", "body"])?;
    let status = match keys.optional("status") {
        Some(_) => Some(keys.whole("status", 200.0, 999.0)? as u16),
        None => None,
    };
    let bytes = match keys.optional("bytes") {
        Some(_) => Some(keys.whole("bytes", 0.0, 1e15)?),
        None => None,
    };
    let body = match keys.optional("body") {
        Some(_) => {
            let path = keys.text("body")?;
            let read = fs::read(path).map_err(|error| {
                format!(
                    "kinds[0].answer.body is {path:?}; it must be a file that can be read: {error}"
                )
            })?;
            Some(read)
        }
        None => None,
    };
    if let (Some(bytes), Some(body)) = (bytes, &body) {
        if bytes != body.len() as u64 {
            return Err(format!(
                "kinds[0].answer.bytes is {bytes}; it must be the length of the body, {}",
                body.len()
            ));
        }
    }
    Ok(Expectation {
        status,
        bytes,
        body,
    })
}

fn parse_kind(value: &JsonValue, lane: &Lane, keepalive: bool) -> Result<Kind, String> {
    let known = ["method", "path", "headers", "body", "answer"];
    let keys = Keys::new("kinds[0]", value, &known)?;
    let method = keys.text("method")?;
    if !is_token(method) || method == "CONNECT" {
        return Err(keys.error(
            "method",
            keys.value("method")?,
            "a method other than CONNECT",
        ));
    }
    let path = keys.text("path")?;
    if !path.starts_with('/') || !path.bytes().all(|byte| byte > b' ' && byte != 0x7f) {
        let limit = "a text that begins with / and has no spaces or control characters";
        return Err(keys.error("path", keys.value("path")?, limit));
    }
    let body = match keys.optional("body") {
        Some(_) => keys.text("body")?,
        None => "",
    };
    let mut request = format!("{method} {path} HTTP/1.1\r\n");
    let mut names: Vec<String> = Vec::new();
    let mut fields = String::new();
    if let Some(value) = keys.optional("headers") {
        let form = "a list of pairs [name, text]";
        let list: &Vec<JsonValue> = value
            .get()
            .ok_or_else(|| keys.error("headers", value, form))?;
        for entry in list {
            let pair: Option<&Vec<JsonValue>> = entry.get();
            let (name, text): (Option<&String>, Option<&String>) = match pair.map(Vec::as_slice) {
                Some([name, text]) => (name.get(), text.get()),
                _ => (None, None),
            };
            let (name, text) = name
                .zip(text)
                .ok_or_else(|| keys.error("headers", entry, form))?;
            if !is_token(name) {
                let limit = "names of letters, digits and hyphens, without CR, LF and NUL";
                return Err(keys.error("headers", entry, limit));
            }
            if text.contains(['\r', '\n', '\0']) {
                return Err(keys.error("headers", entry, "texts without CR, LF and NUL"));
            }
            names.push(name.to_ascii_lowercase());
            fields.push_str(&format!("{name}: {text}\r\n"));
        }
    }
    let named = |name: &str| names.iter().any(|other| other == name);
    if !named("host") {
        request.push_str(&format!("Host: {}\r\n", lane.authority));
    }
    request.push_str(&fields);
    if !body.is_empty() && !named("content-length") && !named("transfer-encoding") {
        request.push_str(&format!("Content-Length: {}\r\n", body.len()));
    }
    if !keepalive && !named("connection") {
        request.push_str("Connection: close\r\n");
    }
    request.push_str("\r\n");
    request.push_str(body);
    let answer = match keys.optional("answer") {
        Some(value) => parse_answer(value)?,
        None => Expectation::default(),
    };
    Ok(Kind {
        head_only: method == "HEAD",
        request: request.into_bytes(),
        answer,
    })
}

impl Plan {
    pub fn parse(text: &str) -> Result<Plan, String> {
        let value: JsonValue = text
            .parse()
            .map_err(|error| format!("the plan is not JSON: {error}"))?;
        let known = [
            "format",
            "output",
            "lanes",
            "kinds",
            "schedule",
            "connections",
            "threads",
            "keepalive",
            "timeout_s",
            "keep_requests",
        ];
        let keys = Keys::new("plan", &value, &known)?;
        if keys.text("format")? != FORMAT {
            let limit = format!("{FORMAT:?}");
            return Err(keys.error("format", keys.value("format")?, &limit));
        }
        let output = keys.text("output")?;
        if output.is_empty() || output.starts_with('.') || output.contains(['/', '\0']) {
            let limit = "the beginning of file names, without / and a leading dot";
            return Err(keys.error("output", keys.value("output")?, limit));
        }
        let keepalive = keys.flag("keepalive")?;
        let schedule = Keys::new("schedule", keys.value("schedule")?, &["rate", "duration_s"])?;
        let rate = schedule.number("rate", 0.001, 10_000_000.0)?;
        let duration_s = schedule.number("duration_s", 0.001, 604_800.0)?;
        let connections = keys.whole("connections", 1.0, 100_000.0)? as usize;
        let threads = keys.whole("threads", 1.0, 1024.0)? as usize;
        let cpus = sys::allowed_cpus().len();
        if threads > connections || threads > cpus {
            let limit =
                format!("at most the number of connections, {connections}, and of CPUs, {cpus}");
            return Err(keys.error("threads", keys.value("threads")?, &limit));
        }
        let timeout_s = keys.number("timeout_s", 0.001, 86_400.0)?;
        let keep_requests = keys.flag("keep_requests")?;
        let lane = parse_lane(keys.only("lanes")?)?;
        let kind = parse_kind(keys.only("kinds")?, &lane, keepalive)?;
        Ok(Plan {
            output: output.to_string(),
            lane,
            kind,
            rate,
            duration_s,
            connections,
            threads,
            keepalive,
            timeout_s,
            keep_requests,
        })
    }

    pub fn schedule(&self) -> Rate {
        Rate::new(self.rate, self.duration_s)
    }

    /// Whether a row is kept for each request, or histograms by second.
    pub fn keeps_rows(&self) -> bool {
        self.keep_requests && self.schedule().scheduled <= MOST_KEPT
    }
}
