//! Discovery on this machine, by abstract socket names, which the kernel removes with the process, however it
//! ends.
//!
//! Participants join a domain one at a time, by holding one more such name meanwhile: a joining participant
//! sees all earlier ones, and all later ones see it. So of any two the later one connects, and there is
//! exactly one connection.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::AsRawFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::{locked, to_hex, Doorbell, Error, Identity, Medium, Result};

/// A participant that is about to join.
pub struct Joining {
    plugin: &'static str,
    prefix: String,
    _alone: UnixListener,
}

fn address(name: &str) -> std::io::Result<SocketAddr> {
    SocketAddr::from_abstract_name(name)
}

impl Joining {
    /// Waits until no other participant is joining.
    pub fn begin(plugin: &'static str, domain: u32) -> Result<Joining> {
        // SAFETY: reads the user id.
        let prefix = format!("perflab.{plugin}.{}.{domain}.", unsafe { libc::getuid() });
        let name = format!("{prefix}joining");
        loop {
            match address(&name).and_then(|at| UnixListener::bind_addr(&at)) {
                Ok(alone) => return Ok(Joining { plugin, prefix, _alone: alone }),
                Err(why) if why.kind() == ErrorKind::AddrInUse => std::thread::sleep(Duration::from_millis(1)),
                Err(why) => return Err(Error::failed(format!("{plugin}: cannot join domain {domain}: {why}"))),
            }
        }
    }

    /// The names of the existing participants.
    pub fn others(&self) -> Result<Vec<String>> {
        let table = std::fs::read_to_string("/proc/net/unix")
            .map_err(|why| Error::failed(format!("{}: cannot read /proc/net/unix: {why}", self.plugin)))?;
        let mut names: Vec<String> = table
            .lines()
            .filter_map(|line| line.split_whitespace().nth(7)?.strip_prefix('@')?.strip_prefix(&self.prefix))
            .filter(|name| *name != "joining")
            .map(str::to_owned)
            .collect();
        names.sort_unstable();
        names.dedup();
        Ok(names)
    }

    fn connect(&self, name: &str) -> std::io::Result<UnixStream> {
        UnixStream::connect_addr(&address(&format!("{}{name}", self.prefix))?)
    }

    /// Takes the name by which others find this participant, as long as the listener exists.
    pub fn join(self, name: &str) -> Result<UnixListener> {
        let plugin = self.plugin;
        address(&format!("{}{name}", self.prefix))
            .and_then(|at| UnixListener::bind_addr(&at))
            .map_err(|why| Error::failed(format!("{plugin}: cannot take the name {name}: {why}")))
    }
}

/// A [`Medium`] for libraries without discovery: connections between all participants of a domain.
pub struct Neighbours {
    shared: Arc<Shared>,
    stop: Option<UnixStream>, // dropping it ends the thread
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    own: Identity,
    bell: Doorbell,
    on_lost: Box<dyn Fn() + Send + Sync>,
    links: Mutex<Links>,
}

#[derive(Default)]
struct Links {
    announced: BTreeMap<Identity, Vec<u8>>,
    peers: BTreeMap<Identity, Arc<UnixStream>>,
}

const HELLO: u8 = 1;
const ANNOUNCE: u8 = 2;
const WITHDRAW: u8 = 3;
const LETTER: u8 = 4;
const LONGEST: usize = 1 << 20;

fn frame(kind: u8, identity: &Identity, rest: &[u8]) -> Vec<u8> {
    let size = (1 + identity.len() + rest.len()) as u32;
    [&size.to_le_bytes()[..], &[kind], identity, rest].concat()
}

// An unreachable peer is about to be lost, which reading detects.
fn send(mut to: &UnixStream, bytes: &[u8]) {
    let _ = to.write_all(bytes);
}

impl Neighbours {
    /// `on_lost` is called when a participant has left or died.
    pub fn join(
        plugin: &'static str,
        domain: u32,
        own: Identity,
        bell: Doorbell,
        on_lost: impl Fn() + Send + Sync + 'static,
    ) -> Result<Neighbours> {
        let joining = Joining::begin(plugin, domain)?;
        let mut streams = Vec::new();
        for name in joining.others()? {
            if let Ok(stream) = joining.connect(&name) {
                streams.push(stream); // the other is about to leave
            }
        }
        let listener = joining.join(&to_hex(&own))?;
        let shared = Arc::new(Shared { own, bell, on_lost: Box::new(on_lost), links: Mutex::default() });
        let on_thread = shared.clone();
        let (stop, stopped) =
            UnixStream::pair().map_err(|why| Error::failed(format!("{plugin}: no file descriptor is left:  {why}")))?;
        let thread = std::thread::Builder::new()
            .name(format!("{plugin}.peers"))
            .spawn(move || on_thread.run(&listener, &stopped, streams))
            .map_err(|why| Error::failed(format!("{plugin}: cannot create a thread: {why}")))?;
        Ok(Neighbours { shared, stop: Some(stop), thread: Some(thread) })
    }
}

