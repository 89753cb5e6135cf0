//! Writers and readers: the path of a message.

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Weak};

use perflab_plugin::interface::*;
use perflab_plugin::{
    locked, to_hex, wall_ns, Callbacks, Domain, Endpoint, EndpointSettings, Error, HasInbox, Host, Identity, Inbox,
    Membership, Party, Result,
};
use zenoh::bytes::ZBytes;
use zenoh::pubsub::{Publisher, Subscriber};
use zenoh::qos::{CongestionControl, Priority, Reliability};
use zenoh::sample::Sample;
use zenoh::shm::{BlockOn, GarbageCollect, PosixShmProviderBackend, ShmProvider, ShmProviderBuilder, ZShmMut};
use zenoh::Wait;

use crate::session::{noting_shared_memory, Counts, Session};
use crate::{failed, NAME};

/// Header of each message, sent as zenoh's attachment.
#[derive(Clone, Copy)]
struct Head {
    sequence: i64,
    source_ns: i64,
    related: perflab_sample_identity,
}

const HEAD_BYTES: usize = 40;

impl Head {
    fn encoded(&self) -> [u8; HEAD_BYTES] {
        let mut bytes = [0; HEAD_BYTES];
        bytes[..8].copy_from_slice(&self.sequence.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.source_ns.to_le_bytes());
        bytes[16..32].copy_from_slice(&self.related.writer.bytes);
        bytes[32..].copy_from_slice(&self.related.sequence.to_le_bytes());
        bytes
    }
    fn decoded(bytes: &[u8]) -> Option<Head> {
        let bytes: &[u8; HEAD_BYTES] = bytes.try_into().ok()?;
        let number = |at: usize| i64::from_le_bytes(std::array::from_fn(|i| bytes[at + i]));
        let writer = perflab_identity { bytes: std::array::from_fn(|i| bytes[16 + i]) };
        let related = perflab_sample_identity { writer, sequence: number(32) };
        Some(Head { sequence: number(0), source_ns: number(8), related })
    }
}

const NOT_RELATED: perflab_sample_identity =
    perflab_sample_identity { writer: perflab_identity { bytes: [0; 16] }, sequence: 0 };

// A chunk of a key: characters that zenoh reserves are escaped.
fn key_of(prefix: &str, topic: &std::ffi::CStr, writer: &Identity) -> String {
    let plain = |c: char| if "*$?#/".contains(c) { '_' } else { c };
    let topic: String = topic.to_string_lossy().chars().map(plain).collect();
    format!("{prefix}/data/{topic}/{}", to_hex(writer))
}

// ---- writers ----

pub struct Writer {
    core: Arc<WriterCore>,
    publisher: Publisher<'static>,
    loans: Option<Loans>,
    domain: Membership,
}

struct WriterCore {
    next: AtomicI64,     // sequence number
    stamp_ns: AtomicI64, // of the next message; 0: not set
    readers: Mutex<Vec<Identity>>,
}

struct Loans {
    size: usize,
    provider: ShmProvider<PosixShmProviderBackend>,
    lent: Mutex<HashMap<usize, ZShmMut>>,
}

impl Loans {
    fn new(session: &Session, settings: &EndpointSettings) -> Result<Loans> {
        let topic = settings.topic;
        let refuse =
            |why: &str| Err(Error::unsupported(format!("{NAME}: topic '{topic}' shall pass loaned messages, {why}")));
        if settings.fixed_size == 0 {
            return refuse("but its messages have no fixed size; right would be a type of a fixed size");
        }
        if !session.settings.shared_memory {
            return refuse("which needs shared memory; right would be shared_memory=on");
        }
        // Includes room for messages that readers have not returned yet.
        let room = (settings.fixed_size * 256).max(1 << 20);
        let provider = noting_shared_memory(|| ShmProviderBuilder::default_backend(room).wait())
            .map_err(|why| failed("no shared memory for loaned messages", why))?;
        Ok(Loans { size: settings.fixed_size, provider, lent: Mutex::default() })
    }
}

