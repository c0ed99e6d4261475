//! One connection of a thread, and the ways in which it can fail.

use std::io;
use std::os::unix::io::OwnedFd;

use crate::http::Answer;
use crate::tls::Session;
use crate::visits::Visit;

/// Why a request, or a connect, failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Failure {
    Refused,
    Unreachable,
    NoPort,
    NoDescriptor,
    Tls,
    ConnectTimeout,
    Reset,
    Closed,
    Truncated,
    Protocol,
    Write,
    Timeout,
    Other(i32),
}

impl Failure {
    pub fn name(self) -> String {
        let name = match self {
            Failure::Refused => "refused",
            Failure::Unreachable => "unreachable",
            Failure::NoPort => "no_port",
            Failure::NoDescriptor => "no_descriptor",
            Failure::Tls => "tls",
            Failure::ConnectTimeout => "connect_timeout",
            Failure::Reset => "reset",
            Failure::Closed => "closed",
            Failure::Truncated => "truncated",
            Failure::Protocol => "protocol",
            Failure::Write => "write",
            Failure::Timeout => "timeout",
            Failure::Other(number) => return format!("other_{number}"),
        };
        name.to_string()
    }

    /// The kind of an error of connecting.
    pub fn of_connect(error: &io::Error) -> Failure {
        match error.raw_os_error().unwrap_or(0) {
            libc::ECONNREFUSED => Failure::Refused,
            libc::ENETUNREACH | libc::EHOSTUNREACH | libc::ENETDOWN | libc::EHOSTDOWN => {
                Failure::Unreachable
            }
            libc::EADDRNOTAVAIL => Failure::NoPort,
            libc::EMFILE | libc::ENFILE => Failure::NoDescriptor,
            libc::ETIMEDOUT => Failure::ConnectTimeout,
            libc::ECONNRESET => Failure::Reset,
            number => Failure::Other(number),
        }
    }

    /// The kind of an error of reading.
    pub fn of_read(error: &io::Error) -> Failure {
        match error.raw_os_error().unwrap_or(0) {
            libc::ECONNRESET | libc::EPIPE => Failure::Reset,
            number => Failure::Other(number),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link {
    Closed,
    Connecting,
    /// The TLS handshake is under way.
    Greeting,
    Open,
}

/// The request that a connection carries.
#[derive(Clone, Copy, Debug, Default)]
pub struct Carried {
    pub number: u64,
    /// Its number among the requests that the load sends.
    pub form: usize,
    pub issued: u64,
    pub sent: u64,
    pub pacing: u64,
    pub disturbed: bool,
    /// When the kernel had the first bytes of the answer; 0 before.
    pub first: u64,
    /// Bytes of the request that were written.
    pub written: usize,
}

pub struct Connection {
    pub socket: Option<OwnedFd>,
    pub session: Option<Session>,
    pub link: Link,
    /// Tells the events of this socket from those of earlier ones.
    pub generation: u32,
    pub request: Option<Carried>,
    /// The visit that the request belongs to.
    pub visit: Option<Visit>,
    pub answer: Answer,
    /// Whether the epoll waits until the socket can be written.
    pub writing: bool,
    /// Whether the request is encrypted already.
    pub encrypted: bool,
    /// Whether a request was carried since the connection is open.
    pub used: bool,
    /// When the connect under way, or the request, times out.
    pub deadline: u64,
    pub connect_began: u64,
    /// Since when it is free.
    pub free_since: u64,
}

impl Default for Connection {
    fn default() -> Connection {
        Connection {
            socket: None,
            session: None,
            link: Link::Closed,
            generation: 0,
            request: None,
            visit: None,
            answer: Answer::default(),
            writing: false,
            encrypted: false,
            used: false,
            deadline: u64::MAX,
            connect_began: 0,
            free_since: 0,
        }
    }
}

impl Connection {
    /// What the epoll returns with the events of its socket.
    pub fn token(&self, position: usize) -> u64 {
        u64::from(self.generation) << 32 | position as u64
    }

    pub fn close(&mut self) {
        // Closing takes the socket out of the epoll too.
        self.socket = None;
        self.session = None;
        self.link = Link::Closed;
        self.generation = self.generation.wrapping_add(1);
        self.writing = false;
    }
}
