//! The plan of a load, read from JSON. Whatever is wrong is said before anything is opened.

use std::collections::HashMap;
use std::fs;
use std::ops::RangeInclusive;
use std::sync::Arc;

use tinyjson::JsonValue;

use crate::arrivals::Arrivals;
use crate::mix::Mix;
use crate::replay::Replay;
use crate::schedule::{Dues, Rate};
use crate::sys;
use crate::turns::Turns;
use crate::values::{Source, Template};
use crate::visits::{Session, Step, Take, Think, Visits, MOST_STEPS};

pub const FORMAT: &str = "metronome plan/1";
const MOST_LANES: usize = 16;
const MOST_KINDS: usize = 16;
/// Entries of `kinds` that the requests of a log are like.
const MOST_LIKE: usize = 64;
/// Requests of a closed loop after which the order of its kinds begins again.
const CLOSED_ORDER: u64 = 1 << 17;
/// Sum of the weights of the kinds.
const MOST_WEIGHT: u64 = 1000;
const MOST_KEPT: u64 = 20_000_000;
/// Requests of a load whose due times are in memory.
const MOST_TIMES: u64 = 20_000_000;
const SMOOTHNESS: (f64, f64) = (0.25, 100.0);
const MOST_BURST: f64 = 10_000.0;
const MOST_RAMP: usize = 1000;
/// Of a state of switching arrivals.
const LEAST_STAY_S: f64 = 0.01;
const CLOSED_SLICE_S: f64 = 0.05;
const DRAIN_S: f64 = 1.0;
const MOST_SLICES: f64 = 100_000.0;
const MOST_THINK_S: f64 = 3_600.0;

/// A server, with connections and figures of its own.
#[derive(Clone, Debug)]
pub struct Lane {
    /// The folder of its files; empty for the only lane.
    pub name: String,
    pub tls: bool,
    /// Name or address, without brackets.
    pub host: String,
    pub port: u16,
    /// Host and port as the Host header names them.
    pub authority: String,
    /// Each of the load's requests as it is written.
    pub requests: Vec<Vec<u8>>,
}

/// What a right answer is.
#[derive(Clone, Debug)]
pub struct Expectation {
    pub status: RangeInclusive<u16>,
    pub bytes: Option<u64>,
    pub body: Option<Vec<u8>>,
}

impl Default for Expectation {
    fn default() -> Expectation {
        Expectation {
            status: 200..=299,
            bytes: None,
            body: None,
        }
    }
}

/// Requests with figures of their own.
#[derive(Clone, Debug)]
pub struct Kind {
    /// Empty of the only kind.
    pub name: String,
    /// Of a replay: its entries.
    pub weight: u64,
}

impl Kind {
    fn new(name: &str, weight: u64) -> Kind {
        Kind {
            name: name.to_string(),
            weight,
        }
    }
}

/// A request that the load sends, besides its text.
#[derive(Clone, Debug)]
pub struct Form {
    pub kind: usize,
    pub head_only: bool,
    pub answer: Expectation,
}

/// What the texts of a request have in common.
struct Head {
    names_host: bool,
    fields: String,
    has_body: bool,
}

impl Head {
    fn write(&self, lane: &mut Lane, method: &str, path: &str, body: &str) {
        let mut request = format!("{method} {path} HTTP/1.1\r\n");
        if !self.names_host {
            request.push_str(&format!("Host: {}\r\n", lane.authority));
        }
        request.push_str(&format!("{}\r\n{body}", self.fields));
        lane.requests.push(request.into_bytes());
    }
}

/// A closed loop: in a lane's slice each connection sends as soon as it has its answer.
#[derive(Clone, Copy, Debug)]
pub struct Closed {
    pub slice_s: f64,
    /// How long the next slice waits for the answers of the one before, at most.
    pub drain_s: f64,
}

