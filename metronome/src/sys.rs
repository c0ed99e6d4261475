//! System calls. The only module with unsafe code.
#![allow(unsafe_code)]

use std::io;
use std::mem;
use std::net::SocketAddr;
use std::os::unix::io::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr;

use libc::{c_int, c_void};

/// The number of the call is the same on all architectures that Rust's Linux targets have.
const EPOLL_PWAIT2: libc::c_long = 441;

/// Flags of SO_TIMESTAMPING: stamp what is received in software, and report it.
const STAMP_RECEIVED: c_int = (1 << 3) | (1 << 4);

pub const READABLE: u32 = libc::EPOLLIN as u32;
pub const WRITABLE: u32 = libc::EPOLLOUT as u32;

fn checked(result: c_int) -> io::Result<c_int> {
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(result)
    }
}

fn clock(id: libc::clockid_t) -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    unsafe { libc::clock_gettime(id, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Nanoseconds of CLOCK_MONOTONIC.
pub fn monotonic() -> u64 {
    clock(libc::CLOCK_MONOTONIC)
}

/// Nanoseconds of CLOCK_REALTIME.
pub fn realtime() -> u64 {
    clock(libc::CLOCK_REALTIME)
}

/// One thread's epoll instance with its buffer of events.
pub struct Epoll {
    descriptor: OwnedFd,
    events: Vec<libc::epoll_event>,
}

impl Epoll {
    /// `most`: events that one wait returns.
    pub fn new(most: usize) -> io::Result<Epoll> {
        let descriptor = checked(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })?;
        Ok(Epoll {
            descriptor: unsafe { OwnedFd::from_raw_fd(descriptor) },
            events: vec![libc::epoll_event { events: 0, u64: 0 }; most],
        })
    }

    fn control(
        &self,
        operation: c_int,
        target: &OwnedFd,
        interest: u32,
        token: u64,
    ) -> io::Result<()> {
        let mut event = libc::epoll_event {
            events: interest,
            u64: token,
        };
        checked(unsafe {
            libc::epoll_ctl(
                self.descriptor.as_raw_fd(),
                operation,
                target.as_raw_fd(),
                &mut event,
            )
        })?;
        Ok(())
    }

    pub fn add(&self, target: &OwnedFd, interest: u32, token: u64) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_ADD, target, interest, token)
    }

    pub fn modify(&self, target: &OwnedFd, interest: u32, token: u64) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_MOD, target, interest, token)
    }

    /// Waits at most `timeout_ns`, and returns how many events came. A signal counts as none.
    pub fn wait(&mut self, timeout_ns: u64) -> io::Result<usize> {
        let timeout = libc::timespec {
            tv_sec: (timeout_ns / 1_000_000_000) as libc::time_t,
            tv_nsec: (timeout_ns % 1_000_000_000) as libc::c_long,
        };
        let count = unsafe {
            libc::syscall(
                EPOLL_PWAIT2,
                self.descriptor.as_raw_fd(),
                self.events.as_mut_ptr(),
                self.events.len() as c_int,
                &timeout as *const libc::timespec,
                ptr::null::<libc::sigset_t>(),
                8usize,
            )
        };
        if count < 0 {
            let error = io::Error::last_os_error();
            if error.kind() == io::ErrorKind::Interrupted {
                return Ok(0);
            }
            return Err(error);
        }
        Ok(count as usize)
    }

    /// Token and readiness of an event of the last wait.
    pub fn event(&self, position: usize) -> (u64, u32) {
        let event = self.events[position];
        (event.u64, event.events)
    }
}

fn set_option(socket: &OwnedFd, level: c_int, name: c_int, value: c_int) -> io::Result<()> {
    checked(unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            name,
            &value as *const c_int as *const c_void,
            mem::size_of::<c_int>() as libc::socklen_t,
        )
    })?;
    Ok(())
}

/// Begins to connect a non-blocking TCP socket. Says whether it asked for receive stamps with success.
pub fn connect(address: &SocketAddr) -> io::Result<(OwnedFd, bool)> {
    let family = match address {
        SocketAddr::V4(_) => libc::AF_INET,
        SocketAddr::V6(_) => libc::AF_INET6,
    };
    let kind = libc::SOCK_STREAM | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    let descriptor = checked(unsafe { libc::socket(family, kind, 0) })?;
    let socket = unsafe { OwnedFd::from_raw_fd(descriptor) };
    set_option(&socket, libc::IPPROTO_TCP, libc::TCP_NODELAY, 1)?;
    let stamped = set_option(
        &socket,
        libc::SOL_SOCKET,
        libc::SO_TIMESTAMPING,
        STAMP_RECEIVED,
    )
    .is_ok();
    let result = match address {
        SocketAddr::V4(v4) => {
            let mut raw: libc::sockaddr_in = unsafe { mem::zeroed() };
            raw.sin_family = libc::AF_INET as libc::sa_family_t;
            raw.sin_port = v4.port().to_be();
            raw.sin_addr.s_addr = u32::from_ne_bytes(v4.ip().octets());
            unsafe {
                libc::connect(
                    descriptor,
                    &raw as *const libc::sockaddr_in as *const libc::sockaddr,
                    mem::size_of::<libc::sockaddr_in>() as libc::socklen_t,
                )
            }
        }
        SocketAddr::V6(v6) => {
            let mut raw: libc::sockaddr_in6 = unsafe { mem::zeroed() };
            raw.sin6_family = libc::AF_INET6 as libc::sa_family_t;
            raw.sin6_port = v6.port().to_be();
            raw.sin6_flowinfo = v6.flowinfo();
            raw.sin6_scope_id = v6.scope_id();
            raw.sin6_addr.s6_addr = v6.ip().octets();
            unsafe {
                libc::connect(
                    descriptor,
                    &raw as *const libc::sockaddr_in6 as *const libc::sockaddr,
                    mem::size_of::<libc::sockaddr_in6>() as libc::socklen_t,
                )
            }
        }
    };
    if result < 0 {
        let error = io::Error::last_os_error();
        if error.raw_os_error() != Some(libc::EINPROGRESS) {
            return Err(error);
        }
    }
    Ok((socket, stamped))
}

