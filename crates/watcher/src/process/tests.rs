use super::*;
use std::process::Command;

#[test]
fn processes_that_are_refused() {
    assert_eq!(pin(0).unwrap_err(), Refusal::NotAnId(0));
    assert_eq!(pin(-4).unwrap_err(), Refusal::NotAnId(-4));
    assert_eq!(pin(i32::MAX).unwrap_err(), Refusal::NoProcess(i32::MAX));
    let own = pin(getpid().as_raw_nonzero().get()).unwrap();
    assert!(matches!(examine(&own), Err(Refusal::Ourselves(_))));
    assert_eq!(examine(&pin(1).unwrap()), Err(Refusal::First));
}

/// The last descriptor of a connection that lingers is closed once all has been sent. socket(7), `SO_LINGER`
#[test]
fn nothing_is_borrowed_that_takes_long_to_close() {
    use std::io::Write;
    use std::os::fd::AsRawFd;
    use std::time::{Duration, Instant};
    let own = pin(getpid().as_raw_nonzero().get()).unwrap();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let mut socket = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let _peer = listener.accept().unwrap();
    assert!(own.borrow(socket.as_raw_fd()).is_some());
    rustix::net::sockopt::set_socket_linger(&socket, Some(Duration::from_secs(3))).unwrap();
    socket.set_nonblocking(true).unwrap();
    while socket.write(&[0; 1 << 16]).is_ok() {}
    let borrowed = own.borrow(socket.as_raw_fd());
    drop(socket);
    let begun = Instant::now();
    drop(borrowed);
    assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
}

#[test]
fn the_dead_are_refused_and_noticed() {
    let mut child = Command::new("sleep").arg("100").spawn().unwrap();
    let id = child.id().cast_signed();
    let pinned = pin(id).unwrap();
    assert_eq!(examine(&pinned), Ok(()));
    assert!(!pinned.has_ended());
    child.kill().unwrap();
    std::thread::sleep(std::time::Duration::from_millis(50));
    assert!(pinned.has_ended(), "a zombie has ended");
    assert!(lives(std::process::id()) && !lives(child.id()));
    assert_eq!(pin(id).unwrap_err(), Refusal::NoProcess(id));
    let ended = pin_listed(id);
    assert_eq!(ended.is_ok(), procfs::io(child.id()).is_some());
    assert!(
        ended.is_ok_and(|one| one.has_ended() && one.process == pinned.process)
            || !geteuid().is_root()
    );
    child.wait().unwrap();
    assert_eq!(pin(id).unwrap_err(), Refusal::NoProcess(id));
    assert_eq!(pin_listed(id).unwrap_err(), Refusal::NoProcess(id));
}