fn priority_of(settings: &EndpointSettings) -> Result<Priority> {
    Ok(match settings.qos.transport_priority {
        0 => Priority::Data,
        1 => Priority::DataHigh,
        2 => Priority::InteractiveLow,
        3 => Priority::InteractiveHigh,
        4 => Priority::RealTime,
        more => {
            return Err(Error::unsupported(format!(
                "{NAME}: topic '{}': transport_priority {more} is refused: zenoh has four above the usual one; right would be \
                 0 to 4",
                settings.topic
            )))
        }
    })
}

impl Writer {
    pub fn new(
        domain: &Domain,
        session: &Session,
        settings: &EndpointSettings,
        callbacks: Callbacks,
    ) -> Result<Writer> {
        let info = Endpoint::new(true, settings)?;
        let id = domain.next_identity();
        let is_reliable = settings.qos.reliability == PERFLAB_RELIABLE;
        let publisher = session
            .zenoh
            .declare_publisher(key_of(session.prefix(), &info.topic, &id))
            .congestion_control(if is_reliable { CongestionControl::Block } else { CongestionControl::Drop })
            .reliability(if is_reliable { Reliability::Reliable } else { Reliability::BestEffort })
            .priority(priority_of(settings)?)
            .express(session.settings.express)
            .wait()
            .map_err(|why| failed("no publisher", why))?;
        let loans = if settings.loans { Some(Loans::new(session, settings)?) } else { None };
        let core =
            Arc::new(WriterCore { next: AtomicI64::new(1), stamp_ns: AtomicI64::new(0), readers: Mutex::default() });
        let domain = domain.enter(id, info, core.clone(), callbacks)?;
        Ok(Writer { core, publisher, loans, domain })
    }

    fn put(&self, payload: ZBytes, related: Option<&perflab_sample_identity>) -> Result<i64> {
        let stamp_ns = self.core.stamp_ns.swap(0, Ordering::Relaxed);
        let sequence = self.core.next.fetch_add(1, Ordering::SeqCst);
        let source_ns = if stamp_ns != 0 { stamp_ns } else { wall_ns() };
        let head = Head { sequence, source_ns, related: related.copied().unwrap_or(NOT_RELATED) };
        self.publisher.put(payload).attachment(&head.encoded()[..]).wait().map_err(|why| failed("not sent", why))?;
        Ok(sequence)
    }
}

impl perflab_plugin::Writer for Writer {
    fn identity(&self) -> perflab_identity {
        perflab_identity { bytes: self.domain.identity() }
    }
    fn matched(&self) -> usize {
        locked(&self.core.readers).len()
    }
    fn write(&self, parts: &[perflab_bytes], related: Option<&perflab_sample_identity>) -> Result<i64> {
        let mut bytes = Vec::with_capacity(parts.iter().map(|part| part.size).sum());
        for part in parts.iter().filter(|part| part.size > 0) {
            // SAFETY: middleware.h guarantees this many bytes.
            bytes.extend_from_slice(unsafe { std::slice::from_raw_parts(part.data.cast::<u8>(), part.size) });
        }
        self.put(ZBytes::from(bytes), related)
    }
    fn stamp_next(&self, source_timestamp_ns: i64) {
        self.core.stamp_ns.store(source_timestamp_ns, Ordering::Relaxed);
    }
    fn loan(&self) -> Result<*mut u8> {
        let loans = self.loans.as_ref().ok_or_else(|| Error::unsupported(format!("{NAME}: the writer was not created with loans")))?;
        let mut room = loans
            .provider
            .alloc(loans.size)
            .with_policy::<BlockOn<GarbageCollect>>()
            .wait()
            .map_err(|why| failed("no room for a loaned message", format!("{why:?}")))?;
        let address = room.as_mut_ptr();
        locked(&loans.lent).insert(address as usize, room);
        Ok(address)
    }
    fn write_loaned(&self, message: *mut u8) -> Result<()> {
        let room = self.loans.as_ref().and_then(|loans| locked(&loans.lent).remove(&(message as usize)));
        let room = room.ok_or_else(|| Error::failed(format!("{NAME}: not a loan of this writer")))?;
        self.put(ZBytes::from(room), None).map(|_| ())
    }
    fn discard_loan(&self, message: *mut u8) {
        if let Some(loans) = &self.loans {
            locked(&loans.lent).remove(&(message as usize));
        }
    }
}

