//! The smallest middleware in Rust that connects processes: each reader has a socket, and a writer sends each
//! message to the sockets of its readers. `docs/new-middleware.md` explains it.

use std::collections::HashMap;
use std::ffi::CStr;
use std::io::ErrorKind;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use perflab_plugin::interface::*;
use perflab_plugin::{
    export_middleware, locked, require_loopback, supported, to_hex, Bells, Callbacks, Domain, Endpoint,
    EndpointSettings, Error, HasInbox, Host, Identity, Inbox, Membership, Middleware, Neighbours, Options, Party,
    Result, Settings, LAST_POLICY,
};

// ---- step 1: what it is ----

struct Smallest;
export_middleware!(Smallest);

impl Middleware for Smallest {
    const NAME: &'static CStr = c"smallest_rust";
    const SUMMARY: &'static CStr = c"datagrams between processes of one machine: an example";
    const VERSION: &'static CStr = c"1";
    // Declare what is true; the conformance suite checks it.
    const CAPABILITIES: perflab_capabilities = perflab_capabilities {
        across_processes: true,
        data_ready_callbacks: true,
        source_timestamps: false,
        reception_timestamps: false,
        reports_endpoints: true,
        related_samples: false,
        loans: false,
        instances: false,
        filters: false,
    };
    // The host refuses undeclared policies. The suite tests the declared ones.
    const POLICIES: &'static [perflab_policy] = &[
        supported(c"history"),
        supported(c"reliability"),
        supported(c"partition"),
        supported(c"user_data"),
        LAST_POLICY,
    ];
    type Participant = Participant;

    fn open(host: Host, settings: &Settings) -> Result<Participant> {
        require_loopback("smallest_rust", settings, "connects processes of one machine")?;
        Options::new("smallest_rust", settings, &[])?; // it has none, so each is refused
        let domain = Domain::join("smallest_rust", host, settings.ignore_local_endpoints, |own, bell| {
            Ok(Box::new(Neighbours::join("smallest_rust", settings.domain, own, bell, || ())?))
        })?;
        Ok(Participant { domain })
    }
}

struct Participant {
    domain: Domain,
}

impl perflab_plugin::Participant for Participant {
    type Writer = Writer;
    type Reader = Reader;
    type WaitSet = Bells<Reader>;

    fn describe(&self) -> String {
        format!("{{\"transport\":\"datagrams\",{}}}", self.domain.described())
    }
    fn remote_endpoints(&self, each: &mut dyn FnMut(&perflab_remote_endpoint)) {
        self.domain.remote_endpoints(each);
    }
    fn create_writer(&self, settings: &EndpointSettings, callbacks: Callbacks) -> Result<Writer> {
        Writer::new(&self.domain, settings, callbacks)
    }
    fn create_reader(&self, settings: &EndpointSettings, callbacks: Callbacks) -> Result<Reader> {
        Reader::new(&self.domain, settings, callbacks)
    }
    fn create_waitset(&self) -> Result<Bells<Reader>> {
        Ok(Bells::default())
    }
}

// ---- step 2: the path of a message ----

fn failed(what: &str, why: std::io::Error) -> Error {
    Error::failed(format!("smallest_rust: {what}: {why}"))
}

// An abstract name, which the kernel removes with the process.
fn address_of(reader: &Identity) -> Result<SocketAddr> {
    SocketAddr::from_abstract_name(format!("perflab.smallest.{}", to_hex(reader))).map_err(|why| failed("no name", why))
}

struct Writer {
    member: Membership, // leaves the domain before the rest is dropped
    core: Arc<WriterCore>,
}

struct WriterCore {
    id: Identity,
    socket: UnixDatagram,
    readers: Mutex<Vec<(Identity, SocketAddr)>>,
}

impl Writer {
    fn new(domain: &Domain, settings: &EndpointSettings, callbacks: Callbacks) -> Result<Writer> {
        refuse_loans(settings)?;
        let socket = UnixDatagram::unbound().map_err(|why| failed("no socket", why))?;
        let id = domain.next_identity();
        let core = Arc::new(WriterCore { id, socket, readers: Mutex::default() });
        let member = domain.enter(id, Endpoint::new(true, settings)?, core.clone(), callbacks)?;
        Ok(Writer { member, core })
    }
}

impl perflab_plugin::Writer for Writer {
    fn identity(&self) -> perflab_identity {
        perflab_identity { bytes: self.member.identity() }
    }
    fn matched(&self) -> usize {
        locked(&self.core.readers).len()
    }
    // In pieces, each preceded by the writer and the length of the message. The kernel keeps their order, and
    // waits if a reader's socket is full: nothing is lost.
    fn write(&self, parts: &[perflab_bytes], _related: Option<&perflab_sample_identity>) -> Result<i64> {
        let mut message = Vec::new();
        for part in parts.iter().filter(|part| part.size > 0) {
            // SAFETY: middleware.h guarantees this many bytes.
            message.extend_from_slice(unsafe { std::slice::from_raw_parts(part.data.cast::<u8>(), part.size) });
        }
        let head = [&self.core.id[..], &(message.len() as u64).to_le_bytes()].concat();
        for (_, address) in locked(&self.core.readers).iter() {
            for piece in message.chunks(PIECE) {
                match self.core.socket.send_to_addr(&[&head, piece].concat(), address) {
                    Err(why) if matches!(why.kind(), ErrorKind::ConnectionRefused | ErrorKind::BrokenPipe) => break, // it goes
                    Err(why) => return Err(failed("not sent", why)),
                    Ok(_) => {}
                }
            }
        }
        Ok(0)
    }
}

