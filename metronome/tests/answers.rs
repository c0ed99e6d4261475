//! The parser of answers, with whole, torn and hostile input.

mod common;

use common::Random;
use metronome::http::{Answer, End};
use metronome::plan::Expectation;
use metronome::record::Outcome;

type Result = std::result::Result<Option<usize>, &'static str>;

/// What an answer is after its last byte.
type Parsed = (Result, u16, u64, bool, End, Outcome);

fn expect(body: Option<&[u8]>) -> Expectation {
    Expectation {
        status: 200..=299,
        bytes: None,
        body: body.map(<[u8]>::to_vec),
    }
}

/// Feeds the input in pieces whose lengths `next` gives.
fn parse(input: &[u8], head_only: bool, mut next: impl FnMut() -> usize) -> Parsed {
    let expected = expect(Some(b"hello"));
    let mut answer = Answer::default();
    let mut position = 0;
    let mut result = Ok(None);
    while position < input.len() {
        let piece = next().clamp(1, input.len() - position);
        result = answer.feed(&input[position..position + piece], head_only, &expected);
        match result {
            Ok(Some(used)) => {
                result = Ok(Some(position + used));
                break;
            }
            Ok(None) => position += piece,
            Err(_) => break,
        }
    }
    let outcome = answer.outcome(head_only, &expected);
    let end = answer.end();
    match result {
        // What was counted before an error depends on the pieces and has no meaning.
        Err(_) => (result, 0, 0, false, End::Truncated, Outcome::Read),
        _ => (
            result,
            answer.status,
            answer.bytes,
            answer.closes,
            end,
            outcome,
        ),
    }
}

/// The outcome is the same whatever the pieces.
fn parse_all_ways(input: &[u8], head_only: bool, random: &mut Random) -> Parsed {
    let whole = parse(input, head_only, || usize::MAX);
    assert_eq!(parse(input, head_only, || 1), whole, "{input:?}");
    for most in [3, 20, 200] {
        let torn = parse(input, head_only, || random.below(most) as usize + 1);
        assert_eq!(torn, whole, "{input:?}");
    }
    whole
}

fn right(input: &[u8], used: usize) {
    let parsed = parse_all_ways(input, false, &mut Random::new(1));
    assert_eq!(
        parsed.0,
        Ok(Some(used)),
        "{:?}",
        String::from_utf8_lossy(input)
    );
    assert_eq!(parsed.5, Outcome::Right);
}

fn wrong(input: &[u8]) {
    let parsed = parse_all_ways(input, false, &mut Random::new(2));
    assert!(parsed.0.is_err(), "{:?}", String::from_utf8_lossy(input));
}

#[test]
fn right_answers() {
    let answers: [&[u8]; 8] = [
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
        b"HTTP/1.1 200\r\ncontent-length:005 \r\nContent-Length: 5\r\n\r\nhello",
        b"HTTP/1.0 299 Fine\nContent-Length: 5\n\nhello",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nh\r\n0004;x=\"y\"\r\nello\r\n00\r\nA: b\r\nC: d\r\n\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
        b"HTTP/1.1 103 A\r\nB: c\r\n\r\nHTTP/1.1 102 D\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5 \r\nhello\r\n0\r\n\r\n",
    ];
    for answer in answers {
        right(answer, answer.len());
        let mut longer = answer.to_vec();
        longer.extend_from_slice(b"HTTP/1.1");
        right(&longer, answer.len());
        // Whatever is missing at its end, it is not complete.
        for length in 0..answer.len() {
            let parsed = parse_all_ways(&answer[..length], false, &mut Random::new(3));
            assert_eq!(parsed.0, Ok(None));
            assert_eq!(
                parsed.4,
                if length == 0 {
                    End::Closed
                } else {
                    End::Truncated
                }
            );
        }
    }
}

