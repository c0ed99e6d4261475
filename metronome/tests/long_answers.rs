//! Long answers beside short ones. Alone in its file, as it takes a core from what runs beside it.

mod common;

use common::{load, Server, HELLO};

#[test]
fn a_long_answer_delays_no_other_request() {
    // To read its small chunks takes longer than to write them, so there is more to read each time.
    let long = [
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec(),
        b"8\r\n01234567\r\n".repeat(4_000_000),
        b"0\r\n\r\n".to_vec(),
    ]
    .concat();
    let server = Server::start(move |exchange| {
        let is_long = exchange.number % 200 == 99;
        exchange.answer(if is_long { &long } else { HELLO })
    });
    let measured = load(&server.url()).play();
    assert_eq!(measured.outcome("right"), measured.sent(400));
    // To the end of an answer it takes three times as long.
    let longest = measured.number(&["gaps", "causes", "own_work", "longest_s"]);
    assert!(longest < 0.03, "{longest}");
}