const HEAD: usize = 24;
const PIECE: usize = 60_000;

struct Reader {
    member: Membership,
    core: Arc<ReaderCore>,
    thread: Option<JoinHandle<()>>,
}

struct ReaderCore {
    socket: UnixDatagram,
    inbox: Arc<Inbox<Message>>,
    callbacks: Callbacks,
    matched: AtomicUsize,
}

struct Message {
    writer: Identity,
    bytes: Vec<u8>,
}

impl Reader {
    fn new(domain: &Domain, settings: &EndpointSettings, callbacks: Callbacks) -> Result<Reader> {
        refuse_loans(settings)?;
        let id = domain.next_identity();
        let keeps_all = settings.qos.history == PERFLAB_KEEP_ALL;
        let depth = if keeps_all { usize::MAX } else { settings.qos.depth as usize };
        let core = Arc::new(ReaderCore {
            socket: UnixDatagram::bind_addr(&address_of(&id)?).map_err(|why| failed("no socket", why))?,
            inbox: Inbox::new("smallest_rust", depth),
            callbacks: callbacks.clone(),
            matched: AtomicUsize::new(0),
        });
        let receiving = core.clone();
        let thread = std::thread::spawn(move || receiving.run());
        let member = domain.enter(id, Endpoint::new(false, settings)?, core.clone(), callbacks)?;
        Ok(Reader { member, core, thread: Some(thread) })
    }
}

impl ReaderCore {
    fn run(&self) {
        let mut piece = [0; HEAD + PIECE];
        let mut begun: HashMap<Identity, Vec<u8>> = HashMap::new();
        while let Ok(size) = self.socket.recv(&mut piece) {
            if size == 0 {
                return; // the reader ends
            }
            let Some((head, rest)) = piece[..size].split_at_checked(HEAD) else { continue };
            let writer: Identity = std::array::from_fn(|i| head[i]);
            let whole = u64::from_le_bytes(std::array::from_fn(|i| head[16 + i]));
            let bytes = begun.entry(writer).or_default();
            bytes.extend_from_slice(rest);
            if bytes.len() as u64 >= whole {
                self.inbox.push(Message { writer, bytes: std::mem::take(bytes) });
                self.callbacks.data();
            }
        }
    }
}

impl HasInbox for Reader {
    type Message = Message;
    fn inbox(&self) -> &Arc<Inbox<Message>> {
        &self.core.inbox
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.core.callbacks.close(); // no callback runs after this
        self.core.inbox.close();
        let _ = self.core.socket.shutdown(std::net::Shutdown::Both);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl perflab_plugin::Reader for Reader {
    fn identity(&self) -> perflab_identity {
        perflab_identity { bytes: self.member.identity() }
    }
    fn matched(&self) -> usize {
        self.core.matched.load(Ordering::SeqCst)
    }
    fn take(&self) -> Result<Option<perflab_sample>> {
        let Some(message) = self.core.inbox.pop() else { return Ok(None) };
        let message = Box::new(message);
        let none = perflab_identity { bytes: [0; 16] };
        Ok(Some(perflab_sample {
            data: message.bytes.as_ptr(),
            size: message.bytes.len(),
            writer: perflab_identity { bytes: message.writer },
            sequence: 0,
            related: perflab_sample_identity { writer: none, sequence: 0 },
            source_timestamp_ns: PERFLAB_TIME_UNKNOWN,
            reception_ns: PERFLAB_TIME_UNKNOWN,
            loan: Box::into_raw(message).cast(),
        }))
    }
    fn return_sample(&self, sample: &perflab_sample) {
        // SAFETY: as returned by take(), and only once.
        drop(unsafe { Box::from_raw(sample.loan.cast::<Message>()) });
    }
}

fn refuse_loans(settings: &EndpointSettings) -> Result<()> {
    if !settings.loans {
        return Ok(());
    }
    let topic = settings.topic;
    Err(Error::unsupported(format!(
        "smallest_rust: topic '{topic}' shall pass loaned messages; right would be unique or shared"
    )))
}

// ---- step 3: matching ----

impl Party for WriterCore {
    // From now on each message goes to this reader, whose socket has been there since before it was announced.
    fn add(&self, reader: &Identity, _requested: &Endpoint, _asked: &[u8]) -> Result<Vec<u8>> {
        locked(&self.readers).push((*reader, address_of(reader)?));
        Ok(Vec::new())
    }
    fn peer_gone(&self, peer: &Identity, _was_matched: bool) {
        locked(&self.readers).retain(|(reader, _)| reader != peer);
    }
}

impl Party for ReaderCore {
    fn start(&self, _writer: &Identity, _answer: &[u8]) -> Result<()> {
        self.matched.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }
    fn peer_gone(&self, _peer: &Identity, was_matched: bool) {
        self.matched.fetch_sub(usize::from(was_matched), Ordering::SeqCst);
    }
}