impl Party for WriterCore {
    // The reader gets all messages from the next one on.
    fn add(&self, reader: &Identity, _requested: &Endpoint, _asked: &[u8]) -> Result<Vec<u8>> {
        let mut readers = locked(&self.readers);
        if !readers.contains(reader) {
            readers.push(*reader);
        }
        Ok(self.next.load(Ordering::SeqCst).to_le_bytes().to_vec())
    }
    fn peer_gone(&self, peer: &Identity, _was_matched: bool) {
        locked(&self.readers).retain(|reader| reader != peer);
    }
}

// ---- readers ----

pub struct Reader {
    core: Arc<ReaderCore>,
    domain: Membership,
}

struct ReaderCore {
    zenoh: zenoh::Session,
    prefix: String,
    topic: std::ffi::CString,
    tells_identities: bool,
    host: Host,
    callbacks: Callbacks,
    counts: Arc<Counts>,
    inbox: Arc<Inbox<Message>>,
    matched: AtomicUsize,
    sources: Mutex<Sources>,
}

#[derive(Default)]
struct Sources {
    here: HashMap<Identity, Source>,
    // Writers that have left, because their messages may come after the news of that.
    gone: Vec<Source>,
    is_closed: bool,
}

const MOST_GONE: usize = 64;

struct Source {
    state: Arc<Mutex<SourceState>>,
    _subscriber: Subscriber<()>,
}

#[derive(Default)]
struct SourceState {
    first: Option<i64>, // first message for this reader; none: unknown
    early: Vec<Message>,
}

pub struct Message {
    payload: ZBytes,
    writer: Identity,
    head: Head,
    reception_ns: i64,
}

// A message while it is taken.
struct Taken {
    _payload: ZBytes,
    _joined: Option<Vec<u8>>,
}

impl HasInbox for Reader {
    type Message = Message;
    fn inbox(&self) -> &Arc<Inbox<Message>> {
        &self.core.inbox
    }
}

impl Reader {
    pub fn new(
        domain: &Domain,
        session: &Session,
        settings: &EndpointSettings,
        callbacks: Callbacks,
    ) -> Result<Reader> {
        if settings.loans && !session.settings.shared_memory {
            return Err(Error::unsupported(format!(
                "{NAME}: topic '{}' shall pass loaned messages, which needs shared memory; right would be shared_memory=on",
                settings.topic
            )));
        }
        let info = Endpoint::new(false, settings)?;
        let id = domain.next_identity();
        let keeps_all = settings.qos.history == PERFLAB_KEEP_ALL;
        let depth = if keeps_all { usize::MAX } else { settings.qos.depth as usize };
        let core = Arc::new(ReaderCore {
            zenoh: session.zenoh.clone(),
            prefix: session.prefix().to_owned(),
            topic: info.topic.clone(),
            tells_identities: settings.related_samples,
            host: domain.host().clone(),
            callbacks: callbacks.clone(),
            counts: session.counts.clone(),
            inbox: Inbox::new(NAME, depth),
            matched: AtomicUsize::new(0),
            sources: Mutex::default(),
        });
        let party = Arc::new(ReaderParty(core.clone()));
        let domain = domain.enter(id, info, party, callbacks)?;
        Ok(Reader { core, domain })
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.core.callbacks.close();
        self.core.inbox.close();
        let sources = {
            let mut sources = locked(&self.core.sources);
            sources.is_closed = true;
            (std::mem::take(&mut sources.here), std::mem::take(&mut sources.gone))
        };
        drop(sources);
    }
}

impl ReaderCore {
    // Runs on a thread of zenoh, or the writer's.
    fn arrived(&self, writer: &Identity, state: &Mutex<SourceState>, sample: &Sample) {
        let reception_ns = self.host.now_ns();
        let head = sample.attachment().and_then(|bytes| Head::decoded(&bytes.to_bytes()));
        let Some(head) = head else {
            self.counts.foreign.fetch_add(1, Ordering::Relaxed);
            return;
        };
        let payload = sample.payload().clone();
        let counted = if payload.as_shm().is_some() { &self.counts.in_shared_memory } else { &self.counts.copied };
        counted.fetch_add(1, Ordering::Relaxed);
        let message = Message { payload, writer: *writer, head, reception_ns };
        {
            let mut state = locked(state);
            match state.first {
                None => return state.early.push(message),
                Some(first) if message.head.sequence < first => return,
                Some(_) => self.inbox.push(message),
            }
        }
        self.callbacks.data();
    }
}

