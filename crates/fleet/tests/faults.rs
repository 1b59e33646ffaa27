//! Servers that are not what they should be: each is told in one line, without waiting for long.

mod common;

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use common::server::{self, Server};
use discnice_fleet::script::{self, Ask, Keys, Reply};
use discnice_fleet::{Address, Fault, Link, Settings};
use discnice_requirements::skip;
use discnice_units::Rate;

const ASK: Ask = Ask { sequence: 1, has: 0, wants: 1_000_000, weight: 100 };

/// A port that nothing listened to a moment ago.
fn port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// A server with two users, and a budget named `backup`.
struct Guarded {
    server: Server,
    port: u16,
}

impl Guarded {
    fn address(&self, user: &str, class: &str) -> Address {
        Address::parse(&format!("redis://{user}@127.0.0.1:{}/{class}", self.port)).unwrap()
    }
}

fn fault(address: &Address) -> Fault {
    let begun = Instant::now();
    let fault = Link::open(address).and_then(|mut link| link.ask("node", &ASK)).unwrap_err();
    let line = fault.to_string();
    assert!(!line.contains('\n') && !line.contains("secret"), "{line}");
    assert!(begun.elapsed() < Duration::from_secs(10), "{line}: {:?}", begun.elapsed());
    println!("{line}");
    fault
}

fn command(server: &Server, words: &[&str]) {
    let mut command = redis::cmd(words[0]);
    words[1..].iter().for_each(|word| {
        command.arg(*word);
    });
    command.exec(&mut server.connect()).unwrap();
}

#[test]
fn users_and_keys() {
    if !server::is_there() {
        skip!("no redis-server, or no setpriv");
    }
    let port = port();
    let number = port.to_string();
    let server = Server::start(&["--port", &number]);
    let guarded = Guarded { server, port };
    let server = &guarded.server;
    let permissions = script::permissions("backup");
    let permissions: Vec<&str> = permissions.split(' ').collect();
    command(server, &[&["ACL", "SETUSER", "node", "on", ">secret"][..], &permissions].concat());
    command(
        server,
        &["ACL", "SETUSER", "poor", "on", ">secret", "~*", "+ping", "+info", "+select"],
    );

    assert_eq!(fault(&guarded.address("node:secret", "backup")), Fault::NoClass);
    let keys = Keys::of("backup");
    command(server, &["SET", &keys.class, "of another program"]);
    assert_eq!(fault(&guarded.address("node:secret", "backup")), Fault::NotOurs);
    command(server, &["DEL", &keys.class]);
    command(server, &["HSET", &keys.class, "colour", "green"]);
    assert_eq!(fault(&guarded.address("node:secret", "backup")), Fault::NotOurs);
    command(server, &["HSET", &keys.class, "version", "99"]);
    assert_eq!(fault(&guarded.address("node:secret", "backup")), Fault::OtherVersion(99));
    command(server, &["DEL", &keys.class]);

    let mut admin =
        Link::open(&Address::parse(&format!("redis://127.0.0.1:{port}/backup")).unwrap()).unwrap();
    let settings = Settings::new(Rate::per_second(10_000_000), None, Some(2), Some(2000)).unwrap();
    admin.set(&settings).unwrap();
    assert_eq!(admin.settings().unwrap(), Some(settings));
    assert!(matches!(
        admin.set(&Settings { cap: Rate::per_second(0), ..settings }),
        Err(Fault::Settings(_))
    ));

    // What a machine's user is allowed is enough, and no more.
    let address = guarded.address("node:secret", "backup");
    let mut node = Link::open(&address).unwrap();
    assert!(matches!(node.ask("node", &ASK), Ok(Reply::Granted(_))));
    assert_eq!(node.table().unwrap().nodes.len(), 1);
    an_odd_name_hides_no_others(server, &mut node);
    assert!(matches!(node.set(&settings), Err(Fault::Permission(_))), "it may not set the cap");
    assert!(matches!(fault(&guarded.address("node:secret", "other")), Fault::Permission(_)));
    assert!(matches!(fault(&guarded.address("poor:secret", "backup")), Fault::Permission(_)));
    assert_eq!(fault(&guarded.address("node:wrong", "backup")), Fault::Password);
    assert_eq!(fault(&guarded.address("nobody:secret", "backup")), Fault::Password);

    // A third machine, of two.
    assert!(matches!(node.ask("second", &ASK), Ok(Reply::Granted(_))));
    assert_eq!(node.ask("third", &ASK), Err(Fault::Full(2)));
    // Scribbled sums and entries are forgotten, and learnt again.
    command(server, &["HSET", &keys.state, "held", "green"]);
    let Ok(Reply::Granted(granted)) = node.ask("node", &Ask { sequence: 2, ..ASK }) else {
        panic!()
    };
    assert!(granted.learning > 0 && granted.grant == 0);
    learns_again_without(server, &mut node);
    command(server, &["DEL", &keys.nodes]);
    command(server, &["SET", &keys.nodes, "of another program"]);
    assert_eq!(node.ask("node", &Ask { sequence: 9, ..ASK }), Err(Fault::NotOurs));

    command(server, &["ACL", "SETUSER", "default", "resetpass", ">other"]);
    assert_eq!(
        fault(&Address::parse(&format!("redis://127.0.0.1:{port}/backup")).unwrap()),
        Fault::NoPassword
    );
}