/// The error of a socket's connect, if it failed.
pub fn connect_error(socket: &OwnedFd) -> Option<io::Error> {
    let mut value: c_int = 0;
    let mut length = mem::size_of::<c_int>() as libc::socklen_t;
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_ERROR,
            &mut value as *mut c_int as *mut c_void,
            &mut length,
        )
    };
    if result < 0 {
        return Some(io::Error::last_os_error());
    }
    if value == 0 {
        None
    } else {
        Some(io::Error::from_raw_os_error(value))
    }
}

pub fn send(socket: &OwnedFd, bytes: &[u8]) -> io::Result<usize> {
    let count = unsafe {
        libc::send(
            socket.as_raw_fd(),
            bytes.as_ptr() as *const c_void,
            bytes.len(),
            libc::MSG_NOSIGNAL,
        )
    };
    if count < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(count as usize)
}

/// Reads what a socket has, with the CLOCK_REALTIME at which the kernel had the last byte of it.
pub fn receive(socket: &OwnedFd, buffer: &mut [u8]) -> io::Result<(usize, Option<u64>)> {
    let mut part = libc::iovec {
        iov_base: buffer.as_mut_ptr() as *mut c_void,
        iov_len: buffer.len(),
    };
    let mut control = [0u64; 32];
    let mut message: libc::msghdr = unsafe { mem::zeroed() };
    message.msg_iov = &mut part;
    message.msg_iovlen = 1;
    message.msg_control = control.as_mut_ptr() as *mut c_void;
    message.msg_controllen = mem::size_of_val(&control) as _;
    let count = unsafe { libc::recvmsg(socket.as_raw_fd(), &mut message, 0) };
    if count < 0 {
        return Err(io::Error::last_os_error());
    }
    let mut stamp = None;
    unsafe {
        let mut header = libc::CMSG_FIRSTHDR(&message);
        while !header.is_null() {
            if (*header).cmsg_level == libc::SOL_SOCKET
                && (*header).cmsg_type == libc::SO_TIMESTAMPING
            {
                let time = ptr::read_unaligned(libc::CMSG_DATA(header) as *const libc::timespec);
                let value = time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64;
                if value > 0 {
                    stamp = Some(value);
                }
            }
            header = libc::CMSG_NXTHDR(&message, header);
        }
    }
    Ok((count as usize, stamp))
}

/// The CPUs on which this thread may run, ascending.
pub fn allowed_cpus() -> Vec<usize> {
    let mut set: libc::cpu_set_t = unsafe { mem::zeroed() };
    let size = mem::size_of::<libc::cpu_set_t>();
    if unsafe { libc::sched_getaffinity(0, size, &mut set) } != 0 {
        return vec![0];
    }
    (0..libc::CPU_SETSIZE as usize)
        .filter(|&cpu| unsafe { libc::CPU_ISSET(cpu, &set) })
        .collect()
}

/// Keeps this thread on one CPU.
pub fn pin(cpu: usize) -> io::Result<()> {
    let mut set: libc::cpu_set_t = unsafe { mem::zeroed() };
    unsafe { libc::CPU_SET(cpu, &mut set) };
    checked(unsafe { libc::sched_setaffinity(0, mem::size_of::<libc::cpu_set_t>(), &set) })?;
    Ok(())
}

/// Lets the kernel end this thread's sleeps at the asked nanosecond.
pub fn shorten_timer_slack() {
    let shortest: libc::c_ulong = 1;
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, shortest) };
}

/// Keeps in memory what the process has mapped so far. Says whether that was allowed.
pub fn lock_memory() -> bool {
    unsafe { libc::mlockall(libc::MCL_CURRENT) == 0 }
}

/// Lets this thread run before all that are not real-time. Says whether that was allowed.
pub fn run_first() -> bool {
    let mut parameter: libc::sched_param = unsafe { mem::zeroed() };
    parameter.sched_priority = 50;
    unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &parameter) == 0 }
}

/// Gives this thread the largest share of its core. Says whether that was allowed.
pub fn take_largest_share() -> bool {
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, -20) == 0 }
}

/// Lets this thread run only when nothing else would.
pub fn yield_to_others() {
    let parameter: libc::sched_param = unsafe { mem::zeroed() };
    unsafe {
        if libc::sched_setscheduler(0, libc::SCHED_IDLE, &parameter) != 0 {
            libc::setpriority(libc::PRIO_PROCESS, 0, 19);
        }
    }
}

/// Allows as many descriptors as the hard limit does.
pub fn raise_descriptor_limit() {
    unsafe {
        let mut limit: libc::rlimit = mem::zeroed();
        if libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) == 0 {
            limit.rlim_cur = limit.rlim_max;
            libc::setrlimit(libc::RLIMIT_NOFILE, &limit);
        }
    }
}

/// User and system CPU time of this thread, in nanoseconds.
pub fn thread_cpu() -> (u64, u64) {
    let mut usage: libc::rusage = unsafe { mem::zeroed() };
    if unsafe { libc::getrusage(libc::RUSAGE_THREAD, &mut usage) } != 0 {
        return (0, 0);
    }
    let nanoseconds =
        |time: libc::timeval| time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1000;
    (nanoseconds(usage.ru_utime), nanoseconds(usage.ru_stime))
}