#[test]
fn answers_without_bodies() {
    let mut random = Random::new(4);
    let head = b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n";
    assert_eq!(
        parse_all_ways(head, true, &mut random).0,
        Ok(Some(head.len()))
    );
    assert_eq!(parse_all_ways(head, true, &mut random).5, Outcome::Right);
    for status in ["204", "304"] {
        let answer = format!("HTTP/1.1 {status} X\r\nContent-Length: 50\r\n\r\nmore");
        let parsed = parse_all_ways(answer.as_bytes(), false, &mut random);
        assert_eq!(parsed.0, Ok(Some(answer.len() - 4)));
        assert_eq!(parsed.2, 0);
    }
}

#[test]
fn until_close() {
    let answer = b"HTTP/1.1 200 OK\r\nServer: x\r\n\r\nhello";
    let parsed = parse_all_ways(answer, false, &mut Random::new(5));
    assert_eq!(
        parsed,
        (Ok(None), 200, 5, true, End::Complete, Outcome::Right)
    );
}

#[test]
fn connections_that_end() {
    for (fields, closes) in [
        ("Connection: close", true),
        ("Connection: Keep-Alive, CLOSE", true),
        ("Connection: closed", false),
        ("Connection: keep-alive\r\nConnection: close", true),
        ("X: close", false),
    ] {
        let answer = format!("HTTP/1.1 200 OK\r\n{fields}\r\nContent-Length: 0\r\n\r\n");
        let parsed = parse_all_ways(answer.as_bytes(), false, &mut Random::new(6));
        assert_eq!(parsed.3, closes, "{fields}");
    }
    let old = b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 0\r\n\r\n";
    assert!(parse_all_ways(old, false, &mut Random::new(7)).3);
}

#[test]
fn wrong_lengths() {
    for fields in [
        "Content-Length: -5",
        "Content-Length: +5",
        "Content-Length: 5, 5",
        "Content-Length: 0x5",
        "Content-Length: ",
        "Content-Length: 5 5",
        "Content-Length: 99999999999999999999999",
        "Content-Length: 5\r\nContent-Length: 6",
        "Content-Length: 5\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: chunked\r\nContent-Length: 5",
        "Transfer-Encoding: gzip, chunked",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: identity",
        "Transfer-Encoding:",
        "Content Length: 5",
        " Content-Length: 5",
        "A: b\r\n c: d",
        "A: \0",
    ] {
        wrong(format!("HTTP/1.1 200 OK\r\n{fields}\r\n\r\nhello").as_bytes());
    }
    wrong(b"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n");
}

#[test]
fn wrong_heads() {
    for head in [
        "HTTP/1.2 200 OK",
        "HTTP/2 200 OK",
        "http/1.1 200 OK",
        "HTTP/1.1 20 OK",
        "HTTP/1.1 2000 OK",
        "HTTP/1.1 099 OK",
        "HTTP/1.1 101 OK",
        "HTTP/1.1  200 OK",
        "HTTP/1.1 -20 OK",
        "",
        "GET / HTTP/1.1",
    ] {
        wrong(format!("{head}\r\nContent-Length: 0\r\n\r\n").as_bytes());
    }
}

