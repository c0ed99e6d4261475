//! A load from its plan to its files.

use std::fs;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use crate::evaluation::Evaluation;
use crate::pacer::{clock_offset, Pacer, Report, Shared, Track};
use crate::plan::{Lane, Plan};
use crate::record::{Ring, MOST_RECORDS};
use crate::schedule::Schedule;
use crate::slices::Slices;
use crate::summary::{self, Run};
use crate::sys::{self, Epoll};
use crate::tls::Client;

/// Between the opening of the connections and the first due time.
const LEAD_NS: u64 = 10_000_000;
/// Records of a closed loop that memory holds at a time.
const CLOSED_RECORDS: u64 = 1 << 20;
const DRAIN_EVERY: Duration = Duration::from_millis(20);

fn resolve(lane: &Lane) -> Result<SocketAddr, String> {
    let target = (lane.host.as_str(), lane.port);
    target
        .to_socket_addrs()
        .map_err(|error| format!("the address of {} is unknown: {error}", lane.host))?
        .next()
        .ok_or_else(|| format!("the address of {} is unknown", lane.host))
}

/// Where the files of a lane are; of the only lane in the working directory.
fn folder(lane: &Lane) -> &Path {
    Path::new(&lane.name)
}

/// Plays a plan and writes its files into the working directory, or into a folder for each of
/// several lanes.
pub fn play(plan: &Plan) -> Result<(), String> {
    let cannot = |what: &str, error: std::io::Error| format!("cannot {what}: {error}");
    sys::raise_descriptor_limit();
    Epoll::new(1)
        .and_then(|mut epoll| epoll.wait(0))
        .map_err(|error| cannot("use epoll_pwait2, which Linux has from 5.11 on", error))?;
    let cannot_write =
        |path: &Path, error: std::io::Error| cannot(&format!("write {}", path.display()), error);
    let suffix = if plan.keeps_rows {
        "requests"
    } else {
        "seconds"
    };
    let file = format!("{}.{suffix}", plan.output);
    let (mut tracks, mut evaluations, mut parts) = (Vec::new(), Vec::new(), Vec::new());
    let slices = plan.closed.as_ref().map(|closed| {
        let duration_ns = plan.schedule().duration_ns;
        Arc::new(Slices::new(closed, plan.lanes.len(), duration_ns))
    });
    for (index, lane) in plan.lanes.iter().enumerate() {
        let address = resolve(lane)?;
        let client = if lane.tls {
            Some(Client::new(&lane.host)?)
        } else {
            None
        };
        let dues = plan.dues(index);
        let ring = match plan.closed {
            Some(_) => Ring::new(CLOSED_RECORDS / plan.lanes.len() as u64),
            None => Ring::of_lane(dues.scheduled, plan.lanes.len()),
        };
        tracks.push(Track::new(
            lane,
            plan.threads,
            address,
            client,
            Schedule::new(dues, slices.clone()),
            ring,
        ));
        let part = folder(lane).join(format!("{file}.part"));
        let evaluation = fs::create_dir_all(folder(lane))
            .and_then(|()| Evaluation::create(plan, index, slices.clone(), &part))
            .map_err(|error| cannot_write(&part, error))?;
        evaluations.push(evaluation);
        parts.push(part);
    }
    let cpus = sys::allowed_cpus();
    let shared = Shared::new(plan, tracks);
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
        let drainer = if plan.closed.is_some() || plan.most() > MOST_RECORDS {
            let (shared, over, evaluations) = (&shared, &over, &mut evaluations);
            Some(scope.spawn(move || -> std::io::Result<()> {
                sys::yield_to_others();
                while !over.load(Ordering::Acquire) {
                    thread::sleep(DRAIN_EVERY);
                    for (track, evaluation) in shared.tracks.iter().zip(evaluations.iter_mut()) {
                        let claimed = track.schedule.claimed();
                        if claimed - evaluation.sent() >= track.ring.capacity() / 4 {
                            evaluation.drain(&track.ring, claimed)?;
                        }
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
    for (index, mut evaluation) in evaluations.into_iter().enumerate() {
        let (track, part) = (&shared.tracks[index], &parts[index]);
        let evaluated = evaluation
            .drain(&track.ring, track.schedule.claimed())
            .and_then(|()| {
                let lanes = reports.iter().map(|report| &report.lanes[index]);
                evaluation.finish(lanes.flat_map(|lane| lane.free.iter().copied()))
            })
            .map_err(|error| cannot_write(part, error))?;
        let path = folder(track.lane).join(&file);
        fs::rename(part, &path).map_err(|error| cannot_write(&path, error))?;
        let run = Run {
            started,
            memory_locked,
            most_open: track.open_count.most(),
            file: file.clone(),
        };
        let text = summary::text(plan, index, &run, &evaluated, &reports);
        let path = folder(track.lane).join(format!("{}.json", plan.output));
        let part = path.with_extension("json.part");
        fs::write(&part, text)
            .and_then(|()| fs::rename(&part, &path))
            .map_err(|error| cannot_write(&path, error))?;
    }
    Ok(())
}