struct ReaderParty(Arc<ReaderCore>);

impl Party for ReaderParty {
    fn ask(&self, writer: &Identity, _offered: &Endpoint) -> Result<Vec<u8>> {
        let core = &self.0;
        let state = Arc::new(Mutex::new(SourceState::default()));
        let (weak, id, seen) = (Arc::downgrade(core), *writer, state.clone());
        let subscriber = core
            .zenoh
            .declare_subscriber(key_of(&core.prefix, &core.topic, writer))
            .callback(move |sample| {
                if let Some(core) = Weak::upgrade(&weak) {
                    core.arrived(&id, &seen, &sample);
                }
            })
            .wait()
            .map_err(|why| failed("no subscriber", why))?;
        let mut sources = locked(&core.sources);
        if !sources.is_closed {
            sources.here.insert(*writer, Source { state, _subscriber: subscriber });
        }
        Ok(Vec::new())
    }

    fn start(&self, writer: &Identity, answer: &[u8]) -> Result<()> {
        let core = &self.0;
        let first =
            answer.try_into().map(i64::from_le_bytes).map_err(|_| Error::failed("zenoh: a letter without a number"))?;
        let Some(state) = locked(&core.sources).here.get(writer).map(|source| source.state.clone()) else {
            return Ok(());
        };
        let some = {
            let mut state = locked(&state);
            if state.first.replace(first).is_none() {
                core.matched.fetch_add(1, Ordering::SeqCst);
            }
            let early = std::mem::take(&mut state.early);
            let mut some = false;
            for message in early.into_iter().filter(|message| message.head.sequence >= first) {
                core.inbox.push(message);
                some = true;
            }
            some
        };
        if some {
            core.callbacks.data();
        }
        Ok(())
    }

    fn peer_gone(&self, peer: &Identity, _was_matched: bool) {
        let core = &self.0;
        let mut sources = locked(&core.sources);
        let Some(source) = sources.here.remove(peer) else { return };
        if locked(&source.state).first.is_some() {
            core.matched.fetch_sub(1, Ordering::SeqCst);
        }
        sources.gone.push(source);
        let oldest = if sources.gone.len() > MOST_GONE { Some(sources.gone.remove(0)) } else { None };
        drop(sources);
        drop(oldest);
    }
}

impl perflab_plugin::Reader for Reader {
    fn identity(&self) -> perflab_identity {
        perflab_identity { bytes: self.domain.identity() }
    }
    fn matched(&self) -> usize {
        self.core.matched.load(Ordering::SeqCst)
    }
    fn take(&self) -> Result<Option<perflab_sample>> {
        let Some(message) = self.core.inbox.pop() else { return Ok(None) };
        let told = self.core.tells_identities;
        let mut slices = message.payload.slices();
        let first = slices.next().unwrap_or_default();
        let joined = if slices.next().is_some() { Some(message.payload.to_bytes().into_owned()) } else { None };
        let bytes = joined.as_deref().unwrap_or(first);
        let (data, size) = (bytes.as_ptr(), bytes.len());
        let taken = Box::new(Taken { _payload: message.payload.clone(), _joined: joined });
        Ok(Some(perflab_sample {
            data,
            size,
            writer: perflab_identity { bytes: message.writer },
            sequence: if told { message.head.sequence } else { 0 },
            related: if told { message.head.related } else { NOT_RELATED },
            source_timestamp_ns: message.head.source_ns,
            reception_ns: message.reception_ns,
            loan: Box::into_raw(taken).cast(),
        }))
    }
    fn return_sample(&self, sample: &perflab_sample) {
        // SAFETY: by middleware.h as returned by take(), and only once.
        drop(unsafe { Box::from_raw(sample.loan.cast::<Taken>()) });
    }
}