#[test]
fn wrong_chunks() {
    for body in [
        "5\nhello\r\n0\r\n\r\n",
        "\r\nhello\r\n0\r\n\r\n",
        "-5\r\nhello\r\n0\r\n\r\n",
        "5\r\nhello0\r\n\r\n",
        "5\r\nhello\n0\r\n\r\n",
        "x\r\n",
        ";\r\n",
        "5\r\r\nhello",
        "11111111111111111\r\n",
        "ffffffffffffffffffff\r\n",
        "1\r\nh\r\nffffffffffffffff\r\n",
        "0\r\nA: b\n\r\n",
        "0\r\n\n",
        "0\r\n\rx",
    ] {
        wrong(format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{body}").as_bytes());
    }
}

#[test]
fn too_large() {
    let piecewise = |input: &[u8], piece: usize| parse(input, false, || piece).0;
    let mut many = b"HTTP/1.1 200 OK\r\n".to_vec();
    while many.len() < 1_000_000 {
        many.extend_from_slice(b"Name: a value that is repeated without end\r\n");
    }
    let mut long = b"HTTP/1.1 200 OK\r\nName: ".to_vec();
    long.resize(1_000_000, b'x');
    let mut extension = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;".to_vec();
    extension.resize(1_000_000, b'x');
    let mut trailer = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nA:".to_vec();
    trailer.resize(1_000_000, b'x');
    for input in [many, long, extension, trailer] {
        for piece in [1, 1000, 65_536, usize::MAX] {
            assert!(piecewise(&input, piece).is_err());
        }
    }
    // The limits themselves are allowed.
    for (excess, allowed) in [(0, true), (1, false)] {
        let mut head = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nName: ".to_vec();
        head.resize(65_536 - 4 + excess, b'x');
        head.extend_from_slice(b"\r\n\r\n");
        for piece in [1, 1000, usize::MAX] {
            assert_eq!(piecewise(&head, piece).is_ok(), allowed);
        }
        let fields = "A: b\r\n".repeat(99 + excess);
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n{fields}\r\n");
        assert_eq!(piecewise(head.as_bytes(), 7).is_ok(), allowed);
    }
}

#[test]
fn random_input() {
    let mut random = Random::new(8);
    let words: [&[u8]; 24] = [
        b"HTTP/1.1 ",
        b"HTTP/1.0 ",
        b"200",
        b" OK",
        b"100",
        b"204",
        b"\r\n",
        b"\r\n\r\n",
        b"\n",
        b"\r",
        b"Content-Length: ",
        b"5",
        b"0",
        b"Transfer-Encoding: ",
        b"chunked",
        b"hello",
        b"Connection: close",
        b"; ",
        b"ffffffff",
        b"-1",
        b":",
        b" ",
        b"\0",
        b"\xff\xfe",
    ];
    for round in 0..20_000 {
        let mut input = Vec::new();
        match round % 3 {
            0 => (0..random.below(60)).for_each(|_| input.push(random.next() as u8)),
            1 => {
                input.extend_from_slice(b"HTTP/1.1 200 OK\r\n");
                for _ in 0..random.below(25) {
                    input.extend_from_slice(words[random.below(24) as usize]);
                }
            }
            _ => {
                // A right answer with a few bytes changed, taken out or put in.
                input.extend_from_slice(
                    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
                );
                for _ in 0..=random.below(3) {
                    let position = random.below(input.len() as u64) as usize;
                    match random.below(3) {
                        0 => input[position] = random.next() as u8,
                        1 => {
                            input.remove(position);
                        }
                        _ => input.insert(position, b"\r\n0f:; "[random.below(7) as usize]),
                    }
                }
            }
        }
        let _ = parse_all_ways(&input, round % 7 == 0, &mut random);
    }
}

#[test]
fn an_answer_is_judged() {
    let judge = |expected: &Expectation, input: &[u8]| {
        let mut answer = Answer::default();
        assert!(answer.feed(input, false, expected).unwrap().is_some());
        answer.outcome(false, expected)
    };
    let hello = b"HTTP/1.1 202 OK\r\nContent-Length: 5\r\n\r\nhello";
    let longer = b"HTTP/1.1 202 OK\r\nContent-Length: 6\r\n\r\nhello!";
    let broken = b"HTTP/1.1 500 OK\r\nContent-Length: 5\r\n\r\nhello";
    let mut expected = expect(None);
    assert_eq!(judge(&expected, hello), Outcome::Right);
    assert_eq!(judge(&expected, broken), Outcome::Status);
    expected.bytes = Some(5);
    assert_eq!(judge(&expected, hello), Outcome::Right);
    assert_eq!(judge(&expected, longer), Outcome::Body);
    expected.status = 202..=202;
    assert_eq!(judge(&expected, hello), Outcome::Right);
    expected.status = 200..=200;
    assert_eq!(judge(&expected, longer), Outcome::Status);
    for body in ["hell", "hello!", "", "hallo"] {
        assert_eq!(judge(&expect(Some(body.as_bytes())), hello), Outcome::Body);
    }
}