/// Has the server drop a key, as one does that is a cache and short of memory: what a machine has is counted once.
fn learns_again_without(server: &Server, node: &mut Link) {
    let keys = Keys::of("backup");
    for (sequence, dropped) in [(3, &keys.nodes), (5, &keys.expiry)] {
        let has = Ask { has: 1_000_000, ..ASK };
        node.ask("node", &Ask { sequence, ..has }).unwrap();
        command(server, &["DEL", dropped]);
        node.ask("node", &Ask { sequence: sequence + 1, ..has }).unwrap();
        let mut held = redis::cmd("HMGET");
        held.arg(&keys.state).arg("held").arg("clock");
        let sums: (u64, u64) = held.query(&mut server.connect()).unwrap();
        assert_eq!(sums, (1_000_000, 0), "without {dropped}");
    }
}

/// Has another machine write a name that is no text.
fn an_odd_name_hides_no_others(server: &Server, node: &mut Link) {
    let nodes = Keys::of("backup").nodes;
    let mut odd = redis::cmd("HSET");
    odd.arg(&nodes).arg(b"\xff odd".as_slice()).arg("1 2 h 3 4");
    odd.exec(&mut server.connect()).unwrap();
    let names: Vec<String> = node.table().unwrap().nodes.into_iter().map(|row| row.name).collect();
    assert_eq!(names, ["node", "\u{fffd} odd"]);
    let mut gone = redis::cmd("HDEL");
    gone.arg(&nodes).arg(b"\xff odd".as_slice()).exec(&mut server.connect()).unwrap();
}