impl Medium for Neighbours {
    fn announce(&self, endpoint: &Identity, encoded: &[u8]) -> Result<()> {
        let mut links = locked(&self.shared.links);
        links.announced.insert(*endpoint, encoded.to_vec());
        for peer in links.peers.values() {
            send(peer, &frame(ANNOUNCE, endpoint, encoded));
        }
        Ok(())
    }
    fn withdraw(&self, endpoint: &Identity) {
        let mut links = locked(&self.shared.links);
        links.announced.remove(endpoint);
        for peer in links.peers.values() {
            send(peer, &frame(WITHDRAW, endpoint, &[]));
        }
    }
    fn send(&self, participant: &Identity, letter: &[u8]) -> Result<()> {
        if let Some(peer) = locked(&self.shared.links).peers.get(participant) {
            send(peer, &frame(LETTER, participant, letter));
        }
        Ok(())
    }
}

impl Drop for Neighbours {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct Link {
    stream: Arc<UnixStream>,
    who: Option<Identity>,
    read: Vec<u8>,
}

impl Shared {
    fn run(&self, listener: &UnixListener, stopped: &UnixStream, streams: Vec<UnixStream>) {
        let _ = listener.set_nonblocking(true);
        let mut links: Vec<Link> = streams.into_iter().map(|stream| self.greet(stream)).collect();
        loop {
            let mut polled: Vec<libc::pollfd> = [stopped.as_raw_fd(), listener.as_raw_fd()]
                .into_iter()
                .chain(links.iter().map(|link| link.stream.as_raw_fd()))
                .map(|fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 })
                .collect();
            // SAFETY: a list of that length.
            unsafe { libc::poll(polled.as_mut_ptr(), polled.len() as libc::nfds_t, -1) };
            if polled[0].revents != 0 {
                return;
            }
            for at in (0..links.len()).rev() {
                if polled[at + 2].revents != 0 && !self.receive(&mut links[at]) {
                    self.lose(links.swap_remove(at));
                }
            }
            if polled[1].revents != 0 {
                while let Ok((stream, _)) = listener.accept() {
                    links.push(self.greet(stream));
                }
            }
        }
    }

    fn greet(&self, stream: UnixStream) -> Link {
        send(&stream, &frame(HELLO, &self.own, &[]));
        Link { stream: Arc::new(stream), who: None, read: Vec::new() }
    }

    // False if the peer has ended, or sent invalid data. Reads once, because poll() reports whether there is
    // more.
    fn receive(&self, link: &mut Link) -> bool {
        let mut bytes = [0; 65536];
        match (&*link.stream).read(&mut bytes) {
            Ok(0) => return false,
            Ok(size) => link.read.extend(&bytes[..size]),
            Err(why) => return why.kind() == ErrorKind::Interrupted,
        }
        while let Some(size) = link.read.first_chunk::<4>().map(|size| u32::from_le_bytes(*size) as usize) {
            if !(17..=LONGEST).contains(&size) {
                return false;
            }
            if link.read.len() < 4 + size {
                break;
            }
            let whole: Vec<u8> = link.read.drain(..4 + size).skip(4).collect();
            let identity: Identity = std::array::from_fn(|i| whole[1 + i]);
            if (whole[0] == HELLO) == link.who.is_some() {
                return false;
            }
            match whole[0] {
                HELLO => self.meet(link, identity),
                ANNOUNCE => self.bell.endpoint_found(identity, &whole[17..]),
                WITHDRAW => self.bell.endpoint_gone(identity),
                LETTER => self.bell.letter(&whole[17..]),
                _ => return false,
            }
        }
        true
    }

    fn meet(&self, link: &mut Link, identity: Identity) {
        link.who = Some(identity);
        self.bell.participant_found(identity);
        let mut links = locked(&self.links);
        for (endpoint, encoded) in &links.announced {
            send(&link.stream, &frame(ANNOUNCE, endpoint, encoded));
        }
        links.peers.insert(identity, link.stream.clone());
    }

    fn lose(&self, link: Link) {
        let Some(identity) = link.who else { return };
        locked(&self.links).peers.remove(&identity);
        self.bell.participant_lost(identity);
        (self.on_lost)();
    }
}