#[derive(Clone, Debug)]
pub struct Plan {
    pub output: String,
    pub lanes: Vec<Lane>,
    pub kinds: Vec<Kind>,
    /// The requests that are sent: one of each kind, or those of a log.
    pub forms: Vec<Form>,
    pub replay: bool,
    /// Of the order of several kinds.
    pub mix_seed: u64,
    mix: Arc<Mix>,
    /// 0 of a closed loop.
    pub rate: f64,
    pub duration_s: f64,
    pub closed: Option<Closed>,
    pub arrivals: Arrivals,
    /// Empty where the rate does not change.
    pub ramp: Vec<(f64, f64)>,
    times: Option<Arc<Vec<u64>>>,
    /// Of a load of sessions, whose rate is of visits.
    visits: Option<Arc<Visits>>,
    /// Of each lane; at most, where they are opened on demand.
    pub connections: usize,
    /// Whether a connection is opened when a request is due and none is free.
    pub on_demand: bool,
    pub threads: usize,
    pub keepalive: bool,
    pub timeout_s: f64,
    /// Whether a row is kept for each request, or histograms by second as of a closed loop.
    pub keeps_rows: bool,
}

type Object = HashMap<String, JsonValue>;

/// An object of the plan whose keys are taken out by their reader, so that a misspelt key is seen.
struct Keys<'a> {
    name: String,
    object: &'a Object,
}

fn text_of(value: &JsonValue) -> String {
    value
        .stringify()
        .unwrap_or_else(|_| "not a finite number".to_string())
}

impl<'a> Keys<'a> {
    fn new(name: &str, value: &'a JsonValue, known: &[&str]) -> Result<Keys<'a>, String> {
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
        Ok(Keys {
            name: name.to_string(),
            object,
        })
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

    fn number_or(&self, key: &str, default: f64, least: f64, most: f64) -> Result<f64, String> {
        match self.optional(key) {
            Some(_) => self.number(key, least, most),
            None => Ok(default),
        }
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

    fn list(&self, key: &str, most: usize) -> Result<&'a [JsonValue], String> {
        let value = self.value(key)?;
        let list: Option<&Vec<JsonValue>> = value.get();
        match list {
            Some(list) if (1..=most).contains(&list.len()) => Ok(list),
            _ if most == 1 => Err(self.error(key, value, "a list with exactly 1 entry")),
            _ => Err(self.error(key, value, &format!("a list with 1 to {most} entries"))),
        }
    }
}

fn is_token(text: &str) -> bool {
    !text.is_empty()
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}

/// A lane among several has a name, which is the folder of its files.
fn parse_lane(value: &JsonValue, index: usize, several: bool) -> Result<Lane, String> {
    let known: &[&str] = if several { &["name", "url"] } else { &["url"] };
    let keys = Keys::new(&format!("lanes[{index}]"), value, known)?;
    let name = if several { keys.text("name")? } else { "" };
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    if several && (name.is_empty() || name.starts_with('-') || !name.bytes().all(is_letter)) {
        let limit = "letters, digits, _ and -, without a leading -";
        return Err(keys.error("name", keys.value("name")?, limit));
    }
    let url = keys.text("url")?;
    let wrong = |limit: &str| format!("lanes[{index}].url is {url:?}; {limit}");
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
        name: name.to_string(),
        tls,
        host: host.to_string(),
        port,
        authority: authority.to_string(),
        requests: Vec::new(),
    })
}

fn parse_lanes(keys: &Keys) -> Result<Vec<Lane>, String> {
    let list = keys.list("lanes", MOST_LANES)?;
    let mut lanes: Vec<Lane> = Vec::new();
    for (index, value) in list.iter().enumerate() {
        let lane = parse_lane(value, index, list.len() > 1)?;
        if lanes.iter().any(|other| other.name == lane.name) {
            let name = &lane.name;
            return Err(format!(
                "lanes[{index}].name is {name:?}; it must be the only one of that name"
            ));
        }
        lanes.push(lane);
    }
    Ok(lanes)
}

