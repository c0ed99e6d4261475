//! A load generator that plays a schedule of HTTP/1.1 requests at exact due times, records every
//! request, says what it itself added, and checks itself.
#![deny(unsafe_code)]

pub mod arrivals;
pub mod columns;
pub mod connection;
pub mod evaluation;
pub mod gaps;
pub mod histogram;
pub mod http;
pub mod mix;
pub mod own;
pub mod pacer;
pub mod plan;
pub mod record;
pub mod replay;
pub mod run;
pub mod schedule;
pub mod seconds;
pub mod slices;
pub mod summary;
pub mod sys;
pub mod tls;
pub mod turns;
pub mod values;
pub mod visits;
