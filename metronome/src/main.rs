//! `metronome PLAN` plays a plan; `metronome --version` says the version.

use std::process::exit;

use metronome::plan::Plan;
use metronome::run;

const CALL: &str = "call: metronome PLAN, where PLAN is a plan in JSON, or metronome --version";

fn main() {
    let mut arguments = std::env::args_os().skip(1);
    let argument = match (arguments.next(), arguments.next()) {
        (Some(argument), None) => argument.into_string().ok(),
        _ => None,
    };
    let text = match argument {
        Some(text) => text,
        None => refuse(CALL),
    };
    if text == "--version" {
        println!("metronome {}", env!("CARGO_PKG_VERSION"));
        return;
    }
    if text.starts_with('-') {
        refuse(CALL);
    }
    let plan = match Plan::parse(&text) {
        Ok(plan) => plan,
        Err(message) => refuse(&message),
    };
    if let Err(message) = run::play(&plan) {
        eprintln!("metronome: {message}");
        exit(1);
    }
}

fn refuse(message: &str) -> ! {
    eprintln!("metronome: {message}");
    exit(2);
}