/// Pairs of a time and a rate, of both of which only the ratios count. At the same time twice, the
/// rate jumps.
fn parse_ramp(keys: &Keys) -> Result<Vec<(f64, f64)>, String> {
    let value = match keys.optional("ramp") {
        Some(value) => value,
        None => return Ok(Vec::new()),
    };
    let list: &[JsonValue] = keys.list("ramp", MOST_RAMP)?;
    let points: Vec<(f64, f64)> = list.iter().filter_map(parse_point).collect();
    let ascends = points.windows(2).all(|pair| pair[0].0 <= pair[1].0);
    let requests: f64 = points
        .windows(2)
        .map(|pair| (pair[1].0 - pair[0].0) * (pair[0].1 + pair[1].1))
        .sum();
    if points.len() < list.len() || points.len() < 2 || !ascends || requests <= 0.0 {
        let limit = format!(
            "2 to {MOST_RAMP} pairs of a time, ascending, and a rate from 0 to 1e7, not all 0"
        );
        return Err(keys.error("ramp", value, &limit));
    }
    Ok(points)
}

fn parse_point(value: &JsonValue) -> Option<(f64, f64)> {
    let pair: &Vec<JsonValue> = value.get()?;
    match pair.as_slice() {
        [time, rate] => Some((*time.get()?, *rate.get()?))
            .filter(|(time, rate)| *time >= 0.0 && (0.0..=1e7).contains(rate)),
        _ => None,
    }
}

fn parse_arrivals(value: &JsonValue) -> Result<Arrivals, String> {
    let known = ["smoothness", "seed", "burst", "switching"];
    let keys = Keys::new("schedule.arrivals", value, &known)?;
    if let Some(value) = keys.optional("switching") {
        for key in ["smoothness", "burst"] {
            if let Some(value) = keys.optional(key) {
                return Err(keys.error(key, value, "absent beside switching"));
            }
        }
        let known = ["ratio", "calm_s", "busy_s"];
        let own = Keys::new("schedule.arrivals.switching", value, &known)?;
        return Ok(Arrivals::Switching {
            ratio: own.number("ratio", 1.0, 1_000.0)?,
            calm_s: own.number("calm_s", LEAST_STAY_S, 86_400.0)?,
            busy_s: own.number("busy_s", LEAST_STAY_S, 86_400.0)?,
            seed: keys.whole("seed", 0.0, u32::MAX.into())?,
        });
    }
    if keys.optional("burst").is_none() {
        return Ok(Arrivals::Gamma {
            smoothness: keys.number("smoothness", SMOOTHNESS.0, SMOOTHNESS.1)?,
            seed: keys.whole("seed", 0.0, u32::MAX.into())?,
        });
    }
    for key in ["smoothness", "seed"] {
        if let Some(value) = keys.optional(key) {
            return Err(keys.error(key, value, "absent beside burst"));
        }
    }
    Ok(Arrivals::Bursts {
        size: keys.whole("burst", 1.0, MOST_BURST)?,
    })
}

fn parse_closed(keys: &Keys, duration_s: f64, lanes: usize) -> Result<Closed, String> {
    if !keys.flag("closed")? {
        return Err(keys.error(
            "closed",
            keys.value("closed")?,
            "true, or a rate in its place",
        ));
    }
    let slice_s = keys.number_or("slice_s", CLOSED_SLICE_S, 0.001, 10.0)?;
    let drain_s = keys.number_or("drain_s", DRAIN_S, 0.0, 86_400.0)?;
    let (least, most) = (slice_s * lanes as f64, slice_s * MOST_SLICES);
    if !(least..=most).contains(&duration_s) {
        let limit = format!("from {least} to {most}, 1 slice of each lane to {MOST_SLICES} in all");
        return Err(keys.error("duration_s", keys.value("duration_s")?, &limit));
    }
    Ok(Closed { slice_s, drain_s })
}

