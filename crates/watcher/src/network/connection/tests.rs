use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::AsFd;

use discnice_requirements::skip;

use super::*;

fn met(socket: &TcpStream) -> Connection {
    let borrowed = socket.as_fd().try_clone_to_owned().unwrap();
    let fd = socket.as_raw_fd();
    match Connection::of((std::process::id(), fd), &borrowed, true, true) {
        Kind::Connected(found) => found,
        Kind::Unconnected | Kind::Other => panic!("it is a connection"),
    }
}

#[test]
fn what_a_killed_watcher_has_set_is_undone_and_what_a_program_has_set_stays() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let connect = || {
        let socket = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let borrowed = socket.as_fd().try_clone_to_owned().unwrap();
        (socket, borrowed)
    };
    let (socket, borrowed) = connect();
    let fd = socket.as_raw_fd();
    let Ok(false) = socket::has_fixed_buffer(fd) else { skip!("Linux before 5.15") };
    let mut first = met(&socket);
    first.pace(&borrowed, Some(100_000));
    first.open(&borrowed, Some(30_000));
    first.bound(&borrowed, Some(30_000));
    assert!(socket::pacing(fd).unwrap() < 200_000 && tcp::window(fd).unwrap() < 40_000);
    assert_eq!(socket::has_fixed_buffer(fd), Ok(true));
    met(&socket).release(&borrowed);
    assert_eq!(socket::pacing(fd), Ok(socket::UNPACED));
    assert!(tcp::window(fd).unwrap() >= 1 << 20);
    assert_eq!(socket::has_fixed_buffer(fd), Ok(false));

    let (socket, borrowed) = connect();
    let fd = socket.as_raw_fd();
    socket::set_pacing(fd, 100_000).unwrap();
    tcp::set_window(fd, 30_000).unwrap();
    socket::fix_buffer(fd, 30_000).unwrap();
    let mut found = met(&socket);
    found.pace(&borrowed, Some(50_000));
    found.bound(&borrowed, Some(20_000));
    found.release(&borrowed);
    assert_eq!((socket::pacing(fd), tcp::window(fd)), (Ok(100_000), Ok(30_000)));
    assert_eq!(socket::has_fixed_buffer(fd), Ok(true));
}
