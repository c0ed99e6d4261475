//! A load from its plan to its files.

use std::fs;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use crate::evaluation::Evaluation;
use crate::pacer::{clock_offset, Pacer, Report, Shared};
use crate::plan::Plan;
use crate::record::{Ring, MOST_RECORDS};
use crate::summary::{self, Run};
use crate::sys::{self, Epoll};
use crate::tls::Client;

/// Between the opening of the connections and the first due time.
const LEAD_NS: u64 = 10_000_000;
const DRAIN_EVERY: Duration = Duration::from_millis(20);

fn resolve(plan: &Plan) -> Result<SocketAddr, String> {
    let target = (plan.lane.host.as_str(), plan.lane.port);
    target
        .to_socket_addrs()
        .map_err(|error| format!("the address of {} is unknown: {error}", plan.lane.host))?
        .next()
        .ok_or_else(|| format!("the address of {} is unknown", plan.lane.host))
}

/// Plays a plan and writes its files into the working directory.
pub fn play(plan: &Plan) -> Result<(), String> {
    let cannot = |what: &str, error: std::io::Error| format!("cannot {what}: {error}");
    sys::raise_descriptor_limit();
    Epoll::new(1)
        .and_then(|mut epoll| epoll.wait(0))
        .map_err(|error| cannot("use epoll_pwait2, which Linux has from 5.11 on", error))?;
    let address = resolve(plan)?;
    let client = if plan.lane.tls {
        Some(Client::new(&plan.lane.host)?)
    } else {
        None
    };
    let rate = plan.schedule();
    let suffix = if plan.keeps_rows() {
        "requests"
    } else {
        "seconds"
    };
    let file = format!("{}.{suffix}", plan.output);
    let part = PathBuf::from(format!("{file}.part"));
    let mut evaluation = Evaluation::create(plan, &part)
        .map_err(|error| cannot(&format!("write {}", part.display()), error))?;
    let cpus = sys::allowed_cpus();
    let ring = Ring::new(rate.scheduled.min(MOST_RECORDS));
    let shared = Shared::new(plan, address, client, ring);
    let over = AtomicBool::new(false);
    let mut memory_locked = false;
    let mut started = 0;
    let result = thread::scope(|scope| {
        let pacers: Vec<_> = (0..plan.threads)
            .map(|index| {
                let (shared, cpu) = (&shared, cpus[index]);
                scope.spawn(move || -> std::io::Result<Report> {
                    let prepared = sys::pin(cpu).and_then(|()| {
                        sys::shorten_timer_slack();
                        Pacer::new(shared, index)
                    });
                    match prepared {
                        Ok(pacer) => pacer.run(),
                        Err(error) => {
                            // The others wait for this thread too.
                            shared.ready.wait();
                            shared.go.wait();
                            Err(error)
                        }
                    }
                })
            })
            .collect();
        let drainer = if rate.scheduled > MOST_RECORDS {
            let (shared, over, evaluation) = (&shared, &over, &mut evaluation);
            Some(scope.spawn(move || -> std::io::Result<()> {
                sys::yield_to_others();
                while !over.load(Ordering::Acquire) {
                    thread::sleep(DRAIN_EVERY);
                    let claimed = shared.schedule.claimed();
                    if claimed - evaluation.sent() >= shared.ring.capacity() / 4 {
                        evaluation.drain(&shared.ring, claimed)?;
                    }
                }
                Ok(())
            }))
        } else {
            None
        };
        shared.ready.wait();
        memory_locked = sys::lock_memory();
        let (offset, _) = clock_offset(1000);
        let start = sys::monotonic() + LEAD_NS;
        started = (start as i64 + offset) as u64;
        shared.start.store(start, Ordering::Release);
        shared.go.wait();
        let reports: std::io::Result<Vec<Report>> = pacers
            .into_iter()
            .map(|pacer| pacer.join().expect("a pacer does not panic"))
            .collect();
        over.store(true, Ordering::Release);
        let drained = match drainer {
            Some(drainer) => drainer.join().expect("the drainer does not panic"),
            None => Ok(()),
        };
        reports.and_then(|reports| drained.map(|()| reports))
    });
    let reports = result.map_err(|error| cannot("play the load", error))?;
    evaluation
        .drain(&shared.ring, shared.schedule.claimed())
        .map_err(|error| cannot(&format!("write {}", part.display()), error))?;
    drop(shared);
    let evaluated = evaluation
        .finish()
        .map_err(|error| cannot(&format!("write {}", part.display()), error))?;
    fs::rename(&part, &file).map_err(|error| cannot(&format!("write {file}"), error))?;
    let run = Run {
        started,
        memory_locked,
        file,
    };
    let text = summary::text(plan, &run, &evaluated, &reports);
    let name = format!("{}.json", plan.output);
    let part = format!("{name}.part");
    fs::write(&part, text)
        .and_then(|()| fs::rename(&part, &name))
        .map_err(|error| cannot(&format!("write {name}"), error))
}