fn parse_answer(value: &JsonValue, index: usize) -> Result<Expectation, String> {
    let name = format!("kinds[{index}].answer");
    let keys = Keys::new(&name, value, &["status", "bytes", "body"])?;
    let status = match keys.optional("status") {
        Some(_) => {
            let status = keys.whole("status", 200.0, 999.0)? as u16;
            status..=status
        }
        None => Expectation::default().status,
    };
    let bytes = match keys.optional("bytes") {
        Some(_) => Some(keys.whole("bytes", 0.0, 1e15)?),
        None => None,
    };
    let body = match keys.optional("body") {
        Some(_) => {
            let path = keys.text("body")?;
            let read = fs::read(path).map_err(|error| {
                format!("{name}.body is {path:?}; it must be a file that can be read: {error}")
            })?;
            Some(read)
        }
        None => None,
    };
    if let (Some(bytes), Some(body)) = (bytes, &body) {
        if bytes != body.len() as u64 {
            return Err(format!(
                "{name}.bytes is {bytes}; it must be the length of the body, {}",
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

/// What each visitor does: a list of steps. Names in braces in the requests of the `kinds` stand for
/// values that earlier steps take.
fn parse_session(keys: &Keys, kinds: usize, lane: &Lane) -> Result<Session, String> {
    let seed = keys.whole("think_seed", 0.0, u32::MAX.into())?;
    let (mut steps, mut names) = (Vec::new(), Vec::<String>::new());
    for (index, value) in keys.list("session", MOST_STEPS)?.iter().enumerate() {
        let known = ["kind", "think_s", "think_mean_s", "take"];
        let own = Keys::new(&format!("schedule.session[{index}]"), value, &known)?;
        let kind = own.whole("kind", 0.0, (kinds - 1) as f64)? as usize;
        let think = match own.optional("think_mean_s") {
            Some(_) => Think::Random(own.number("think_mean_s", 0.0, MOST_THINK_S)? * 1e9),
            None => Think::Fixed((own.number_or("think_s", 0.0, 0.0, MOST_THINK_S)? * 1e9) as u64),
        };
        let mut takes = Vec::new();
        if let Some(value) = own.optional("take") {
            let form = "a list of pairs [name, JSON path or header]";
            let list: &Vec<JsonValue> =
                value.get().ok_or_else(|| own.error("take", value, form))?;
            for entry in list {
                let pair: Option<&Vec<JsonValue>> = entry.get();
                let (name, place): (Option<&String>, Option<&String>) =
                    match pair.map(Vec::as_slice) {
                        Some([name, place]) => (name.get(), place.get()),
                        _ => (None, None),
                    };
                let source = place.and_then(|place| Source::parse(place));
                let (name, source) = name
                    .zip(source)
                    .filter(|(name, _)| !name.is_empty())
                    .ok_or_else(|| own.error("take", entry, form))?;
                let value = names.iter().position(|other| other == name);
                let value = value.unwrap_or_else(|| {
                    names.push(name.clone());
                    names.len() - 1
                });
                takes.push(Take { value, source });
            }
        }
        steps.push(Step { kind, think, takes });
    }
    let texts = lane.requests.iter();
    Ok(Session {
        steps,
        values: names.len(),
        templates: texts.map(|text| Template::new(text, &names)).collect(),
        seed,
    })
}

fn is_path(text: &str) -> bool {
    text.starts_with('/') && text.bytes().all(|byte| byte > b' ' && byte != 0x7f)
}

/// Returns the kind of a number with its form, and writes its request for each lane. A kind among
/// several has a name and a weight.
fn parse_kind(
    value: &JsonValue,
    index: usize,
    several: bool,
    lanes: &mut [Lane],
    keepalive: bool,
) -> Result<(Kind, Form, Head), String> {
    let known = [
        "method", "path", "headers", "body", "answer", "name", "weight",
    ];
    let known = if several { &known[..] } else { &known[..5] };
    let keys = Keys::new(&format!("kinds[{index}]"), value, known)?;
    let (mut name, mut weight) = ("", 1);
    if several {
        name = keys.text("name")?;
        weight = keys.whole("weight", 1.0, MOST_WEIGHT as f64)?;
    }
    let method = keys.text("method")?;
    if !is_token(method) || method == "CONNECT" {
        return Err(keys.error(
            "method",
            keys.value("method")?,
            "a method other than CONNECT",
        ));
    }
    let path = keys.text("path")?;
    if !is_path(path) {
        let limit = "a text that begins with / and has no spaces or control characters";
        return Err(keys.error("path", keys.value("path")?, limit));
    }
    let body = match keys.optional("body") {
        Some(_) => keys.text("body")?,
        None => "",
    };
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
    if !body.is_empty() && !named("content-length") && !named("transfer-encoding") {
        fields.push_str(&format!("Content-Length: {}\r\n", body.len()));
    }
    if !keepalive && !named("connection") {
        fields.push_str("Connection: close\r\n");
    }
    let head = Head {
        names_host: named("host"),
        fields,
        has_body: !body.is_empty(),
    };
    for lane in lanes {
        head.write(lane, method, path, body);
    }
    let answer = match keys.optional("answer") {
        Some(value) => parse_answer(value, index)?,
        None => Expectation::default(),
    };
    let form = Form {
        kind: index,
        head_only: method == "HEAD",
        answer,
    };
    Ok((Kind::new(name, weight), form, head))
}

/// Returns the forms of a log's requests, and writes them for each lane in place of those of the
/// plan's kinds, whose forms and heads they may have.
fn replayed(
    replay: &Replay,
    forms: &[Form],
    heads: &[Head],
    lanes: &mut [Lane],
) -> Result<Vec<Form>, String> {
    let written: Vec<Vec<Vec<u8>>> = lanes
        .iter_mut()
        .map(|lane| std::mem::take(&mut lane.requests))
        .collect();
    let mut all = Vec::with_capacity(replay.requests.len());
    for (number, request) in replay.requests.iter().enumerate() {
        let wrong = |text: &str| format!("schedule.replay: request {number} {text}");
        let (form, head) = forms
            .get(request.like)
            .zip(heads.get(request.like))
            .ok_or_else(|| wrong("is like no entry of kinds"))?;
        let own = match &request.own {
            Some(own) => own,
            None => {
                for (lane, written) in lanes.iter_mut().zip(&written) {
                    lane.requests.push(written[request.like].clone());
                }
                all.push(Form {
                    kind: request.kind,
                    ..form.clone()
                });
                continue;
            }
        };
        if head.has_body || !is_token(&own.method) || !is_path(&own.path) {
            return Err(wrong("has a body, or a malformed method or path"));
        }
        for lane in lanes.iter_mut() {
            head.write(lane, &own.method, &own.path, "");
        }
        all.push(Form {
            kind: request.kind,
            head_only: own.method == "HEAD",
            answer: Expectation {
                status: own.status.clone(),
                ..Expectation::default()
            },
        });
    }
    Ok(all)
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
            "on_demand",
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
        let mut lanes = parse_lanes(&keys)?;
        let schedule = keys.value("schedule")?;
        let object: Option<&Object> = schedule.get();
        let is_closed = object.map_or(false, |object| object.contains_key("closed"));
        let is_replay = object.map_or(false, |object| object.contains_key("replay"));
        let known: &[&str] = if is_replay && lanes.len() == 1 {
            &["replay", "duration_s"]
        } else if is_closed {
            &["closed", "duration_s", "slice_s", "drain_s"]
        } else if lanes.len() == 1 {
            &[
                "rate",
                "duration_s",
                "arrivals",
                "ramp",
                "session",
                "think_seed",
            ]
        } else {
            &["rate", "duration_s"]
        };
        let is_session = object.map_or(false, |object| object.contains_key("session"));
        let several = !is_replay && keys.list("kinds", MOST_KINDS)?.len() > 1;
        let known: Vec<&str> = known
            .iter()
            .copied()
            .chain(if several && !is_session {
                Some("mix_seed")
            } else {
                None
            })
            .collect();
        let schedule = Keys::new("schedule", schedule, &known)?;
        let duration_s = schedule.number("duration_s", 0.001, 604_800.0)?;
        let (mut rate, mut closed) = (0.0, None);
        let (mut arrivals, mut ramp) = (Arrivals::Constant, Vec::new());
        let mut replay = None;
        if is_replay {
            let duration_ns = Rate::new(0.0, duration_s).duration_ns;
            let read = Replay::read(schedule.text("replay")?, duration_ns, MOST_TIMES)?;
            rate = read.times.len() as f64 / duration_s;
            replay = Some(read);
        } else if is_closed {
            closed = Some(parse_closed(&schedule, duration_s, lanes.len())?);
        } else {
            rate = schedule.number("rate", 0.001, 10_000_000.0)?;
            if let Some(value) = schedule.optional("arrivals") {
                arrivals = parse_arrivals(value)?;
            }
            ramp = parse_ramp(&schedule)?;
            let scheduled = Rate::new(rate, duration_s).scheduled;
            let constant = arrivals == Arrivals::Constant && ramp.is_empty();
            if !constant && scheduled > MOST_TIMES {
                return Err(format!(
                    "schedule has {scheduled} requests; with arrivals or a ramp it must have at \
                      most {MOST_TIMES}"
                ));
            }
        }
        let connections = keys.whole("connections", 1.0, 100_000.0)? as usize;
        let on_demand = keys.optional("on_demand").is_some() && keys.flag("on_demand")?;
        if on_demand && is_closed {
            let limit = "false of a closed loop, whose connections all carry requests";
            return Err(keys.error("on_demand", keys.value("on_demand")?, limit));
        }
        let threads = keys.whole("threads", 1.0, 1024.0)? as usize;
        let cpus = sys::allowed_cpus().len();
        if threads > connections || threads > cpus {
            let limit =
                format!("at most the number of connections, {connections}, and of CPUs, {cpus}");
            return Err(keys.error("threads", keys.value("threads")?, &limit));
        }
        let timeout_s = keys.number("timeout_s", 0.001, 86_400.0)?;
        let keep_requests = keys.flag("keep_requests")?;
        let (mut kinds, mut forms, mut heads) = (Vec::new(), Vec::new(), Vec::new());
        let most = if is_replay { MOST_LIKE } else { MOST_KINDS };
        for (index, value) in keys.list("kinds", most)?.iter().enumerate() {
            let (kind, form, head) = parse_kind(value, index, several, &mut lanes, keepalive)?;
            kinds.push(kind);
            forms.push(form);
            heads.push(head);
        }
        let mix_seed = if several && !is_session {
            schedule.whole("mix_seed", 0.0, u32::MAX.into())?
        } else {
            0
        };
        if let Some(replay) = &replay {
            forms = replayed(replay, &forms, &heads, &mut lanes)?;
            kinds = replay.kinds.iter().map(|name| Kind::new(name, 0)).collect();
            for &request in &replay.order {
                kinds[forms[request as usize].kind].weight += 1;
            }
        }
        let weights: Vec<u64> = kinds.iter().map(|kind| kind.weight).collect();
        let (sum, scheduled) = (
            weights.iter().sum::<u64>(),
            Rate::new(rate, duration_s).scheduled,
        );
        if several && sum > MOST_WEIGHT {
            return Err(format!(
                "kinds have weights of {sum} together; they must be at most {MOST_WEIGHT}"
            ));
        }
        let session = if is_session {
            Some(parse_session(&schedule, kinds.len(), &lanes[0])?)
        } else {
            None
        };
        let requests = scheduled * session.as_ref().map_or(1, |all| all.steps.len() as u64);
        let keeps_rows = keep_requests && closed.is_none() && requests <= MOST_KEPT;
        if is_session && !keeps_rows {
            return Err(format!(
                "schedule.session is of {requests} requests; a row must be kept of each, of at most \
                 {MOST_KEPT}"
            ));
        }
        if kinds.len() > 1 && !keeps_rows && closed.is_none() {
            return Err(format!(
                "kinds has {} entries; it must have 1 unless a row is kept for each request, which \
                 are at most {MOST_KEPT}, or in a closed loop",
                kinds.len()
            ));
        }
        let replays = replay.is_some();
        // Whole blocks.
        let ordered = if is_closed {
            CLOSED_ORDER - CLOSED_ORDER % sum.max(1)
        } else {
            0
        };
        let (mix, times) = match replay {
            Some(replay) => (Mix::of(replay.order), Some(replay.times)),
            None if is_session => (
                Mix::of(Vec::new()),
                arrivals.times(&Rate::new(rate, duration_s), &ramp),
            ),
            None => (
                Mix::new(&weights, mix_seed, scheduled.max(ordered)),
                arrivals.times(&Rate::new(rate, duration_s), &ramp),
            ),
        };
        let visits = session.map(|session| {
            let even = Rate::new(rate, duration_s);
            let arrivals = match &times {
                Some(times) => times.clone(),
                None => (0..scheduled).map(|visit| even.due(visit)).collect(),
            };
            Arc::new(Visits::new(session, arrivals))
        });
        Ok(Plan {
            output: output.to_string(),
            lanes,
            mix: Arc::new(mix),
            mix_seed,
            kinds,
            forms,
            replay: replays,
            rate,
            duration_s,
            closed,
            arrivals,
            times: times.map(Arc::new),
            visits,
            ramp,
            connections,
            on_demand,
            threads,
            keepalive,
            timeout_s,
            keeps_rows,
        })
    }

    pub fn schedule(&self) -> Rate {
        Rate::new(self.rate, self.duration_s)
    }

    /// Whether due times follow from the requests' numbers.
    pub fn is_even(&self) -> bool {
        self.times.is_none() && self.visits.is_none()
    }

    pub fn dues(&self, lane: usize) -> Dues {
        let turns = Turns::new(self.lanes.len());
        let dues = Dues::new(self.schedule(), self.times.clone(), turns, lane);
        match &self.visits {
            Some(visits) => dues.of_visits(visits.clone()),
            None => dues,
        }
    }

    pub fn visits(&self) -> Option<&Visits> {
        self.visits.as_deref()
    }

    /// Requests of the load, of sessions at most.
    pub fn most(&self) -> u64 {
        match &self.visits {
            Some(visits) => visits.most(),
            None => self.schedule().scheduled,
        }
    }

    /// The share of the busiest second that lies within so many nanoseconds before a request is due.
    /// Of visits, whose requests may be due at any time, the most that it can be.
    pub fn busiest(&self, before_ns: u64) -> f64 {
        let steps = self.visits().map_or(1, Visits::steps) as f64;
        let rate = self.schedule();
        let times = match &self.times {
            Some(times) => times,
            None => return (steps * self.rate * before_ns as f64 / 1e9).min(1.0),
        };
        let (mut seconds, mut last) = (vec![0; rate.seconds()], 0);
        for &time in times.iter() {
            seconds[rate.second(time)] += (time - last).min(before_ns);
            last = time;
        }
        let most = seconds.into_iter().max().unwrap_or(0);
        (steps * most as f64 / rate.duration_ns.min(1_000_000_000) as f64).min(1.0)
    }

    /// The number of the form of a lane's request.
    pub fn form_of(&self, request: u64) -> usize {
        self.mix.request(request)
    }

    pub fn mix(&self) -> Arc<Mix> {
        self.mix.clone()
    }
}