#[test]
fn what_is_no_server() {
    if !server::is_there() {
        skip!("no redis-server, or no setpriv");
    }
    let address = |port: u16| Address::parse(&format!("redis://127.0.0.1:{port}/backup")).unwrap();
    assert!(matches!(fault(&address(port())), Fault::Unreachable(_)), "nothing listens");
    let none = Address::parse("redis://no-such-host.invalid/backup").unwrap();
    assert!(matches!(fault(&none), Fault::Unreachable(_)));

    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    assert!(matches!(fault(&address(silent.local_addr().unwrap().port())), Fault::Unreachable(_)));
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let place = other.local_addr().unwrap().port();
    let answering = std::thread::spawn(move || {
        let (mut client, _) = other.accept().unwrap();
        let _ = client.read(&mut [0; 1000]);
        let _ = client.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
    });
    assert!(matches!(fault(&address(place)), Fault::Unreachable(_)), "a web server");
    answering.join().unwrap();

    for fault in never_ends() {
        assert!(matches!(fault, Fault::Unreachable(_)), "{fault:?}");
    }

    let (first, second) = (port(), port());
    let primary = Server::start(&["--port", &first.to_string(), "--repl-diskless-sync-delay", "0"]);
    let mut link = Link::open(&address(first)).unwrap();
    link.set(&Settings::new(Rate::per_second(10_000_000), None, None, None).unwrap()).unwrap();
    let copy = Server::start(&[
        "--port",
        &second.to_string(),
        "--replicaof",
        &format!("127.0.0.1 {first}"),
    ]);
    let deadline = Instant::now() + Duration::from_secs(20);
    let copied = || {
        let exists = redis::cmd("EXISTS").arg(Keys::of("backup").class).query(&mut copy.connect());
        exists.unwrap_or(0) == 1
    };
    while !copied() {
        assert!(Instant::now() < deadline, "no replica");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(fault(&address(second)), Fault::Replica);
    drop(primary);
}

/// What is told of servers that answer for ever: a byte from time to time, and as many as are read.
fn never_ends() -> [Fault; 3] {
    const ENDLESS: [(&str, &str, Duration); 3] = [
        ("$100000\r\n", "x", Duration::from_millis(100)),
        ("*1000000000\r\n", ":1\r\n", Duration::ZERO),
        ("+", "x", Duration::ZERO),
    ];
    ENDLESS.map(|(first, more, apart)| {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = std::thread::spawn(move || {
            let (mut client, _) = listener.accept().unwrap();
            let more = if apart.is_zero() { more.repeat(10_000) } else { more.to_owned() };
            let mut sent = client.write_all(first.as_bytes());
            // Until the client hangs up.
            while sent.is_ok() {
                std::thread::sleep(apart);
                sent = client.write_all(more.as_bytes());
            }
        });
        let address = Address::parse(&format!("redis://127.0.0.1:{port}/backup")).unwrap();
        let fault = fault(&address);
        server.join().unwrap();
        fault
    })
}

/// An authority, and a certificate of `localhost` by it.
fn certificates(folder: &Path) -> bool {
    let script = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 \
        -subj /CN=authority -keyout ca.key -out ca.pem 2>/dev/null && \
        openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=localhost \
        -keyout key.pem -out request 2>/dev/null && \
        printf 'subjectAltName=DNS:localhost' >names && \
        openssl x509 -req -in request -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 \
        -extfile names -out cert.pem 2>/dev/null";
    let mut made = Command::new("sh");
    made.args(["-c", script]).current_dir(folder).stdout(Stdio::null());
    made.status().is_ok_and(|status| status.success())
}

#[test]
fn encryption() {
    if !server::is_there() {
        skip!("no redis-server, or no setpriv");
    }
    let folder = tempfile::tempdir().unwrap();
    if !certificates(folder.path()) {
        skip!("no openssl");
    }
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (secret, plain) = (port(), port());
    let numbers = [secret.to_string(), plain.to_string()];
    let (cert, key, ca) = (path("cert.pem"), path("key.pem"), path("ca.pem"));
    let _server = Server::start(&[
        "--tls-port",
        &numbers[0],
        "--port",
        &numbers[1],
        "--tls-cert-file",
        &cert,
        "--tls-key-file",
        &key,
        "--tls-ca-cert-file",
        &ca,
        "--tls-auth-clients",
        "no",
    ]);
    let address = |text: String| Address::parse(&text).unwrap();
    let good = address(format!("rediss://localhost:{secret}/backup?ca={ca}"));
    let mut link = Link::open(&good).unwrap();
    link.set(&Settings::new(Rate::per_second(10_000_000), None, None, None).unwrap()).unwrap();
    assert!(matches!(link.ask("node", &ASK), Ok(Reply::Granted(_))));

    let is_tls = |text: String| {
        let fault = fault(&address(text));
        assert!(matches!(fault, Fault::Tls(_)), "{fault:?}");
    };
    is_tls(format!("rediss://localhost:{secret}/backup"));
    is_tls(format!("rediss://127.0.0.1:{secret}/backup?ca={ca}"));
    // One waits for the end of a line, the other for a handshake.
    for text in [
        format!("rediss://localhost:{plain}/backup?ca={ca}"),
        format!("redis://localhost:{secret}/backup"),
    ] {
        let unanswered = fault(&address(text));
        let line = unanswered.to_string();
        assert!(matches!(unanswered, Fault::Unreachable(_)) && line.contains("TLS"), "{line}");
    }
    assert!(matches!(
        fault(&address(format!("rediss://localhost:{secret}/backup?ca={key}"))),
        Fault::File(_)
    ));
    // It still is a server for all others.
    assert!(TcpStream::connect(("127.0.0.1", plain)).is_ok());
}
